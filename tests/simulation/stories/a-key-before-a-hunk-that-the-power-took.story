# A line typed before the hunk was told, an accepted edit, a power cut: six letters prove nothing.
# seed 7060026
# a state is untrue: stale: Fate(id='h000000010', old='', new='각 new\n', merge_of=None, given=False, taken_back=False, put=None, keys=1, sent=['각 new\n']) in '不line Г\n각 new\n'
simulation 1 whole
chance: 448
storage: jsonl
threads: slow
| line Г

thread
thread
prompt
model edit 3
type 0
thread
decide accept 0
power 1
