# The same for another model, when the process that asked the branch is gone.
simulation 1 lives
host: responses
zone: Shanghai

find write_memory
turn 0
model n
rewrite 0
restart
rewrite 4
