// Rules about hunks, without an editor: their order, their texts, what a file is like with them.
import type { Position, Range } from "../../../../protocol/kode";
import type { FoldedHunk } from "../../../../protocol/fold/fold";

export function isPending(hunk: FoldedHunk): boolean {
  return hunk.state === "proposed";
}

export function canBeUndone(hunk: FoldedHunk): boolean {
  return hunk.state === "applied" || hunk.state === "replaced";
}

/** By file and then by place; hunks about a whole file come first. */
export function inOrder(hunks: Iterable<FoldedHunk>): FoldedHunk[] {
  return [...hunks].sort((a, b) => compare(a.path, b.path) || comparePositions(start(a), start(b)));
}

/** The next pending hunk behind a place, round and round; with `back` the one before it. */
export function neighbour(hunks: readonly FoldedHunk[], path: string, line: number, back: boolean): FoldedHunk | undefined {
  const ordered = inOrder(hunks.filter(isPending));
  if (back) ordered.reverse();
  const beyond = (hunk: FoldedHunk): boolean => {
    const order = compare(hunk.path, path) || start(hunk).line - line;
    return back ? order < 0 : order > 0;
  };
  return ordered.find(beyond) ?? ordered[0];
}

/** A text with these hunks applied; ranges count UTF-16 units. */
export function withHunks(text: string, hunks: readonly FoldedHunk[]): string {
  const starts = [0];
  for (const end of text.matchAll(/\r\n|\r|\n/g)) starts.push(end.index + end[0].length);
  const offset = ({ line, character }: Position): number => Math.min((starts[line] ?? text.length) + character, text.length);
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  let result = text;
  for (const hunk of inOrder(hunks).reverse()) {
    const { range, newText = "" } = hunk;
    if (range) result = result.slice(0, offset(range.start)) + withEol(newText, eol) + result.slice(offset(range.end));
  }
  return result;
}

export function withEol(text: string, eol: string): string {
  return text.replace(/\r\n|\r|\n/g, eol);
}

/** A user's own text for a hunk: in the line ends of its file, and of whole lines as the hunk is. */
export function ownText(text: string, { newText = "", eol }: Pick<FoldedHunk, "newText" | "eol">): string {
  const whole = newText === "" || /[\r\n]$/.test(newText);
  return withEol(whole && text !== "" && !/[\r\n]$/.test(text) ? `${text}\n` : text, eol);
}

/** The hunk as lines with - and +, for reading. */
export function asDiff({ oldText = "", newText = "" }: Pick<FoldedHunk, "oldText" | "newText">): string {
  return [...lines(oldText).map((line) => `-${line}`), ...lines(newText).map((line) => `+${line}`)].join("\n");
}

function lines(text: string): string[] {
  return text === "" ? [] : text.replace(/(\r\n|\r|\n)$/, "").split(/\r\n|\r|\n/);
}

function start({ range }: { range?: Range }): Position {
  return range?.start ?? { line: -1, character: 0 };
}

function comparePositions(a: Position, b: Position): number {
  return a.line - b.line || a.character - b.character;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
