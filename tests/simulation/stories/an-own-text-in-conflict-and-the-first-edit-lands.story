# The same, where the own text had become a conflict before.
simulation 1 edits
editor: vscode-11
eol: lf
end: closed
opened: yes
threads: quick
| А one
| Б two

propose 1 1 1 new
decide accept 0
wait 700
decide replace 0
wait 700
take
report
answer
listen
