# A hunk that was rejected does not stand in the way of one that was applied beside its heir.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: quick
| А one
| Б two
| В three
| Г four
| Д five

propose 1 1 1 new
decide reject 0
propose 1 1 1 x
propose 3 1 1 x
decide_all accept
take
save_file
restart
listen
open
