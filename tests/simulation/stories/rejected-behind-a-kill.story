# A killed process had sent the hunk, and it is rejected before anybody has looked at the text.
# seed 20137232
# a state is untrue
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

turn auto
propose 0 0 1 }
take
restart
decide reject 0
