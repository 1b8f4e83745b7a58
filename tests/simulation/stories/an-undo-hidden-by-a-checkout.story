# A checkout hid an undo that had landed and that nobody was told of.
# seed 55434716
# a state is untrue: applied: Fate(id='h1', old='', new='가 x\n', merge_of=None, given=True, taken_back=True, put=None, keys=0, sent=['가 x\n']) in '一\n'
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 1 0 1 x
decide accept 0
take
report
answer
undo 0
take
switch 0 1
answer
close
open
