# seed 84558302
# an edit does something else: an unanswered undo came when the file was closed and read as if it had
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick
| x А
| } Б
| 中 😀 В
|   } Г
|   }
| return x
| 中 😀 Ж

propose 0 1 0 }
decide accept 0
take
report
answer
undo 0
close unsaved
propose 9 1 1 new
decide accept 0
take
save_file
