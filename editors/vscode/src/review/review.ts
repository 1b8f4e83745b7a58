// What the user does with hunks. The sidecar knows where they stand and checks what was applied.
import * as vscode from "vscode";
import type { DecideParams, DecideResult, HunkDecision, UndoParams } from "../../../../protocol/kode";
import type { Sidecar } from "../client/sidecar";
import { setContext } from "../context";
import type { FoldedHunk } from "../../../../protocol/fold/fold";
import type { Sessions } from "../session/sessions";
import { inOrder, isToKeep, neighbour, proposedLine, waits } from "./hunks";

export class Review implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  /** Hunks came, went, or stand elsewhere. */
  readonly onDidChange = this.changed.event;
  private ordered: FoldedHunk[] | undefined;
  /** Those that wait, by their files as the editor writes them. */
  private byFile: Map<string, FoldedHunk[]> | undefined;
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
  ) {
    this.disposables = [
      this.changed,
      sessions.onDidChange((what) => {
        if (what === "state") return;
        this.ordered = this.byFile = undefined;
        this.update();
      }),
      vscode.window.onDidChangeActiveTextEditor(() => this.update()),
    ];
  }

  all(): FoldedHunk[] {
    this.ordered ??= inOrder(this.sessions.all().flatMap((session) => [...session.fold.hunks.values()]));
    return this.ordered;
  }

  /** The hunks that wait for the user: all of them, or those that a document shows. */
  waiting(uri?: vscode.Uri): FoldedHunk[] {
    if (!this.byFile) {
      this.byFile = new Map();
      for (const hunk of this.all().filter(waits)) {
        const file = vscode.Uri.parse(hunk.uri).toString();
        this.byFile.set(file, [...(this.byFile.get(file) ?? []), hunk]);
      }
    }
    return uri ? (this.byFile.get(fileOf(uri).toString()) ?? []) : [...this.byFile.values()].flat();
  }

  find(hunkId: string): FoldedHunk | undefined {
    return this.all().find((hunk) => hunk.hunkId === hunkId);
  }

  /** The hunk at the cursor, or the nearest one in the file. */
  atCursor(): FoldedHunk | undefined {
    const editor = vscode.window.activeTextEditor;
    return editor && this.near(editor.document.uri, editor.selection.active.line);
  }

  near(uri: vscode.Uri, line: number): FoldedHunk | undefined {
    const hunks = this.waiting(uri);
    const distance = (hunk: FoldedHunk): number => {
      if (!hunk.range) return 1e9;
      const start = uri.scheme === "file" ? hunk.range.start.line : proposedLine(hunks, hunk);
      const end = start + hunk.range.end.line - hunk.range.start.line;
      return line < start ? start - line : Math.max(0, line - end);
    };
    return [...hunks].sort((a, b) => distance(a) - distance(b))[0];
  }

  /** Go to the next hunk that waits, in whatever file it is. */
  async go(back: boolean): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const here = editor && this.waiting(editor.document.uri)[0];
    const path = here?.path ?? (editor ? vscode.workspace.asRelativePath(editor.document.uri) : "");
    const line = editor ? editor.selection.active.line : -1;
    const next = neighbour(this.waiting(), path, here ? line : -1, back);
    if (next) await this.reveal(next);
    else vscode.window.setStatusBarMessage(vscode.l10n.t("No edits wait."), 3000);
  }

  async reveal(hunk: FoldedHunk): Promise<void> {
    if (!hunk.range || isNotebook(vscode.Uri.parse(hunk.uri, true))) return void (await vscode.commands.executeCommand("kode.openDiff", hunk.uri));
    await this.sessions.refresh(hunk.changeSetId);
    const line = (this.find(hunk.hunkId) ?? hunk).range?.start.line ?? 0;
    const editor = await vscode.window.showTextDocument(vscode.Uri.parse(hunk.uri, true));
    const place = new vscode.Position(Math.min(line, editor.document.lineCount - 1), 0);
    editor.selection = new vscode.Selection(place, place);
    editor.revealRange(new vscode.Range(place, place), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }

  /** True when the decision was carried out: an accepted hunk is applied. */
  async decide(hunk: FoldedHunk, decision: Omit<HunkDecision, "hunkId">): Promise<boolean> {
    const told = await this.send(hunk.changeSetId, [hunk], { decisions: [{ hunkId: hunk.hunkId, ...decision }] });
    return (decision.action === "reject" ? told.rejected : told.applied).includes(hunk.hunkId);
  }

  /** Accept or reject all that waits now; what is sensitive must be named and is asked about. */
  async decideAll(action: "accept" | "reject"): Promise<void> {
    const pending = this.waiting();
    const sensitive = pending.filter((hunk) => !isToKeep(hunk) && (hunk.flags?.includes("sensitive") || hunk.mergeOf));
    const named = action === "accept" && sensitive.length ? await this.confirm(sensitive) : [];
    for (const changeSetId of new Set(pending.map((hunk) => hunk.changeSetId))) {
      const session = this.sessions.ofChangeSet(changeSetId);
      if (!session) continue;
      const own = pending.filter((hunk) => hunk.changeSetId === changeSetId);
      const decisions = named.filter((hunk) => hunk.changeSetId === changeSetId).map(({ hunkId }) => ({ hunkId, action }));
      await this.send(changeSetId, own, { rest: action, seenSeq: session.fold.seq, decisions });
    }
  }

  /** Take back what was applied; the same call again puts it back. */
  async undo(scope: Pick<UndoParams, "hunkId" | "turnId" | "changeSetId">): Promise<void> {
    let told = await this.sidecar.request("kode/changeSet/undo", scope);
    if (told.conflicts.length) {
      const anyway = vscode.l10n.t("Take back the others");
      const detail = told.conflicts.map(({ diff }) => diff).join("\n").slice(0, 2000);
      const message = vscode.l10n.t("{0} of these edits were changed by you since. Nothing was taken back.", told.conflicts.length);
      if ((await vscode.window.showWarningMessage(message, { modal: true, detail }, anyway)) !== anyway) return;
      told = await this.sidecar.request("kode/changeSet/undo", { ...scope, skipConflicts: true });
    }
    const text = told.restored.length
      ? vscode.l10n.t("{0} edits were put back.", told.restored.length)
      : told.undone.length
        ? vscode.l10n.t("{0} edits were taken back. The same command again puts them back.", told.undone.length)
        : vscode.l10n.t("There is nothing to take back.");
    vscode.window.setStatusBarMessage(text, 5000);
  }

  /** The newest turn with edits that were applied or taken back. */
  lastTurn(): string | undefined {
    const touched = this.sessions.shown ? [...this.sessions.shown.fold.hunks.values()] : [];
    return touched.filter(({ state }) => state === "applied" || state === "replaced" || state === "undone").at(-1)?.turnId;
  }

  private async send(changeSetId: string, hunks: readonly FoldedHunk[], how: Omit<DecideParams, "changeSetId">): Promise<DecideResult> {
    // An open document is synced, so that the sidecar can see whether the edit has landed.
    const uris = new Set(hunks.filter((hunk) => hunk.range).map((hunk) => hunk.uri));
    const files = [...uris].map((uri) => vscode.Uri.parse(uri, true)).filter((file) => !isNotebook(file));
    await Promise.all(files.map((file) => vscode.workspace.openTextDocument(file)));
    const told = await this.sidecar.request("kode/changeSet/decide", { changeSetId, ...how });
    this.report(told);
    return told;
  }

  private report({ conflicts, stale, verified }: DecideResult): void {
    if (conflicts.length || verified === false)
      void vscode.window.showWarningMessage(vscode.l10n.t("An edit was not applied: the text there has changed. See the changes."));
    else if (stale.length) void vscode.window.showWarningMessage(vscode.l10n.t("An edit is out of date: its file was closed or changed. Ask for it again."));
  }

  private async confirm(sensitive: FoldedHunk[]): Promise<FoldedHunk[]> {
    const yes = vscode.l10n.t("Accept these, too");
    const paths = [...new Set(sensitive.map(({ path }) => path))].join("\n");
    const message = vscode.l10n.t("{0} edits are of files that can run code later. Look at them first.", sensitive.length);
    return (await vscode.window.showWarningMessage(message, { modal: true, detail: paths }, yes)) === yes ? sensitive : [];
  }

  private update(): void {
    const editor = vscode.window.activeTextEditor;
    setContext("pending", this.waiting().length > 0);
    setContext("pendingHere", editor !== undefined && this.waiting(editor.document.uri).length > 0);
    setContext("decided", this.lastTurn() !== undefined);
    this.changed.fire();
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }
}

/** Is it open as cells? Its hunks have places in its JSON. */
export function isNotebook(file: vscode.Uri): boolean {
  return vscode.workspace.notebookDocuments.some(({ uri }) => uri.toString() === file.toString());
}

/** The file that a document shows: itself, or the one that a comparison is about. */
function fileOf(uri: vscode.Uri): vscode.Uri {
  return uri.scheme.startsWith("kode-") && uri.query ? vscode.Uri.parse(uri.query, true) : uri;
}
