# An undo that left a blank line was told with a key above it, just before the file was closed.
# seed 57464998
# a state is untrue: applied: Fate(id='h1', old='\n', new='가 new\n', merge_of=None, given=True, taken_back=True, put=None, keys=0, sent=['가 new\n']) in '\n一\n'
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 1 1 new
decide accept 0
take
report
answer
undo 0
take
answer
type 0 above
close
open
