# seed 20261123003866
# the model believes an untruth: None, not applied: Fate(id='h000000010', old='', new='각 new\n', merge_of=None, given=True, taken_back=False, put=None, keys=0, sent=['각 new\n'])
simulation 1 whole
chance: 192
storage: jsonl
threads: quick
| line А
| line Б
| line В
| line Г

prompt
model edit 5
cancel
decide accept 0
fault short 10
second
