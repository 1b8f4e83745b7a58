# What was answered is open no more, for who comes later.
simulation 1 whole
chance: 0
storage: jsonl
threads: quick
| line А

prompt
model ask
reply 0
model stop
attach
