# An accepted edit was told before its record was saved, a key was typed beside it, the power went.
# seed 4027600
# a state is untrue
simulation 1 whole
chance: 908
storage: jsonl
threads: quick
| line В

prompt
model edit 2
fault short 0
model stop
decide accept 0
fault enospc 0
edit
type 0
power 0
