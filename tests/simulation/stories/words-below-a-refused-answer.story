# seed 3047000
# events and snapshot differ
simulation 1 whole
chance: 199
storage: jsonl
threads: quick

prompt
model text 0
fault enospc 4
steer
model stop
attach
