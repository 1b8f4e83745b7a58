# A closed file had an edit unsaved; it was opened while a deletion in it was under way.
# seed 51287354
# a state is untrue: conflict: Fate(id='h1', old='', new='가 x\n', merge_of=None, given=True, taken_back=False, put=None, keys=0, sent=['가 x\n']) in '中 😀 А\nend Б\nx В\n가 x\n'
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: quick
| 中 😀 А
| end Б
| x В
| end Г

propose 4 0 1 x
decide_all accept
propose 9 1 0 x
take
answer
decide_all accept
open
