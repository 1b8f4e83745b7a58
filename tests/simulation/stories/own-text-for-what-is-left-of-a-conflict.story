# What is left of a conflict waits for the user in every mode.
# seed 20119924
# an edit does something else
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 0 1 x
turn auto
switch 0 0
decide accept 0
decide replace 1
