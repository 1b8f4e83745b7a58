# The first of two decisions looks at a closed file; the second, made as it was opened, does not overtake it.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: slow

propose 0 0 1 }
restart
decide accept 0
open
decide replace 0
