"""What an editor shows of one session: feed it what is told, read the fields.

A snapshot with pages of `kode/message/list`, a replay and the stream lead to the same fields.
`fold.ts` and `fold.lua` are the same reducer.
"""

ENVELOPE = ("type", "seq", "ts", "turnId", "messageId", "sessionId", "content")


class Fold:
    """All of a session.

    A message holds the ids of its `blocks`. A block is as the wire tells it, with its `messageId`;
    while it is `open`, `grown` is what deltas brought. `results` leads from the block of a call to
    that of its result, `pending` are questions, `plan` the model's steps, `touched` the ids of what
    looks different now.
    """

    def __init__(self):
        self.seq = 0
        self.title, self.mode, self.model, self.meta = "", "", "", {}
        self.head_id = self.turn_id = self.last_turn = self.waiting = self.cost = None
        self.usage, self.messages, self.blocks, self.results = {}, {}, {}, {}
        self.change_sets, self.hunks, self.scouts, self.progress = {}, {}, {}, {}
        self.pending, self.notices, self.plan, self.touched = {}, [], [], set()

    def attach(self, told):
        """Take the answer of `kode/session/attach`: a replay, or a snapshot into a new fold."""
        for event in told.get("events", ()):
            self.event(event)
        if told["mode"] == "snapshot":
            self._snapshot(told)
        for block in told.get("openBlocks", ()):
            known = self.blocks.get(block["blockId"])
            if known and known["open"]:
                known["grown"] = block["text"]
        self.seq, self.turn_id = told["seq"], told.get("activeTurnId")

    def page(self, messages):
        """Take complete messages: those of a snapshot, or a page of `kode/message/list`."""
        for message in messages:
            self._message(message["id"], message, complete=True)

    def change_set(self, told):
        """Take a change set: of an event, a snapshot, or `kode/changeSet/get`."""
        set_id, turn_id = told["changeSetId"], told.get("turnId")
        new = {"id": set_id, "turnId": turn_id, "hunks": []}
        known = self.change_sets.setdefault(set_id, new)
        known["state"] = told["state"]
        for file in told.get("files", ()):
            place = {"changeSetId": set_id, "uri": file["uri"], "path": file["path"]}
            base = {"eol": file["base"]["eol"]} if "base" in file else {}
            for hunk in file["hunks"]:
                if hunk["hunkId"] not in self.hunks:
                    known["hunks"].append(hunk["hunkId"])
                    self.hunks[hunk["hunkId"]] = {"turnId": known["turnId"], "eol": "\n"}
                self.hunks[hunk["hunkId"]].update(hunk, **place, **base)
        self.touched.add(set_id)

    def delta(self, delta):
        """Add what is new of a delta; `at` counts code points, as texts of Python do."""
        block = self.blocks.get(delta["blockId"])
        if block and block["open"] and delta["at"] <= (have := len(block["grown"])):
            block["grown"] += delta["add"][have - delta["at"] :]
            self.touched |= {block["id"], block["messageId"]}

    def event(self, event):  # noqa: C901
        """Fold one event; False if it was told before."""
        if 0 < event.get("seq", 0) <= self.seq:
            return False
        self.seq = event.get("seq") or self.seq
        if event.get("turnId"):
            self.waiting = None
        message_id, block_id = event.get("messageId"), event.get("blockId")
        match event["type"]:
            case "turn.started":
                self.turn_id, self.last_turn = event["turnId"], None
            case "turn.completed":
                self.turn_id, self.last_turn, self.progress, self.pending = None, event, {}, {}
            case "message.added" | "message.completed" as kind:
                self._message(message_id, event, complete=kind == "message.completed")
                self.head_id = message_id if kind == "message.added" else self.head_id
            case "block.started" | "block.completed" as kind:
                self._block(message_id, block_id, event["block"], is_open=kind == "block.started")
            case "block.dropped" if self.blocks.pop(block_id, None):
                self.messages[message_id]["blocks"].remove(block_id)
                self.touched.add(message_id)
            case "changeSet.updated":
                self.change_set(event)
            case "scout.updated":
                self.scouts[event["scoutId"]] = event
            case "tool.progress":
                for call in (event["toolUseId"], *event.get("siblingToolUseIds", ())):
                    self.progress[call] = event
            case "permission.requested" | "ask.requested" | "decision.requested":
                self.pending[event["requestId"]] = event
            case "permission.resolved" | "ask.resolved" | "decision.resolved":
                self.pending.pop(event["requestId"], None)
            case "session.updated":
                self._session(event)
                self.head_id = event.get("headId", self.head_id) or None
            case "usage.updated":
                self.usage, self.cost = event["usage"], event.get("cost")
            case "model.waiting":
                self.waiting = event
            case "plan.updated":
                self.plan = event["items"]
            case "notice":
                self.notices.append(event)
        return True

    def _snapshot(self, told):
        self._session(told["session"])
        self.usage, self.cost = told["usage"], told.get("cost")
        self.last_turn, self.plan = told.get("lastTurn"), told.get("plan", [])
        self.page(told.get("messages", []))
        self.head_id = told.get("headId")
        growing = {block["blockId"] for block in told.get("openBlocks", ())}
        for message in told.get("openMessages", ()):
            self._message(message["id"], message, complete=False, growing=growing)
            self.head_id = message["id"]  # a running answer stands at the tip
        for change_set in told.get("changeSets", ()):
            self.change_set(change_set)
        self.pending = {asked["requestId"]: asked for asked in (*told["pending"], *told["asks"])}

    def _session(self, told):
        for name in ("title", "mode", "model", "meta"):
            setattr(self, name, told.get(name, getattr(self, name)))

    def _message(self, message_id, told, *, complete, growing=()):
        known = self.messages.setdefault(message_id, {"id": message_id, "blocks": []})
        known.update({name: told[name] for name in told if name not in ENVELOPE}, complete=complete)
        for block in told.get("content", ()):
            self._block(message_id, block["id"], block, is_open=block["id"] in growing)
        self.touched.add(message_id)

    def _block(self, message_id, block_id, block, *, is_open):
        message = self.messages[message_id]
        if block_id not in self.blocks:
            message["blocks"].append(block_id)
        place = {"id": block_id, "messageId": message_id, "open": is_open, "grown": ""}
        self.blocks[block_id] = block | place
        self.touched |= {block_id, message_id}
        if block["type"] == "tool_result":
            above = self.messages.get(message.get("parentId", ""), {"blocks": []})["blocks"]
            calls = (at for at in above if self.blocks[at].get("toolUseId") == block["toolUseId"])
            call = block.get("callBlockId") or next(calls, "")  # older sessions do not name it
            self.results[call] = block_id
            self.touched.add(call)
