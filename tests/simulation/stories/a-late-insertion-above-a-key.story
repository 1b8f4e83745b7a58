# seed 84500079
# a state is untrue: a late insertion is told as one change with a key below it
simulation 1 edits
editor: neovim-0.12
eol: lf
end: closed
opened: yes
threads: quick
|   }
| 中 😀 Б
| end В
| return x Г

propose 6 1 0 }
propose 0 0 1 }
decide_all accept
wait 600
take
type 57 line
