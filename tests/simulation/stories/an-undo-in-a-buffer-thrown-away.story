# seed 14997
# a state is untrue
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick
| 中 😀 Б

propose 1 0 1 }
decide accept 0
take
delete 0
report
undo 0
take
close unsaved
open
