# Given up and accepted again; the first edit came late, and its inverse was sent as a second try.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

type 5 line
type 27 char
report
propose 2 0 1 new
decide_all accept
wait 673
take
decide accept 0
delete 2
