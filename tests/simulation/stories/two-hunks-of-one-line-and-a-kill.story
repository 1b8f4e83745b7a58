# Of two hunks of one line one was sent, and a kill forgot it: the other is no reason not to see it.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 1 1 }
decide accept 0
propose 0 1 0 }
take
wait 600
restart
