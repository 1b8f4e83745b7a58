import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContextInspectResult } from "../../../protocol/kode";
import { edit, parts, shownPart, changes } from "../src/session/context_parts";

const segment = { tokens: 5, bytes: 9, head: "Why\nso?", origin: "prompt" as const };
const inspected = {
  segments: [{ ...segment, origin: "system" as const }, { ...segment, messageId: "a" }, { ...segment, messageId: "b", pinned: true }],
  leftOut: [{ ...segment, messageId: "c" }],
} as unknown as ContextInspectResult;

test("only messages can be chosen, and what can be done depends on what was decided", () => {
  const found = parts(inspected);
  assert.deepEqual(found.map(({ messageId }) => messageId), ["a", "b", "c"]);
  assert.deepEqual(found.map(changes), [["leaveOut", "pin"], ["leaveOut", "restore"], ["restore"]]);
  assert.deepEqual(found.map(shownPart), ["$(comment) Why so?", "$(pinned) Why so?", "$(circle-slash) Why so?"]);
});

test("a choice becomes one request", () => {
  assert.deepEqual(edit("s", "pin", parts(inspected)[0]!), { sessionId: "s", pin: ["a"] });
});
