# An undo had landed, a key was typed beside it, and the file was closed before either was told.
# seed 30038839
# a state is untrue
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick
| }

delete 1
report
propose 0 1 0 }
decide replace 0
take
report
undo 0 all
take
type 5 line
close
open

