// How pending hunks look in a buffer: code lenses above, the old lines marked, the new ones below.
import * as vscode from "vscode";
import type { FoldedHunk } from "../../../../protocol/fold/fold";
import { asDiff } from "./hunks";
import type { Review } from "./review";

/** More hunks than this in a file, and only the one at the cursor is unfolded. */
const UNFOLDED = 12;

export class Marks implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly removed = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("diffEditor.removedLineBackground"),
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.modifiedForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  private readonly inserted = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    borderColor: new vscode.ThemeColor("editorGutter.addedBackground"),
    borderStyle: "solid",
    borderWidth: "0 0 2px 0",
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.addedForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  private readonly controller = vscode.comments.createCommentController("kode.review", "kode");
  private readonly threads = new Map<string, vscode.CommentThread>();
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly review: Review) {
    this.controller.options = { prompt: vscode.l10n.t("Reject, and tell the model why"), placeHolder: vscode.l10n.t("Why not?") };
    this.disposables = [
      this.controller,
      this.removed,
      this.inserted,
      vscode.languages.registerCodeLensProvider({ scheme: "file" }, this),
      review.onDidChange(() => this.draw()),
      vscode.window.onDidChangeVisibleTextEditors(() => this.draw()),
    ];
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const hunks = this.review.pending(document.uri).filter((hunk) => hunk.range);
    return hunks.flatMap((hunk, index) => {
      const range = place(document, hunk);
      const lens = (title: string, command: string, tooltip?: string): vscode.CodeLens => new vscode.CodeLens(range, { title, command, tooltip, arguments: [hunk.hunkId] });
      const warnings = warning(hunk);
      return [
        lens(`$(check) ${vscode.l10n.t("Accept")}`, "kode.acceptHunk"),
        lens(`$(close) ${vscode.l10n.t("Reject")}`, "kode.rejectHunk"),
        lens(`$(edit) ${vscode.l10n.t("Edit")}`, "kode.editHunk", vscode.l10n.t("Accept with a text of your own")),
        lens(vscode.l10n.t("Edit {0} of {1}", index + 1, hunks.length), "kode.nextHunk", vscode.l10n.t("Go to the next one")),
        ...(warnings ? [lens(`$(warning) ${warnings}`, "kode.openDiff")] : []),
      ];
    });
  }

  private draw(): void {
    this.changed.fire();
    const wanted = new Set<string>();
    for (const editor of vscode.window.visibleTextEditors) {
      const { document } = editor;
      const hunks = this.review.pending(document.uri).filter((hunk) => hunk.range);
      const ranges = hunks.map((hunk) => ({ hunk, range: place(document, hunk) }));
      const hover = (hunk: FoldedHunk): vscode.MarkdownString => new vscode.MarkdownString().appendCodeblock(asDiff(hunk), "diff");
      const marks = (replaces: boolean): vscode.DecorationOptions[] =>
        ranges.filter(({ hunk }) => Boolean(hunk.oldText) === replaces).map(({ hunk, range }) => ({ range, hoverMessage: hover(hunk) }));
      editor.setDecorations(this.removed, marks(true));
      editor.setDecorations(this.inserted, marks(false));
      for (const { hunk, range } of ranges) {
        wanted.add(hunk.hunkId);
        this.thread(document.uri, hunk, range, ranges.length <= UNFOLDED);
      }
    }
    for (const [hunkId, thread] of this.threads) if (!wanted.has(hunkId)) this.drop(hunkId, thread);
  }

  private thread(uri: vscode.Uri, hunk: FoldedHunk, range: vscode.Range, unfolded: boolean): void {
    const known = this.threads.get(hunk.hunkId);
    if (known) {
      if (!known.range?.isEqual(range)) known.range = range;
      return;
    }
    const body = new vscode.MarkdownString();
    const warnings = warning(hunk);
    if (warnings) body.appendMarkdown(`$(warning) ${warnings}\n\n`);
    body.supportThemeIcons = true;
    body.appendCodeblock(asDiff(hunk), "diff");
    const comment: vscode.Comment = { author: { name: "kode" }, body, mode: vscode.CommentMode.Preview };
    const thread: vscode.CommentThread = this.controller.createCommentThread(uri, range, [comment]);
    thread.contextValue = hunk.hunkId; // what its buttons are about
    thread.label = vscode.l10n.t("Proposed edit");
    thread.canReply = true;
    thread.collapsibleState = unfolded ? vscode.CommentThreadCollapsibleState.Expanded : vscode.CommentThreadCollapsibleState.Collapsed;
    this.threads.set(hunk.hunkId, thread);
  }

  private drop(hunkId: string, thread: vscode.CommentThread): void {
    thread.dispose();
    this.threads.delete(hunkId);
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }
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
