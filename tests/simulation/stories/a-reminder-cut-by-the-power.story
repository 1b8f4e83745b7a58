# seed 20261123102090
# the model believes an untruth: None, not applied: Fate(id='h000000010', old='', new='각 new\n', merge_of=None, given=True, taken_back=False, put=None, keys=0, sent=['각 new\n'])
simulation 1 whole
chance: 244
storage: jsonl
threads: quick
| line Б

prompt
model edit 1
decide accept 0
edit
model read
power 0
