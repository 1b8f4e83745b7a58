# seed 81008743
# string index out of range
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: quick

propose 0 1 1 }
decide accept 0
take
answer
undo 0 all
switch 0 0
