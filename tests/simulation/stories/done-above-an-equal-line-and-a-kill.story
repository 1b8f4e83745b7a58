# seed 83261087
# a state is untrue: what a killed process had sent stands above a line like its old one
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

type 29 above
report
propose 0 1 1 x
decide accept 0
take
restart
