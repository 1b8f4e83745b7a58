# An editor that knows LF alone did an insertion at the top of a CRLF file; the process was killed.
# seed 50040798
# a state is untrue: proposed: Fate(id='h1', old='', new='가 x\n', merge_of=None, given=False, taken_back=False, put=None, keys=0, sent=['가 x\n']) in '가 x\n\n'
simulation 1 edits
editor: eglot
eol: crlf
end: closed
opened: yes
threads: quick

propose 0 0 1 x
decide accept 0
take
restart
