import assert from "node:assert/strict";
import { test } from "node:test";
import { asDiff, inOrder, neighbour, ownText, withHunks } from "../src/review/hunks";
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
  assert.equal(withHunks(text, hunks), "A\r\nA2\r\nbetween\r\nb\r\nC 你好");
});

test("a range beyond the text ends with it", () => {
  assert.equal(withHunks("a\n", [hunk("1", "f", 1, "x\n", "b\n")]), "a\nb\n");
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
