# As applied-unseen-with-a-line-between, but the line comes, and the text is told, when the verdict is out.
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
take
answer
wait 20
type 31 line
