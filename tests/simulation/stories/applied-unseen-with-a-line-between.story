# An edit was in the buffer, untold, and a line typed into it; sent once more it was refused, and told as a conflict though its text stood there.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick
|   } А
| return x В

propose 4 1 2 new
decide_all accept
take
answer
wait 20
type 31 line
