# A hunk had landed in a closed file, which was saved while the next one was on its way.
# seed 20025273
# the user's text is lost
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: quick

propose 0 0 1 new
propose 2 0 1 x
decide accept 1
decide replace 0
take
answer
propose 0 1 0 new
turn auto
save_file
