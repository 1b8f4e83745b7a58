# A killed process had proposed a deletion that the user did too; their own text for it comes too late.
# seed 51332660
# a state is untrue: applied: Fate(id='h1', old='\n', new='', merge_of=None, given=True, taken_back=False, put='ぁ own\n', keys=0, sent=['ぁ own\n']) in ''
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick

propose 0 1 0 x
cut 0 0
restart
decide replace 0
