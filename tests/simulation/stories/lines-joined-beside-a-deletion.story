# seed 84096484
# a state is untrue: the user joined lines around one that was deleted, told all at once
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick
| }
| x Б
| end В
| 中 😀 Г
|   } Д

cut 52 0
type 0 line
type 40 line
report
propose 5 1 1 new
propose 9 1 0 x
decide_all accept
take
delete 51
report
decide accept 0
