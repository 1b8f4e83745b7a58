# A buffer that a killed process had filled is saved while the next edit waits.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: quick
| end
| 
| end
| x Д
| x Е

propose 7 1 0 }
decide accept 0
take
restart
decide_all accept
close
