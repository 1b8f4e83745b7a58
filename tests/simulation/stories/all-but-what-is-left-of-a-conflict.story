# What is left of a conflict is no part of the rest.
# seed 20403451
# an edit does something else
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 0 1 x
switch 0 0
decide accept 0
decide_all accept
decide replace 1
