# seed 84133098
# the judge's: proposed where an edit stood that was undone, then a kill
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
propose 0 0 1 x
undo 0
decide accept 0
take
report
take
restart
