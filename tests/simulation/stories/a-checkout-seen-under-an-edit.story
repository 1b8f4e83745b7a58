# A checkout rewrote a closed file that an edit was on its way to; it was looked at, then opened.
# seed 51665714
# string index out of range
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: quick
| end Д
| end Ж

propose 0 1 0 }
decide_all accept
switch 1 1
propose 0 0 0 }
open
