# The user's own text in a deletion's stead, a kill, and they delete it: an undo must not take that for the deletion.
# seed 56439031
# an edit does something else: '' → '中 😀 А\n' is not what was agreed to
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick
| 中 😀 А

propose 0 1 0 x
decide replace 0
take
report
restart
cut 0 0
report
undo 0 all
