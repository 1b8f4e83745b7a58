# A hunk was kept, and the power went before anybody was told of it.
simulation 1 whole
chance: 324
storage: jsonl
threads: slow
| line Г

thread
thread
prompt
model edit 3
model edit 3
model text 0
power 2
model stop
thread
thread
thread
thread
thread
decide reject 0
