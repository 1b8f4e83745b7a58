// Accept a hunk with a text of one's own: written in an untitled document, taken by its code lens.
import * as vscode from "vscode";
import type { FoldedHunk } from "../../../../protocol/fold/fold";
import { ownText } from "./hunks";
import type { Review } from "./review";

export class OwnText implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly open = new Map<string, FoldedHunk>();
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly review: Review) {
    this.disposables = [
      vscode.languages.registerCodeLensProvider({ scheme: "untitled" }, this),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.open.delete(uri.toString())),
    ];
  }

  async edit(hunk: FoldedHunk): Promise<void> {
    const original = await vscode.workspace.openTextDocument(vscode.Uri.parse(hunk.uri, true));
    const document = await vscode.workspace.openTextDocument({ language: original.languageId, content: hunk.newText ?? "" });
    this.open.set(document.uri.toString(), hunk);
    await vscode.window.showTextDocument(document);
    this.changed.fire();
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const hunk = this.open.get(document.uri.toString());
    if (!hunk) return [];
    const top = new vscode.Range(0, 0, 0, 0);
    return [
      new vscode.CodeLens(top, { title: `$(check) ${vscode.l10n.t("Accept with this text")}`, command: "kode.takeOwnText" }),
      new vscode.CodeLens(top, { title: `$(close) ${vscode.l10n.t("Leave it")}`, command: "kode.dropOwnText" }),
    ];
  }

  /** The text in front is the user's. */
  async take(): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    const hunk = document && this.open.get(document.uri.toString());
    if (!document || !hunk) return;
    // The text is given up only when it was taken.
    const newText = ownText(document.getText(), hunk);
    if (!(await this.review.decide(hunk, { action: "replace", newText }))) return;
    await vscode.window.showTextDocument(document);
    await this.drop();
  }

  async drop(): Promise<void> {
    await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }
}
