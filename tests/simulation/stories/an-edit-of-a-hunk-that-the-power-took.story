# seed 3003601
# a state is untrue
simulation 1 whole
chance: 392
storage: jsonl
threads: quick
| line А

prompt
model edit 0
model edit 0
power 1
decide accept 0
