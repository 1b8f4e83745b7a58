# An undo was told and not saved: all that the next process sees is the file.
# seed 20437432
# a state is untrue
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 0 1 x
decide accept 0
take
save_file
undo 0 all
take
report
restart
