simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 0 1 x
decide_all accept
take
restart
propose 0 1 0 }
