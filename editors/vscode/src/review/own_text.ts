// Accept a hunk with a text of one's own: written in its surroundings, in the file's language, in a document of its own.
import * as vscode from "vscode";
import type { FoldedHunk } from "../../../../protocol/fold/fold";
import { around, lines, ownText, withEol } from "./hunks";
import type { Review } from "./review";

const SCHEME = "kode-edit";

type Draft = { hunk: FoldedHunk; data: Uint8Array; before: string; after: string };

export class OwnText implements vscode.CodeLensProvider, vscode.FileSystemProvider, vscode.Disposable {
  private readonly drafts = new Map<string, Draft>();
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  readonly onDidChangeFile = new vscode.EventEmitter<vscode.FileChangeEvent[]>().event;
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly review: Review) {
    this.disposables = [
      vscode.workspace.registerFileSystemProvider(SCHEME, this),
      vscode.languages.registerCodeLensProvider({ scheme: SCHEME }, this),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.drafts.delete(uri.toString())),
    ];
  }

  async edit(hunk: FoldedHunk): Promise<void> {
    const file = vscode.Uri.parse(hunk.uri, true);
    const text = hunk.range ? (await vscode.workspace.openTextDocument(file)).getText() : "";
    const [before, after] = around(text, hunk);
    const eol = text.includes("\r\n") ? "\r\n" : "\n";
    const uri = file.with({ scheme: SCHEME, query: hunk.hunkId });
    this.drafts.set(uri.toString(), { hunk, data: Buffer.from(before + withEol(hunk.newText ?? "", eol) + after), before, after });
    const document = await vscode.workspace.openTextDocument(uri);
    const own = document.getText().slice(before.length, document.getText().length - after.length).replace(/[\r\n]+$/, "");
    const selection = new vscode.Range(document.positionAt(before.length), document.positionAt(before.length + own.length));
    await vscode.window.showTextDocument(document, { selection, preview: false });
    this.changed.fire();
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const draft = this.drafts.get(document.uri.toString());
    if (!draft) return [];
    const { line } = document.positionAt(draft.before.length);
    const top = new vscode.Range(line, 0, line, 0);
    return [
      new vscode.CodeLens(top, { title: `$(check) ${vscode.l10n.t("Accept with this text")}`, command: "kode.takeOwnText" }),
      new vscode.CodeLens(top, { title: `$(close) ${vscode.l10n.t("Leave it")}`, command: "kode.dropOwnText" }),
    ];
  }

  /** The text in front is the user's. */
  async take(): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    const draft = document && this.drafts.get(document.uri.toString());
    if (!document || !draft) return;
    const { hunk, before, after } = draft;
    const text = document.getText();
    if (!text.startsWith(before) || !text.endsWith(after) || text.length < before.length + after.length) {
      const count = lines(hunk.newText ?? "").length;
      return void vscode.window.showWarningMessage(vscode.l10n.t("Change only the {0} lines of the edit here; what is around them is changed in the file itself.", count));
    }
    // The text is given up only when it was taken.
    const newText = ownText(text.slice(before.length, text.length - after.length), hunk);
    if (!(await this.review.decide(hunk, { action: "replace", newText }))) return;
    await vscode.window.showTextDocument(document);
    await this.drop();
  }

  async drop(): Promise<void> {
    await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
  }

  /** Saving accepts nothing: the text only stays as it is. */
  writeFile(uri: vscode.Uri, data: Uint8Array): void {
    const draft = this.drafts.get(uri.toString());
    if (draft) draft.data = data;
  }

  readFile(uri: vscode.Uri): Uint8Array {
    const draft = this.drafts.get(uri.toString());
    if (!draft) throw vscode.FileSystemError.FileNotFound(uri);
    return draft.data;
  }

  stat(uri: vscode.Uri): vscode.FileStat {
    return { type: vscode.FileType.File, ctime: 0, mtime: 0, size: this.readFile(uri).length };
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }
}
