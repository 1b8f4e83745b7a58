# A closed file is saved, and looked at, while the next edit is on its way.
# seed 20340603
# the user's text is lost
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: quick

turn auto
propose 1 0 1 x
propose 0 0 1 new
take
answer
save_file
undo 0
