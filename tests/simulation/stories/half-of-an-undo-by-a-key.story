# The user's undo came before ours of two neighbours: one of the two stands as it was.
# seed 54299269
# a state is untrue: undone: Fate(id='h1', old='', new='가 x\n', merge_of=None, given=True, taken_back=True, put=None, keys=0, sent=['가 x\n']) in '가 x\n中 😀 Б\n'
simulation 1 edits
editor: neovim-0.12
eol: lf
end: closed
opened: yes
threads: quick
| 中 😀 Б

propose 0 0 1 x
decide accept 0
propose 1 1 1 new
take
report
decide accept 0
take
report
undo 0 all
undo_key
