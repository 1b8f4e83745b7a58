# A stale hunk was found again in the file on disk, though an edit of it was not saved yet.
# seed 57030575
# string index out of range
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick
| end Е
| } Ж

type 0 line
report
propose 3 0 1 }
propose 0 2 0 x
restart
close
decide accept 5
decide accept 0
