// Tells the sidecar what the user looks at, for the next prompt.
import * as vscode from "vscode";
import type { Sidecar } from "./client/sidecar";

const SETTLE_MS = 200;

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

function plain({ start, end }: vscode.Range) {
  return { start: { line: start.line, character: start.character }, end: { line: end.line, character: end.character } };
}
