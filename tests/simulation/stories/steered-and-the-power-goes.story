# Acknowledged words of the user to a running turn: told as a message, and the power went before its text.
simulation 1 whole
chance: 147
storage: jsonl
threads: quick

prompt
model edit 0
power 9
steer
