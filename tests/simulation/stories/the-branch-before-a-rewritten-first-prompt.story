# The first prompt was rewritten under other tools; the branch from before is read anew by its host.
simulation 1 lives
host: older kimi
zone: Los Angeles

turn 0
find references
around servers 1
rewrite 0
rewrite 1
