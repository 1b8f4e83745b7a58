# A killed process had sent the hunk: another text for it comes too late.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 0 1 x
decide accept 0
take
restart
decide replace 0
