"""Faults to put into the code, written by hand: each must be noticed by a test or a story."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path("kode_sidecar")


@dataclass(frozen=True)
class Mutant:
    """`old` becomes `new` in a file of the package, once; `known` defects had been there before."""

    name: str
    file: str
    old: str
    new: str
    known: bool = False

    @property
    def room(self) -> str:
        """The room of the file."""
        return self.file.split("/")[1]


def _hand(text: str, *, known: bool = False) -> Iterator[Mutant]:
    for block in text.strip().split("\n\n"):
        name, file, old, new = block.split("\n")
        yield Mutant(name, file, old.strip(), new.strip(), known)


KNOWN = tuple(
    _hand(
        """
the lost user line: no version with an edit
agent/edits/text_edits.py
version=current.version if current.is_open else None,
version=None,

the conflict that lands later
agent/edits/text_edits.py
flight.late = True
return

consumed reminders
agent/turns/context.py
text = self._change_sets.unreported()
text = self._change_sets.take_reminders()

the stale meta.json
infrastructure/records/conversation_files.py
self._write_meta(meta)
self._write_meta(meta); return
""",
        known=True,
    )
)

BY_HAND = tuple(
    _hand(
        """
what was typed into and accepted again takes it back
agent/edits/text_edits.py
if key in sent.verified:  # what is followed would take it back
if False:

a closed file may have an edit that nobody saw
agent/edits/text_edits.py
if document is not None and not document.is_open and self._unseen[document.key]:
if False:

a late landing is sent again as its inverse
agent/edits/flights.py
others = (ledger[key] for key in self.texts if ledger[key].state != self.states[key])
others = ()

a late undo that diverged is told as done
agent/edits/flights.py
state = "diverged" if hunk.state in UNSETTLED else "applied"
state = "applied"

a decision is carried out again after another one failed
agent/edits/applying.py
accepted = [hunk for hunk in hunks if hunk.state == seen[hunk.id]]
accepted = list(hunks)

accept answers before it is saved
agent/edits/applying.py
if by_user:
if False:

no lock for a document
agent/edits/applying.py
async with self._services.locks.of_all(key for hunk in hunks for key in hunk.keys):
async with self._services.locks.of_all(()):

a touched hunk is sent
agent/edits/text_edits.py
elif hunk.touched or hunk.start < end or _is_back(ledger[hunk.id], hunk, unedited):
elif hunk.start < end:

what the user put back is put back once more
agent/edits/text_edits.py
return unedited.repeats(span, span.new_text) > hunk.repeats
return False

an edit is not looked for when it was given up
agent/edits/text_edits.py
if not flight.refused and not order.results.keys() >= flight.edits.keys():
if False:

one attempt
agent/edits/text_edits.py
ATTEMPTS = 2
ATTEMPTS = 1

the editor's answer counts as proof
agent/edits/verification.py
verdict: Verdict = "diverged"
verdict: Verdict = "applied"

others' changes are not followed while an edit is on its way
agent/edits/text_edits.py
self._overlay.follow(key, before, steps)
pass

changes of a document are not followed
agent/edits/text_edits.py
self._overlay.changed(document.key, change.entries)
pass

a document opened anew keeps its offsets
agent/edits/text_edits.py
case "opened":
case "opened" if False:

the inverse of what was applied is not kept
agent/edits/text_edits.py
self._overlay.track(document, flight.sent.inverses(ids, document.text))
pass

a hunk is told to the model never
agent/edits/hunks.py
elif report_to_model:
elif False:

late landing changes no state
agent/edits/hunks.py
hunks = [hunk for hunk in hunks if hunk.is_open or _is_another(hunk, puts[hunk.id])]
hunks = []

what landed late is told as the text that was decided on later
agent/edits/hunks.py
hunk.replacement = puts[hunk.id]
pass

what landed during a later decision is told as that one's
agent/edits/hunks.py
if hunk.state == hunk.done_state and (result.by_earlier or not result.is_applied):
if False:

a second decision overtakes the look before the first
agent/edits/applying.py
free = [one for one in hunks if one.id not in self._claimed and not one.recalled]
free = [one for one in hunks if one.id not in self._claimed]

of two hunks of one line none is found behind a kill
agent/edits/proof.py
if not any(overlap(lines, other) for other in taken[max(at - 1, 0) : at + 1]):
if True:

two deletions of one line count as done
agent/edits/recovery.py
return overlap(lines_of_old(hunk), lines_of_old(other))
return False

lines that moved count as deleted
agent/edits/verification.py
gone = [one for one in swallowed if _is_gone(one, lines) and not one.was_moved(others)]
gone = [one for one in swallowed if _is_gone(one, lines)]

an undo that the user's text hides is looked for in vain
agent/edits/text_edits.py
if flight.late and flight.order.undo:
if False:

rejected hunks stay pending
agent/edits/applying.py
self._announcer.forget(hunk.file.key, {hunk.id: None})
pass

reminders are told twice
agent/edits/hunks.py
del self._unreported[key]
pass

