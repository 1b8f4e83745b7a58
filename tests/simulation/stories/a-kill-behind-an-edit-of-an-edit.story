# The process is killed before it hears that the edit of an edited line was done.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 0 1 x
decide accept 0
take
report
propose 0 1 0 new
decide accept 0
take
restart
