// Texts that are only shown: files before and after the hunks that wait, in the editor's own comparison.
import * as vscode from "vscode";
import { proposedText, textBefore } from "./hunks";
import { isNotebook, type Review } from "./review";

export const PROPOSED = "kode-proposed";
export const BEFORE = "kode-before";
const TEXT = "kode-text";

export class Texts implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  /** What was last shown of each. */
  private readonly shown = new Map<string, string>();
  private count = 0;
  /** The files of the comparison that is open. */
  private compared: string[] = [];
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly review: Review) {
    this.disposables = [
      ...[PROPOSED, BEFORE, TEXT].map((scheme) => vscode.workspace.registerTextDocumentContentProvider(scheme, this)),
      review.onDidChange(() => void this.refresh()),
      vscode.window.tabGroups.onDidChangeTabs(() => void this.refresh()),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.shown.delete(uri.toString())),
    ];
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const text = await this.text(uri);
    this.shown.set(uri.toString(), text);
    return text;
  }

  private async text(uri: vscode.Uri): Promise<string> {
    if (uri.scheme === TEXT) return this.shown.get(uri.toString()) ?? "";
    const file = vscode.Uri.parse(uri.query, true);
    const hunks = this.review.waiting(file);
    return (uri.scheme === BEFORE ? textBefore : proposedText)(await buffer(file), hunks);
  }

  private async refresh(): Promise<void> {
    for (const { uri } of vscode.workspace.textDocuments)
      if ((uri.scheme === PROPOSED || uri.scheme === BEFORE) && (await this.text(uri)) !== this.shown.get(uri.toString())) this.changed.fire(uri);
    const rest = new Set(this.review.waiting().map(({ uri }) => uri));
    if (this.compared.every((uri) => rest.has(uri))) return;
    const open = vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.filter(({ label }) => label.startsWith(title())));
    // Files that are done leave the comparison, unless the user looks at something else just now.
    if (rest.size && !open.some(({ isActive }) => isActive)) return;
    this.compared = [];
    if (rest.size) await this.compareAll();
    const old = vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.filter((tab) => open.includes(tab)));
    if (old.length) await vscode.window.tabGroups.close(old);
  }

  /** All files with hunks that wait, in one comparison. */
  async compareAll(): Promise<void> {
    const files = new Map(this.review.waiting().map((hunk) => [hunk.uri, hunk.newUri]));
    const resources = [...files].map(([uri, newUri]) => {
      const file = vscode.Uri.parse(uri, true);
      return [file, before(file), proposed(file, newUri ? vscode.Uri.parse(newUri, true) : file)];
    });
    this.compared = [...files.keys()];
    if (resources.length) await vscode.commands.executeCommand("vscode.changes", title(), resources);
    else vscode.window.setStatusBarMessage(vscode.l10n.t("No edits wait."), 3000);
  }

  /** One file in the editor's own comparison. */
  async compare(file: vscode.Uri): Promise<void> {
    const name = vscode.l10n.t("{0} (proposed)", file.path.split("/").pop() ?? "");
    await vscode.commands.executeCommand("vscode.diff", before(file), proposed(file), name);
  }

  async show(name: string, text: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: TEXT, path: `/${name || "text"}`, query: String((this.count += 1)) });
    this.shown.set(uri.toString(), text);
    await vscode.window.showTextDocument(uri, { preview: true });
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }
}

function title(): string {
  return vscode.l10n.t("Edits that wait for you");
}

export function before(file: vscode.Uri): vscode.Uri {
  return file.with({ scheme: BEFORE, query: file.toString() });
}

function proposed(file: vscode.Uri, shownAs = file): vscode.Uri {
  return shownAs.with({ scheme: PROPOSED, query: file.toString() });
}

/** What an editor has of the file, or the disk; nothing for one that is not there. */
async function buffer(file: vscode.Uri): Promise<string> {
  const open = vscode.workspace.textDocuments.find(({ uri }) => uri.toString() === file.toString());
  if (open) return open.getText();
  // Opened as a text, a notebook would be told to the sidecar twice.
  if (isNotebook(file)) return vscode.workspace.fs.readFile(file).then((data) => new TextDecoder().decode(data), () => "");
  return vscode.workspace.openTextDocument(file).then(
    (document) => document.getText(),
    () => "",
  );
}
