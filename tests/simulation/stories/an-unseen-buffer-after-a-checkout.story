# A checkout below an edit of a closed file, which is accepted again: nobody sees that buffer.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: quick
| } Е

propose 0 1 0 x
decide accept 0
switch 0 0
decide accept 0
take
answer
decide accept 0
