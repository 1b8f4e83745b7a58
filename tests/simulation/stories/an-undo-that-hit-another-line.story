# An undo in a closed file, which the user opened and typed a line into before it came: it hit that line.
# seed 51414145
# a state is untrue: undone: Fate(id='h1', old='中 😀 Б\n', new='가 }\n', merge_of=None, given=True, taken_back=True, put=None, keys=0, sent=['가 }\n']) in ' } А\n中 😀 Б\n가 }\nend В\n中 😀 Г\n'
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: quick
|   } А
| 中 😀 Б
| end В
| 中 😀 Г

propose 6 1 1 }
decide accept 0
take
answer
save_file
undo 0
open
type 6 line
