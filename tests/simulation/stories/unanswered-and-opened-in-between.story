# Closed, opened and closed while an edit waits: nobody has seen what that one does.
simulation 1 edits
editor: plain
eol: lf
end: closed
opened: yes
threads: quick
|   }

propose 0 1 0 }
decide replace 0
close
open
close
decide replace 0
