# seed 744018238354
# the hunk went stale as the session was opened again; a full disk refused the event, and the replay lacked it.
simulation 1 whole
chance: 830
storage: sqlite
threads: slow
| line Б

thread
thread
prompt
model edit 5
fault enospc 0
thread
thread
kill
type 7
fault short 1
thread
thread
thread
attach
