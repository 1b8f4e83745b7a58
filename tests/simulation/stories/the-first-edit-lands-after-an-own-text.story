# The user gave up waiting and put a text of their own; then the first edit landed, and that is what stands.
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
wait 1
take
take
report
answer
answer
listen
