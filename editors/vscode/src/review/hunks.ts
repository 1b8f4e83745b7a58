// Rules about hunks, without an editor: their order, their texts, what a file is like with them.
import type { Position, Range } from "../../../../protocol/kode";
import type { FoldedHunk } from "../../../../protocol/fold/fold";

export function isPending(hunk: FoldedHunk): boolean {
  return hunk.state === "proposed";
}

export function canBeUndone(hunk: FoldedHunk): boolean {
  return hunk.state === "applied" || hunk.state === "replaced";
}

/** Applied by the mode `keep`, and the user has not said yet whether it stays. */
export function isToKeep(hunk: FoldedHunk): boolean {
  return canBeUndone(hunk) && hunk.kept === false;
}

export function waits(hunk: FoldedHunk): boolean {
  return isPending(hunk) || isToKeep(hunk);
}

/** By file and then by place; hunks about a whole file come first. */
export function inOrder(hunks: Iterable<FoldedHunk>): FoldedHunk[] {
  return [...hunks].sort((a, b) => compare(a.path, b.path) || comparePositions(start(a), start(b)));
}

/** The next hunk that waits behind a place, round and round; with `back` the one before it. */
export function neighbour(hunks: readonly FoldedHunk[], path: string, line: number, back: boolean): FoldedHunk | undefined {
  const ordered = inOrder(hunks.filter(waits));
  if (back) ordered.reverse();
  const beyond = (hunk: FoldedHunk): boolean => {
    const order = compare(hunk.path, path) || start(hunk).line - line;
    return back ? order < 0 : order > 0;
  };
  return ordered.find(beyond) ?? ordered[0];
}

/** The file as it is proposed: its text with the pending hunks applied. */
export function proposedText(text: string, hunks: readonly FoldedHunk[]): string {
  const whole = hunks.find((hunk) => isPending(hunk) && (hunk.kind === "create" || hunk.kind === "delete"));
  if (whole) return whole.kind === "create" ? (whole.newText ?? "") : "";
  return spliced(text, hunks.filter(isPending), ({ newText = "" }) => newText);
}

/** The file as it was before the hunks that the user has yet to keep. */
export function textBefore(text: string, hunks: readonly FoldedHunk[]): string {
  const whole = hunks.find((hunk) => hunk.kind === "create" || (isToKeep(hunk) && hunk.kind === "delete"));
  if (whole) return whole.kind === "create" ? "" : (whole.oldText ?? "");
  return spliced(text, hunks.filter(isToKeep), ({ oldText = "" }) => oldText);
}

/** The line where a hunk begins in `proposedText`. */
export function proposedLine(hunks: readonly FoldedHunk[], { range }: FoldedHunk): number {
  const before = hunks.filter((other) => isPending(other) && other.range && range && other.range.end.line <= range.start.line && other.range !== range);
  const grown = before.map(({ range: place, newText = "" }) => breaks(newText) - ((place?.end.line ?? 0) - (place?.start.line ?? 0)));
  return grown.reduce((sum, lines) => sum + lines, range?.start.line ?? 0);
}

function breaks(text: string): number {
  return text.match(/\r\n|\r|\n/g)?.length ?? 0;
}

/** A text in which other texts stand for these hunks; ranges count UTF-16 units. */
function spliced(text: string, hunks: readonly FoldedHunk[], textOf: (hunk: FoldedHunk) => string): string {
  const offset = offsets(text);
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  let result = text;
  const done: { start: number; grown: number }[] = [];
  for (const hunk of inOrder(hunks).reverse()) {
    if (!hunk.range) continue;
    const [start, end] = [offset(hunk.range.start), offset(hunk.range.end)];
    const now = end + done.reduce((sum, before) => sum + (before.start < end ? before.grown : 0), 0); // a later edit of the same lines
    const other = withEol(textOf(hunk), eol);
    result = result.slice(0, start) + other + result.slice(now);
    done.push({ start, grown: other.length - (now - start) });
  }
  return result;
}

/** What stands before a hunk in a text, and what behind it. */
export function around(text: string, { range }: FoldedHunk): [string, string] {
  const offset = offsets(text);
  return range ? [text.slice(0, offset(range.start)), text.slice(offset(range.end))] : ["", ""];
}

function offsets(text: string): (position: Position) => number {
  const starts = [0];
  for (const end of text.matchAll(/\r\n|\r|\n/g)) starts.push(end.index + end[0].length);
  return ({ line, character }) => Math.min((starts[line] ?? text.length) + character, text.length);
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

export function lines(text: string): string[] {
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
