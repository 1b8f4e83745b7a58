# A deletion that the user had done too is undone, then put back: they asked for both.
# seed 57049299
# the user's text is lost: {'Д'} in 'end\n } В\nend Г\n} Д\nend Е\n}\n' → 'end\n } В\nend Г\nend Е\n}\n'
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick
| end
|   } В
| end Г
| } Д
| end Е
| }

propose 3 1 0 }
cut 45 0
restart
propose 0 0 0 }
undo 0 all
take
report
undo 0
