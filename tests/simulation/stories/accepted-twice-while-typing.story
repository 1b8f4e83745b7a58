# An edit was seen in the text and then typed into; accepted once more, its inverse was sent and took what the user typed.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 0 1 new
decide accept 0
decide accept 0
take
type 0 above
