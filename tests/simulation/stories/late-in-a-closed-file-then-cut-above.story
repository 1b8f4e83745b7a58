# seed 87213503
# a state is untrue: a late insertion of a closed file, opened, and the line above it cut at once
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: quick
| }
| } В
| 中 😀 Г

propose 9 0 1 }
decide_all accept
wait 600
take
open
cut 0 0
