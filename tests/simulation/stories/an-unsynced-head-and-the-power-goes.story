# The title of a new session was acknowledged; the head was replaced later without being synced.
simulation 1 whole
chance: 243
storage: jsonl
threads: slow

thread
prompt
second
model text 0
power 15
model stop
