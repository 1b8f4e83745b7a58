# A line at the end is sent above the last line end; the user's key, told with it, hid that.
# seed 51280118
# a state is untrue: stale: Fate(id='h1', old='', new='가 x\n', merge_of=None, given=True, taken_back=False, put=None, keys=0, sent=['가 x\n']) in '丁\nreturn x А\n}\n } В一\n\n가 x\n'
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick
| return x А
| }
|   } В

propose 3 0 1 x
type 18 line
report
decide accept 0
take
type 0 line
close
open
