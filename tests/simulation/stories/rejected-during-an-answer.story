# A decision was made while the model answered, and the process ended: the next one has to report it.
simulation 1 whole
chance: 375
storage: jsonl
threads: quick
| line Б

prompt again
model edit 1
decide reject 0
model text 0
power 2
