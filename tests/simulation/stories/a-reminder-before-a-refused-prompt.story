# The disk takes the reminder before a prompt and refuses the prompt: a reader is told of the first.
simulation 1 whole
chance: 332
storage: jsonl
threads: quick
| line Б

prompt
model edit 1
model stop
decide accept 0
edit
fault short 2
prompt
attach
