# An edit that was given up came with the next one, of the same version: both in one line.
# seed 55255214
# a state is untrue: conflict: Fate(id='h1', old='', new='가 }\n', merge_of=None, given=True, taken_back=False, put=None, keys=0, sent=['가 }\n']) in '가 }각 new\n\n中 😀 А'
simulation 1 edits
editor: neovim-0.12
eol: lf
end: open
opened: yes
threads: quick
| 中 😀 А

propose 0 0 1 }
decide_all accept
propose 1 0 1 new
wait 600
decide accept 1
take
