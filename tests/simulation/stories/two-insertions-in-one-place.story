# Two insertions in one place, ours within the first: told in their order, or the undo takes the user's line.
simulation 1 edits
editor: neovim
eol: lf
end: closed
opened: yes
threads: quick

propose 9 0 1 }
decide_all accept
wait 600
type 0 line
take
report
undo 0
