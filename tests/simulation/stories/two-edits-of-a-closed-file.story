# A file was closed under an edit that its unseen buffer took; the next one was made for the disk.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick
| x Б
|   } В
| return x Г
| end Д
|   } Е
| return x Ж

turn auto
propose 0 0 2 x
close
propose 5 1 2 }
take
answer
decide accept 1
