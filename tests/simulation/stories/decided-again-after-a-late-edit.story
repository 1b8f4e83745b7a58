# Given up in a closed file, done late, and decided again: that edit was made for the disk.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: quick
| 中 😀 Д

propose 0 1 1 x
decide accept 0
wait 685
take
answer
decide replace 4

