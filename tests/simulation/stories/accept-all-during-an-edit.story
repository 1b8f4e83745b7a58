# Accepted while it was on its way, and typed into as it came: it must not be sent a second time.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 5 0 1 new
decide accept 0
take
type 18 line
decide_all accept
