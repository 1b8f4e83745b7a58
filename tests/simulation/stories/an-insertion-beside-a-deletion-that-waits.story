# A killed process had sent an insertion beside a deletion that waited: each shows one of its empty sides.
# seed 57012584
# a state is untrue: stale: Fate(id='h3', old='', new='가 new\n', merge_of=None, given=False, taken_back=False, put=None, keys=1, sent=['가 new\n']) in '가 new\n一\n\n'
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

type 0 line
report
propose 7 1 0 x
propose 0 0 1 new
decide accept 5
take
restart
