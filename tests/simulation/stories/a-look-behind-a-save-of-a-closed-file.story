# A closed file with a hunk that waits is saved while an edit is on its way, and read.
# seed 20708474
# IndexError
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: quick
|   } А
|   } Б
|   } В
| return x Г
|   } Д

propose 2 2 1 new
propose 4 0 1 x
decide accept 0
take
save_file
propose 0 0 0 new
