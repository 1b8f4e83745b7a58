# The user's own text was for a line that the user took away: it is not there because the line is gone.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 1 0 x
cut 0 0
decide replace 0
