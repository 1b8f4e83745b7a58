# Half of a steered message was told when the power went.
# seed 5062313
# events and snapshot differ
simulation 1 whole
chance: 990
storage: jsonl
threads: quick

prompt
steer
power 18
second
model fail
attach
