# An undo that shows only with a key of the user's, in the line that it left.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 1 1 new
decide accept 0
take
save_file
undo 0 all
take
wait 600
type 0 char
