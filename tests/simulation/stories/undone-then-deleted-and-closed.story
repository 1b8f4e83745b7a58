# seed 83387567
# a state is untrue: an undo landed, and the user took what it had left, all told at once
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 1 1 }
decide accept 0
take
report
answer
undo 0
take
answer
delete 0
report
close
open
