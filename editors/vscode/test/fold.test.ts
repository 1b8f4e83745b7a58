// The reducer against the golden session of the protocol, played whole, cut, repeated and replayed.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { BlockDelta, Event } from "../../../protocol/kode";
import { branch, tip, versions } from "../src/session/branches";
import { Fold, NOTHING_USED } from "../../../protocol/fold/fold";

const PLAIN = { depth: 0, version: 1, createdAt: "" };

type Item = { events: Event[] } | { deltas: BlockDelta[] };
const frames = readFileSync("../../protocol/examples/session.jsonl", "utf8").trim().split("\n").map((line) => JSON.parse(line));
const stream: Item[] = frames
  .filter(({ from, message }) => from === "server" && (message.method === "kode/event" || message.method === "kode/delta"))
  .map(({ message }) => message.params);

function play(fold: Fold, item: Item): void {
  if ("events" in item) item.events.forEach((event) => fold.event(event));
  else item.deltas.forEach((delta) => fold.delta(delta));
}

function texts(fold: Fold): string[] {
  return branch(fold).flatMap((message) => message.blocks.map((id) => fold.blocks.get(id)?.text ?? ""));
}

test("the golden session folds into its messages, hunks and totals", () => {
  const fold = new Fold();
  for (const item of stream) play(fold, item);
  assert.deepEqual(branch(fold).map(({ role }) => role), ["user", "assistant", "tool", "assistant", "tool", "assistant"]);
  assert.deepEqual([...fold.hunks.values()].map(({ hunkId, state }) => [hunkId, state]), [["hunk-1", "applied"], ["hunk-2", "rejected"]]);
  assert.equal(fold.hunks.get("hunk-2")?.newText, '    return f"再见 {name}"\n'); // told whole once
  assert.equal(fold.turnId, undefined);
  assert.equal(fold.lastTurn?.stopReason, "end_turn");
  assert.deepEqual([fold.seq, fold.usage.totalTokens, fold.cost?.currency], [36, 360, "USD"]);
});

test("what the deltas bring is what the complete blocks say", () => {
  const fold = new Fold();
  const grown = new Map<string, string>();
  for (const item of stream) {
    if ("events" in item)
      for (const event of item.events) {
        if (event.type !== "block.completed" || !("text" in event.block) || !fold.blocks.get(event.blockId ?? "")?.text) continue;
        grown.set(event.blockId ?? "", fold.blocks.get(event.blockId ?? "")?.text ?? "");
        assert.equal(grown.get(event.blockId ?? ""), event.block.text);
      }
    play(fold, item);
  }
  assert.ok(grown.size >= 3);
});

test("frames told twice, and deltas that overlap, change nothing", () => {
  const once = new Fold();
  const twice = new Fold();
  for (const item of stream) {
    play(once, item);
    play(twice, item);
    play(twice, item);
  }
  assert.deepEqual(texts(twice), texts(once));
  assert.deepEqual([...twice.hunks], [...once.hunks]);
});

test("deltas count code points, and a gap is left for the complete block", () => {
  const fold = new Fold();
  fold.event({ type: "message.added", seq: 1, messageId: "m", role: "assistant", meta: {}, ...PLAIN });
  fold.event({ type: "block.started", seq: 2, messageId: "m", blockId: "b", block: { type: "text", text: "" } });
  fold.delta({ blockId: "b", at: 0, add: "🍵茶" });
  fold.delta({ blockId: "b", at: 1, add: "茶👋🏽" }); // overlaps by one
  assert.equal(fold.blocks.get("b")?.text, "🍵茶👋🏽");
  fold.delta({ blockId: "b", at: 9, add: "lost before this" });
  assert.equal(fold.blocks.get("b")?.text, "🍵茶👋🏽");
  fold.event({ type: "block.completed", seq: 3, messageId: "m", blockId: "b", block: { type: "text", text: "whole" } });
  fold.delta({ blockId: "b", at: 5, add: " too late" });
  assert.equal(fold.blocks.get("b")?.text, "whole");
});

test("a dropped block is gone", () => {
  const fold = new Fold();
  fold.event({ type: "message.added", seq: 1, messageId: "m", role: "assistant", meta: {}, ...PLAIN });
  fold.event({ type: "block.started", seq: 2, messageId: "m", blockId: "b", block: { type: "text", text: "" } });
  fold.event({ type: "block.dropped", seq: 3, messageId: "m", blockId: "b" });
  assert.deepEqual([fold.blocks.size, fold.messages.get("m")?.blocks], [0, []]);
});

test("without texts the hunks and the turn are followed all the same", () => {
  const fold = new Fold({ texts: false });
  for (const item of stream) play(fold, item);
  assert.equal(fold.blocks.size, 0);
  assert.equal(fold.hunks.size, 2);
  assert.equal(fold.lastTurn?.stopReason, "end_turn");
});

test("a snapshot in the middle of a turn goes on growing", () => {
  const { message } = { message: JSON.parse(readFileSync("../../protocol/examples/response.kode_session_attach.json", "utf8")) };
  const fold = new Fold();
  fold.attach((message.result ?? message.message?.result) as never);
  const [open] = [...fold.blocks.values()].filter((block) => block.open && block.text);
  assert.ok(open, "the example has an open block with a text");
  const before = open.text;
  fold.delta({ blockId: open.id, at: open.points, add: " and on" });
  assert.equal(fold.blocks.get(open.id)?.text, `${before} and on`);
  fold.event({ type: "turn.completed", seq: fold.seq + 1, turnId: fold.turnId ?? "", stopReason: "cancelled", usage: NOTHING_USED, durationMs: 0 });
  assert.deepEqual([fold.turnId, fold.lastTurn?.stopReason], [undefined, "cancelled"]);
});

test("an edited prompt is a version of the first, and its branch ends at its tip", () => {
  const fold = new Fold();
  const add = (id: string, role: "user" | "assistant", parentId?: string): boolean =>
    fold.event({ type: "message.added", messageId: id, role, parentId, meta: {}, ...PLAIN });
  add("p1", "user");
  add("a1", "assistant", "p1");
  add("p2", "user");
  add("a2", "assistant", "p2");
  assert.deepEqual(branch(fold).map(({ id }) => id), ["p2", "a2"]);
  const [, second] = [fold.messages.get("p1"), fold.messages.get("p2")];
  assert.deepEqual(second && versions(fold, second).map(({ id }) => id), ["p1", "p2"]);
  assert.equal(tip(fold, "p1"), "a1");
  fold.event({ type: "session.updated", headId: "a1" });
  assert.deepEqual(branch(fold).map(({ id }) => id), ["p1", "a1"]);
});
