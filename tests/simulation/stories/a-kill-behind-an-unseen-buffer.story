# A killed process had filled a buffer that nobody sees; the next one cannot know of it.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

close
propose 0 0 2 }
decide accept 0
take
answer
propose 2 1 0 }
restart
decide accept 0
