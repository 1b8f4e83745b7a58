# An undo had landed and the process was killed before it could say so.
# seed 20050558
# a state is untrue
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 0 1 x
decide accept 0
take
report
undo 0
take
restart
