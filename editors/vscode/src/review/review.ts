// What the user does with hunks. The sidecar knows where they stand and checks what was applied.
import * as vscode from "vscode";
import type { DecideParams, DecideResult, HunkDecision, UndoParams } from "../../../../protocol/kode";
import type { Sidecar } from "../client/sidecar";
import type { FoldedHunk } from "../../../../protocol/fold/fold";
import type { Sessions } from "../session/sessions";
import { inOrder, isPending, neighbour } from "./hunks";

const SETTLE_MS = 120;

export class Review implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  /** Hunks came, went, or stand elsewhere. */
  readonly onDidChange = this.changed.event;
  private readonly moved = new Set<string>();
  private timer: NodeJS.Timeout | undefined;
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
  ) {
    this.disposables = [
      this.changed,
      sessions.onDidChange((what) => {
        if (what !== "state") this.update();
      }),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.textChanged(document.uri)),
      vscode.window.onDidChangeActiveTextEditor(() => this.update()),
    ];
  }

  all(): FoldedHunk[] {
    return inOrder(this.sessions.all().flatMap((session) => [...session.fold.hunks.values()]));
  }

  pending(uri?: vscode.Uri): FoldedHunk[] {
    const wanted = uri?.toString();
    return this.all().filter((hunk) => isPending(hunk) && (wanted === undefined || sameFile(hunk.uri, wanted)));
  }

  find(hunkId: string): FoldedHunk | undefined {
    return this.all().find((hunk) => hunk.hunkId === hunkId);
  }

  /** The pending hunk at the cursor, or the nearest one in the file. */
  atCursor(): FoldedHunk | undefined {
    const editor = vscode.window.activeTextEditor;
    if (!editor) return undefined;
    const line = editor.selection.active.line;
    const distance = ({ range }: FoldedHunk): number => (!range ? 1e9 : line < range.start.line ? range.start.line - line : Math.max(0, line - range.end.line));
    return this.pending(editor.document.uri).sort((a, b) => distance(a) - distance(b))[0];
  }

  /** Go to the next pending hunk, in whatever file it is. */
  async go(back: boolean): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const here = editor && this.pending(editor.document.uri)[0];
    const path = here?.path ?? (editor ? vscode.workspace.asRelativePath(editor.document.uri) : "");
    const line = editor ? editor.selection.active.line : -1;
    const next = neighbour(this.pending(), path, here ? line : -1, back);
    if (next) await this.reveal(next);
    else vscode.window.setStatusBarMessage(vscode.l10n.t("No edits wait."), 3000);
  }

  async reveal(hunk: FoldedHunk): Promise<void> {
    if (!hunk.range) return void (await vscode.commands.executeCommand("kode.openDiff", hunk.uri));
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
    const pending = this.pending();
    const sensitive = pending.filter((hunk) => hunk.flags?.includes("sensitive") || hunk.mergeOf);
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
    const uris = new Set(hunks.filter((hunk) => hunk.kind !== "create").map((hunk) => hunk.uri));
    for (const uri of uris) await vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true));
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

  /** The sidecar moves hunks with the user's typing without a word, so it is asked. */
  private textChanged(uri: vscode.Uri): void {
    const pending = this.pending(uri);
    if (!pending.length) return;
    for (const { changeSetId } of pending) this.moved.add(changeSetId);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const changeSets = [...this.moved];
      this.moved.clear();
      for (const changeSetId of changeSets) this.sessions.refresh(changeSetId).catch(() => undefined); // gone with its process
    }, SETTLE_MS);
  }

  private update(): void {
    const editor = vscode.window.activeTextEditor;
    void vscode.commands.executeCommand("setContext", "kode.pending", this.pending().length > 0);
    void vscode.commands.executeCommand("setContext", "kode.pendingHere", editor !== undefined && this.pending(editor.document.uri).length > 0);
    this.changed.fire();
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const disposable of this.disposables) disposable.dispose();
  }
}

/** Editors and servers escape characters of a URI differently. */
function sameFile(a: string, b: string): boolean {
  return a === b || vscode.Uri.parse(a).toString() === b;
}