an undone hunk keeps its state
agent/edits/hunks.py
self._settle(hunks, {hunk.id: "undone" for hunk in hunks})
pass

nobody looks at a text seen anew
agent/edits/hunk_status.py
done = self._done(document, edits)
done = {}

a verdict is compared with line ends
agent/edits/hunk_status.py
return to_lf(text[span.start : span.end]) == to_lf(span.new_text)
return text[span.start : span.end] == span.new_text

an inverse is off by one
agent/edits/hunk_status.py
return Hunk(span.id, span.start, span.end, text[span.start : span.end], span.old_text)
return Hunk(span.id, span.start, span.end - 1, text[span.start : span.end - 1], span.old_text)

a flight ends at once
agent/edits/flights.py
if self.answer is None:
if True:

the lost flight does not end
agent/edits/text_edits.py
flight.lost, flight.last_text = True, followed.text
pass

a seq is given twice
agent/event_log/stream.py
self.seq += 1
self.seq += 0

an event is published before it is written
agent/event_log/stream.py
stamped = self._stamped(event)
stamped = self._stamped(event); self._send(stamped)

a hold holds nothing
agent/event_log/stream.py
self._held.append(event)
self._publish(event)

what was held goes out twice
agent/event_log/stream.py
held, self._held = self._held, []
held = self._held

a failed write is nobody's concern
agent/event_log/stream.py
self.not_saved(error)
pass

flow does not end a cancelled turn
agent/event_log/stream.py
if self._cancelling:
if False:

the journal is not caught up
agent/event_log/stream.py
while self._unstored:
while False:

an open block is forgotten
agent/event_log/history.py
self.blocks[event.block_id] = UnfinishedBlock(event.block, event.message_id)
pass

steering is forgotten as its message begins
agent/event_log/history.py
self.messages[event.message_id] = OpenMessage(event)
self.messages[event.message_id] = OpenMessage(event); self._drop_reported(event)

decisions count as heard when a turn ends
agent/event_log/history.py
if started is not None and started.mode in _REPORTS_AT_ONCE:
if True:

a resolved question stays open
agent/event_log/history.py
self.asks.pop(event.request_id, None)
pass

messages are not fsynced
infrastructure/records/jsonl.py
os.fsync(self._fd)
pass

a folder is not fsynced
core/whole_files.py
os.fsync(fd)
pass

a new file's content is not fsynced
core/whole_files.py
if durable:
if False:

a short write stays
infrastructure/records/jsonl.py
self._take_back(done)
pass

a torn tail is not closed
infrastructure/records/jsonl.py
line = b"\\n" + record + b"\\n" if self._torn else record + b"\\n"
line = record + b"\\n"

a checksum is not looked at
infrastructure/records/json_record.py
elif not _holds(record, int(found[1], 16)):
elif False:

damage is thrown away
infrastructure/records/jsonl.py
_salvage(line, decode, found)
pass

the last one of two events with a number loses
infrastructure/records/journal.py
numbered = {event.seq: event for event in events}
numbered = {event.seq: event for event in reversed(list(events))}

the lock is not taken
infrastructure/records/session_lock.py
fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
pass

the head waits for nobody when files are closed
infrastructure/records/conversation_files.py
self._saver.finish(self._path)
pass

a save that failed is forgotten
infrastructure/records/saver.py
part.request.part_done(next(filter(None, found), None))
part.request.part_done(None)

rounds are not counted
core/kernel/turn_loop.py
summing_up = rounds >= limits.max_tool_rounds
summing_up = rounds > limits.max_tool_rounds

calls of a cut answer run
core/kernel/turn_loop.py
return not summing_up and finish in ("stop", "tool_calls", "other", None)
return True

calls left over get no result
core/kernel/turn_loop.py
run.answer_rest("Cancelled before it finished.")
pass

a tool starts after a cancel
agent/event_log/stream.py
if self._cancelling:
if False:

results in the order in which they came
core/kernel/tool_runner.py
return tuple(self._results[position] for position in range(len(self._calls)))
return tuple(self._results.values())

an answer is not committed
core/kernel/model_step.py
self._context.commit(message)
pass

a cut answer is not kept
core/kernel/model_step.py
self._show(self.assembler.abort("cancelled"))
return

a steered word is not taken
agent/turns/context.py
self._remembered, self._steering = [], []
self._remembered = []

steering waits for nobody
agent/turns/context.py
return bool(self._steering)
return False

a key starts a second turn
agent/turns/turn.py
self._results[key] = result
pass

the last steering is lost
agent/turns/turn.py
for incoming in (*_refused(context, stream, steering), *steering):
for incoming in ():

a message is a root
agent/turns/context.py
parent_id=self._leaf,
parent_id=None,

the system prompt is that of today
agent/turns/prefix.py
return fresh.text if self._saved is None else self._saved.system
return fresh.text

nobody says that the mode is another
agent/turns/setup.py
for change in changes(known, fresh.parts)
for change in ()
"""
    )
)
