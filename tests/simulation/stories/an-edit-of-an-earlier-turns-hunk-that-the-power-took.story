# seed 4002191
# a state is untrue
simulation 1 whole
chance: 227
storage: sqlite
threads: quick
| line А

prompt
model edit 0
model stop
prompt
model edit 0
power 2
decide accept 0
