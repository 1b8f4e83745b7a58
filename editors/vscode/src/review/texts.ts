// Texts that are only shown: a file as it would be with its pending hunks, and whole tool results.
import * as vscode from "vscode";
import type { Review } from "./review";
import { withHunks } from "./hunks";

const PROPOSED = "kode-proposed";
const EMPTY = "kode-empty";
const TEXT = "kode-text";

export class Texts implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly kept = new Map<string, string>();
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly review: Review) {
    this.disposables = [
      ...[PROPOSED, EMPTY, TEXT].map((scheme) => vscode.workspace.registerTextDocumentContentProvider(scheme, this)),
      review.onDidChange(() => {
        for (const { uri } of vscode.workspace.textDocuments) if (uri.scheme === PROPOSED) this.changed.fire(uri);
      }),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.kept.delete(uri.toString())),
    ];
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    if (uri.scheme === EMPTY) return "";
    if (uri.scheme === TEXT) return this.kept.get(uri.toString()) ?? "";
    const file = vscode.Uri.parse(uri.query, true);
    const hunks = this.review.pending(file);
    const created = hunks.find((hunk) => hunk.kind === "create");
    if (created) return created.newText ?? "";
    if (hunks.some((hunk) => hunk.kind === "delete")) return "";
    return withHunks((await vscode.workspace.openTextDocument(file)).getText(), hunks);
  }

  /** The editor's own comparison: the buffer, and the buffer with all pending hunks. */
  async compare(file: vscode.Uri): Promise<void> {
    const created = this.review.pending(file).some((hunk) => hunk.kind === "create");
    const left = created ? file.with({ scheme: EMPTY }) : file;
    const right = file.with({ scheme: PROPOSED, query: file.toString() });
    const title = vscode.l10n.t("{0} (proposed)", file.path.split("/").pop() ?? "");
    await vscode.commands.executeCommand("vscode.diff", left, right, title);
  }

  async show(title: string, text: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: TEXT, path: `/${title || "text"}`, query: String(this.kept.size) });
    this.kept.set(uri.toString(), text);
    await vscode.window.showTextDocument(uri, { preview: true });
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }
}
