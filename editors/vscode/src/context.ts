// Tells the sidecar what the user looks at, for the next prompt.
import * as vscode from "vscode";
import type { Sidecar } from "./client/sidecar";
import { plain } from "./language";

const SETTLE_MS = 200;

const contexts = new Map<string, boolean>();

/** What the `when` clauses of package.json ask for. */
export function setContext(name: "asks" | "running" | "pending" | "pendingHere" | "decided" | "demo", value: boolean): void {
  if (contexts.get(name) === value) return;
  contexts.set(name, value);
  void vscode.commands.executeCommand("setContext", `kode.${name}`, value);
}

export function tellContext(sidecar: Sidecar): vscode.Disposable {
  let timer: NodeJS.Timeout | undefined;
  const tell = (): void => {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.uri.scheme !== "file") return; // the chat has the focus, or an output
    const [visibleRange] = editor.visibleRanges;
    sidecar.notify("kode/editor/didChangeContext", { uri: editor.document.uri.toString(), selection: plain(editor.selection), visibleRange: visibleRange && plain(visibleRange) });
  };
  const soon = (): void => {
    clearTimeout(timer);
    timer = setTimeout(tell, SETTLE_MS);
  };
  return vscode.Disposable.from(
    vscode.window.onDidChangeActiveTextEditor(soon),
    vscode.window.onDidChangeTextEditorSelection(soon),
    sidecar.onDidChangeStatus((status) => status === "ready" && tell()),
    new vscode.Disposable(() => clearTimeout(timer)),
  );
}

/** Tells in which encoding each file will be saved: it may be unable to hold what the model writes. */
export function tellEncodings(sidecar: Sidecar): vscode.Disposable {
  const tell = (document: vscode.TextDocument): void => {
    const { encoding } = document as { encoding?: string }; // since VS Code 1.100
    if (encoding && document.uri.scheme === "file") sidecar.notify("kode/editor/didChangeEncoding", { uri: document.uri.toString(), encoding });
  };
  return vscode.Disposable.from(
    vscode.workspace.onDidOpenTextDocument(tell),
    vscode.workspace.onDidSaveTextDocument(tell),
    sidecar.onDidChangeStatus((status) => status === "ready" && vscode.workspace.textDocuments.forEach(tell)),
  );
}
