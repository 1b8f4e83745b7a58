# A file was closed under an edit; accepted again, both edits met in its unseen buffer.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick
| x Г

propose 0 1 1 new
decide accept 0
close unsaved
decide accept 0
