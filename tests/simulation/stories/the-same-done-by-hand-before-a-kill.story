# seed 84655064
# the judge's: the user had done the same by hand before the kill, and undoes it
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick
|   } Б

propose 0 1 0 x
cut 0 0
restart
decide replace 0
undo 0
