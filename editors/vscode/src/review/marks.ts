// How hunks that wait look in a buffer: a lens above, the old lines red, the new ones green behind them.
import * as vscode from "vscode";
import type { FoldedHunk } from "../../../../protocol/fold/fold";
import { asDiff, isPending, isToKeep, lines, proposedLine } from "./hunks";
import type { Review } from "./review";
import { before, PROPOSED } from "./texts";

/** The keys that package.json gives, for the first hunk that the user sees. */
const KEYS = process.platform === "darwin" ? "⌃⌥Y · ⌃⌥N · ⌥F5" : "Alt+Y · Alt+N · Alt+F5";
const MAX_GHOST = 160;

export class Marks implements vscode.CodeLensProvider, vscode.QuickDiffProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly removed = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor("diffEditor.removedLineBackground"),
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.modifiedForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  private readonly added = vscode.window.createTextEditorDecorationType({
    after: { color: new vscode.ThemeColor("gitDecoration.addedResourceForeground"), backgroundColor: new vscode.ThemeColor("diffEditor.insertedLineBackground"), margin: "0 0 0 2em" },
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.addedForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  /** Marks in the gutter, and the editor's own peek, for edits that are applied already. */
  private gutter: vscode.SourceControl | undefined;
  private marked = "";
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly review: Review,
    private readonly known: vscode.Memento,
  ) {
    this.disposables = [
      this.removed,
      this.added,
      vscode.languages.registerCodeLensProvider([{ scheme: "file" }, { scheme: PROPOSED }], this),
      review.onDidChange(() => this.draw()),
      vscode.window.onDidChangeVisibleTextEditors(() => this.draw()),
    ];
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const compared = document.uri.scheme === PROPOSED;
    const all = this.review.waiting(document.uri);
    const hunks = compared ? all : all.filter((hunk) => hunk.range);
    return hunks.flatMap((hunk, index) => {
      const line = Math.min(compared ? proposedLine(all, hunk) : place(document, hunk).start.line, document.lineCount - 1);
      const range = new vscode.Range(line, 0, line, 0);
      const lens = (title: string, command: string, tooltip?: string): vscode.CodeLens => new vscode.CodeLens(range, { title, command, tooltip, arguments: [hunk.hunkId] });
      const applied = isToKeep(hunk);
      const warnings = warning(hunk);
      const hint = hunk === this.review.waiting()[0] && !this.known.get("keysKnown") ? [lens(KEYS, "kode.showKeys", vscode.l10n.t("Accept, reject, next: change these keys"))] : [];
      return [
        lens(`$(check) ${applied ? vscode.l10n.t("Keep") : vscode.l10n.t("Accept")}`, "kode.acceptHunk"),
        lens(`$(close) ${applied ? vscode.l10n.t("Undo") : vscode.l10n.t("Reject")}`, "kode.rejectHunk"),
        ...(applied ? [] : [lens(`$(edit) ${vscode.l10n.t("Edit")}`, "kode.editHunk", vscode.l10n.t("Accept with a text of your own"))]),
        ...(compared ? [] : [lens(vscode.l10n.t("Edit {0} of {1}", index + 1, hunks.length), "kode.review", vscode.l10n.t("Review all edits"))]),
        ...(warnings ? [lens(`$(warning) ${warnings}`, "kode.openDiff")] : []),
        ...hint,
      ];
    });
  }

  /** The editor asks what to compare a file with. */
  provideOriginalResource(uri: vscode.Uri): vscode.Uri | undefined {
    return uri.scheme === "file" && this.review.waiting(uri).some(isToKeep) ? before(uri) : undefined;
  }

  private draw(): void {
    this.changed.fire();
    for (const editor of vscode.window.visibleTextEditors) {
      const { document } = editor;
      if (document.uri.scheme.startsWith("kode-")) continue;
      const hunks = this.review.waiting(document.uri).filter((hunk) => hunk.range && isPending(hunk));
      editor.setDecorations(this.removed, hunks.filter((hunk) => hunk.oldText).map((hunk) => ({ range: place(document, hunk), hoverMessage: new vscode.MarkdownString().appendCodeblock(asDiff(hunk), "diff") })));
      editor.setDecorations(this.added, hunks.flatMap((hunk) => ghosts(document, hunk)));
    }
    this.mark();
  }

  /** A gutter that begins anew asks about every file anew. */
  private mark(): void {
    const marked = [...new Set(this.review.waiting().filter(isToKeep).map(({ uri }) => uri))].join();
    if (marked === this.marked) return;
    this.marked = marked;
    this.gutter?.dispose();
    this.gutter = marked ? vscode.scm.createSourceControl("kode", "kode") : undefined;
    if (this.gutter) this.gutter.quickDiffProvider = this;
    if (this.gutter) this.gutter.inputBox.visible = false;
  }

  dispose(): void {
    this.gutter?.dispose();
    for (const disposable of this.disposables) disposable.dispose();
  }
}

/** Behind each old line the new one that takes its place; behind the last one also how many more there are. */
function ghosts(document: vscode.TextDocument, hunk: FoldedHunk): vscode.DecorationOptions[] {
  const { start, end } = place(document, hunk);
  const fresh = lines(hunk.newText ?? "");
  const last = Math.min(end.line, start.line + fresh.length - 1);
  return fresh.slice(0, last - start.line + 1).map((text, index) => {
    const line = start.line + index;
    const more = fresh.length - index - 1;
    const rest = line === last && more ? `  ${vscode.l10n.t("+{0} lines", more)}` : "";
    const contentText = ` ${text.trim().slice(0, MAX_GHOST)}${rest} `.replaceAll(" ", "\u00a0");
    const at = document.lineAt(line).range.end;
    return { range: new vscode.Range(at, at), hoverMessage: new vscode.MarkdownString().appendCodeblock(asDiff(hunk), "diff"), renderOptions: { after: { contentText } } };
  });
}

/** The lines of a hunk as the editor counts them; an insertion stands at the end of the line before. */
function place(document: vscode.TextDocument, { range }: FoldedHunk): vscode.Range {
  const last = document.lineCount - 1;
  const start = Math.min(range?.start.line ?? 0, last);
  const empty = range && range.start.line === range.end.line && range.start.character === range.end.character;
  if (empty) return document.lineAt(Math.max(0, start - 1)).range;
  const end = Math.min(Math.max(start, (range?.end.line ?? 0) - (range?.end.character ? 0 : 1)), last);
  return new vscode.Range(start, 0, end, document.lineAt(end).text.length);
}

/** What the user should look at before accepting. */
export function warning({ flags = [], codePoints = [], fits, mergeOf }: FoldedHunk): string {
  const found: string[] = [];
  if (flags.includes("unread")) found.push(vscode.l10n.t("changes lines that the model was not shown"));
  if (flags.includes("staleRead")) found.push(vscode.l10n.t("changes lines that others changed since the model saw them"));
  if (flags.includes("sensitive")) found.push(vscode.l10n.t("this file can run code later"));
  if (flags.includes("runsInBuild")) found.push(vscode.l10n.t("this file runs when you build or test"));
  if (flags.includes("invisibleCharacters")) found.push(vscode.l10n.t("hides characters: {0}", codePoints.join(" ")));
  if (fits === false) found.push(vscode.l10n.t("fits no more: the text under it has changed"));
  if (mergeOf) found.push(vscode.l10n.t("what is left of a conflict, merged with your text"));
  return found.join(", ");
}
