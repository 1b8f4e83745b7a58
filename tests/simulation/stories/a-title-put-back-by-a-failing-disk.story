# seed 3017059
# an acknowledged title is gone
simulation 1 whole
chance: 584
storage: sqlite
threads: quick

prompt
fault eio 8
cancel
wait 1
power 0
