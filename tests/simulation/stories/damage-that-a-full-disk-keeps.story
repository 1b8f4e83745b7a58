# The disk is full as a torn message leaves its file: the session opens all the same.
simulation 1 whole
chance: 466
storage: jsonl
threads: slow

thread
thread
prompt
power 2
model read
fault enospc 3
