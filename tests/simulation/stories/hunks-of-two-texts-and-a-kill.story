# Two hunks of two texts landed as one edit, and the process was killed.
# seed 40199547
# a state is untrue
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 0 1 }
type 0 above
report
propose 2 0 1 }
decide_all accept
take
restart

