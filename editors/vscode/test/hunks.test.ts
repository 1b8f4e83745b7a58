import assert from "node:assert/strict";
import { test } from "node:test";
import { around, asDiff, inOrder, neighbour, ownText, proposedLine, proposedText, textBefore } from "../src/review/hunks";
import type { FoldedHunk } from "../../../protocol/fold/fold";

function hunk(hunkId: string, path: string, line: number, oldText: string, newText: string): FoldedHunk {
  const lines = oldText.split("\n").length - 1;
  const range = { start: { line, character: 0 }, end: { line: line + lines, character: 0 } };
  return { hunkId, state: "proposed", kind: "modify", range, oldText, newText, changeSetId: "c", turnId: "t", uri: `file:///${path}`, path, eol: "\n" };
}

test("hunks are applied from the last to the first, in the text's own line ends", () => {
  const text = "a 🍵\r\nb\r\nc";
  const hunks = [hunk("1", "f", 0, "a 🍵\n", "A\nA2\n"), hunk("2", "f", 1, "", "between\n"), hunk("3", "f", 2, "c", "C 你好")];
  hunks[2]!.range!.end = { line: 2, character: 1 };
  assert.equal(proposedText(text, hunks), "A\r\nA2\r\nbetween\r\nb\r\nC 你好");
});

test("a range beyond the text ends with it", () => {
  assert.equal(proposedText("a\n", [hunk("1", "f", 1, "x\n", "b\n")]), "a\nb\n");
});

test("next and previous go round all files", () => {
  const hunks = [hunk("1", "a", 3, "x\n", "y\n"), hunk("2", "a", 9, "x\n", "y\n"), hunk("3", "b", 0, "x\n", "y\n")];
  const ids = (path: string, line: number, back: boolean): string | undefined => neighbour(hunks, path, line, back)?.hunkId;
  assert.deepEqual([ids("a", 0, false), ids("a", 3, false), ids("a", 9, false), ids("b", 0, false)], ["1", "2", "3", "1"]);
  assert.deepEqual([ids("a", 3, true), ids("b", 0, true)], ["3", "2"]);
  hunks[1]!.state = "applied";
  assert.deepEqual([ids("a", 3, false), inOrder(hunks).length], ["3", 3]);
  assert.equal(neighbour([], "a", 0, false), undefined);
});

test("a hunk reads as a diff, whatever its line ends", () => {
  assert.equal(asDiff({ oldText: "a\r\nb\r\n", newText: "c" }), "-a\n-b\n+c");
  assert.equal(asDiff({ oldText: "", newText: "c\n\n" }), "+c\n+");
});

test("a user's own text is of whole lines, in the file's line ends", () => {
  assert.equal(ownText("a\nb", { newText: "x\r\n", eol: "\r\n" }), "a\r\nb\r\n");
  assert.equal(ownText("a", { newText: "x", eol: "\n" }), "a"); // the last line of a file without a line end
  assert.equal(ownText("", { newText: "x\n", eol: "\n" }), "");
});

test("a comparison has what was before on the left and what is proposed on the right", () => {
  const text = "a\nnew\nlines\nb\nc\n";
  const kept = { ...hunk("1", "f", 1, "old\n", "new\nlines\n"), state: "applied" as const, kept: false };
  kept.range = { start: { line: 1, character: 0 }, end: { line: 3, character: 0 } };
  const grows = hunk("2", "f", 3, "b\n", "b\nb2\nb3\n");
  const last = hunk("3", "f", 4, "c\n", "C\n");
  const all = [kept, grows, last];
  assert.equal(textBefore(text, all), "a\nold\nb\nc\n");
  assert.equal(proposedText(text, all), "a\nnew\nlines\nb\nb2\nb3\nC\n");
  assert.deepEqual(all.map((one) => proposedLine(all, one)), [1, 3, 6]);
  assert.deepEqual(around(text, last), ["a\nnew\nlines\nb\n", ""]);
  assert.deepEqual(textBefore(text, [{ ...kept, kept: true }]), text);
});

test("an edit of lines that were edited before is taken back first", () => {
  const first = { ...hunk("1", "f", 1, "old\n", "middle\n"), state: "applied" as const, kept: false };
  const second = { ...hunk("2", "f", 1, "middle\n", "much longer than it was\n"), state: "applied" as const, kept: false };
  assert.equal(textBefore("a\nmuch longer than it was\nb\nc\n", [first, second]), "a\nold\nb\nc\n");
});

test("a file that is made or deleted is compared with nothing", () => {
  const made = { ...hunk("1", "f", 0, "", "all\n"), kind: "create" as const, range: undefined };
  assert.deepEqual([textBefore("", [made]), proposedText("", [made])], ["", "all\n"]);
  const gone = { ...hunk("1", "f", 0, "all\n", ""), kind: "delete" as const, range: undefined };
  assert.deepEqual([textBefore("all\n", [gone]), proposedText("all\n", [gone])], ["all\n", ""]);
  const done = { ...gone, state: "applied" as const, kept: false };
  assert.deepEqual([textBefore("", [done]), proposedText("", [done])], ["all\n", ""]);
});
