# The text of a hunk that was taken over stands with its heir, whose own text comes too late.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 1 0 1 x
propose 0 1 0 }
decide accept 0
wait 600
decide replace 0
