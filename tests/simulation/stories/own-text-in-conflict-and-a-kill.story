# The user's own text was in conflict; the next process knows of the hunk alone.
# seed 20923534
# a state is untrue
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 1 0 new
delete 0
report
decide replace 0
restart
