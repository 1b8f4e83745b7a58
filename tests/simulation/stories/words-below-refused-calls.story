# seed 3047000
# events and snapshot differ
simulation 1 whole
chance: 199
storage: jsonl
threads: quick

prompt
steer
fault enospc 4
model edit 0
attach
