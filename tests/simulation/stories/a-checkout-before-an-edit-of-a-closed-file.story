# A checkout writes a closed file while an edit waits for it: no version could show it to the editor.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: no
threads: quick

propose 0 1 0 new
decide_all accept
switch 0 0
