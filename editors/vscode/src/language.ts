// What the language servers of this VS Code know, for the model: the answers to `kode/editor/*`.
import * as vscode from "vscode";
import type { EditorDiagnostic, EditorLocation, EditorPlaceParams, EditorSymbol, Range } from "../../../protocol/kode";
import type { Answers } from "./client/answers";

const AFTER_EDIT_MS = 4_000;

/** What is announced in the handshake. */
export const EDITOR_QUERIES = { diagnostics: {}, definition: {}, references: {}, symbols: {}, hover: {}, rename: {} };

export const languageAnswers = {
  "kode/editor/diagnostics": async ({ uri, afterEdit }, cancelled) => {
    const target = uri === undefined ? undefined : vscode.Uri.parse(uri, true);
    if (target && afterEdit) await nextDiagnostics(target, cancelled);
    const all: [vscode.Uri, vscode.Diagnostic[]][] = target ? [[target, vscode.languages.getDiagnostics(target)]] : vscode.languages.getDiagnostics();
    const told = all.filter(([, found]) => found.length > 0);
    return { files: told.map(([file, found]) => ({ uri: file.toString(), diagnostics: found.map(diagnostic) })) };
  },
  "kode/editor/definition": (params) => locations("vscode.executeDefinitionProvider", params),
  "kode/editor/references": (params) => locations("vscode.executeReferenceProvider", params),
  "kode/editor/symbols": async ({ uri, query }) => {
    if (uri === undefined) {
      const found = await execute<vscode.SymbolInformation[]>("vscode.executeWorkspaceSymbolProvider", query ?? "");
      return { symbols: (found ?? []).map((one) => symbol(one.name, one.kind, one.location.uri, one.location.range, one.containerName)) };
    }
    const file = await opened(uri);
    const found = await execute<(vscode.DocumentSymbol | vscode.SymbolInformation)[]>("vscode.executeDocumentSymbolProvider", file);
    return { symbols: flat(found ?? [], file, "") };
  },
  "kode/editor/hover": async ({ uri, position }) => {
    const found = await execute<vscode.Hover[]>("vscode.executeHoverProvider", await opened(uri), place(position));
    const told = (found ?? []).flatMap(({ contents }) => contents.map((part) => (typeof part === "string" ? part : part.value)));
    return { text: told.join("\n\n") };
  },
  "kode/editor/rename": async ({ uri, position, newName }) => {
    try {
      const edit = await execute<vscode.WorkspaceEdit>("vscode.executeDocumentRenameProvider", await opened(uri), place(position), newName);
      const files = (edit?.entries() ?? []).map(([file, edits]) => ({
        uri: file.toString(),
        edits: edits.map(({ range, newText }) => ({ range: plain(range), newText })),
      }));
      return { files };
    } catch (error) {
      return { files: [], refused: error instanceof Error ? error.message : String(error) };
    }
  },
} satisfies Partial<Answers>;

function execute<T>(command: string, ...values: unknown[]): Thenable<T | undefined> {
  return vscode.commands.executeCommand<T | undefined>(command, ...values);
}

/** Servers answer for documents that are open, shown or not. */
async function opened(uri: string): Promise<vscode.Uri> {
  return (await vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true))).uri;
}

async function locations(command: string, { uri, position }: EditorPlaceParams): Promise<{ locations: EditorLocation[] }> {
  const found = await execute<(vscode.Location | vscode.LocationLink)[]>(command, await opened(uri), place(position));
  return {
    locations: (found ?? []).map((one) =>
      "targetUri" in one
        ? { uri: one.targetUri.toString(), range: plain(one.targetSelectionRange ?? one.targetRange) }
        : { uri: one.uri.toString(), range: plain(one.range) },
    ),
  };
}

function flat(found: (vscode.DocumentSymbol | vscode.SymbolInformation)[], file: vscode.Uri, container: string): EditorSymbol[] {
  return found.flatMap((one) =>
    "children" in one
      ? [symbol(one.name, one.kind, file, one.selectionRange, container), ...flat(one.children, file, one.name)]
      : [symbol(one.name, one.kind, file, one.location.range, one.containerName)],
  );
}

/** LSP counts kinds from 1, VS Code from 0. */
function symbol(name: string, kind: vscode.SymbolKind, file: vscode.Uri, range: vscode.Range, container: string): EditorSymbol {
  return { name, kind: kind + 1, uri: file.toString(), range: plain(range), ...(container ? { container } : {}) };
}

function diagnostic({ range, message, severity, source, code }: vscode.Diagnostic): EditorDiagnostic {
  const name = typeof code === "object" ? code.value : code;
  return { range: plain(range), message, severity: severity + 1, source: source ?? "", code: name === undefined ? "" : String(name) };
}

function nextDiagnostics(file: vscode.Uri, cancelled: vscode.CancellationToken): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      heard.dispose();
      stopped.dispose();
      resolve();
    };
    const heard = vscode.languages.onDidChangeDiagnostics(({ uris }) => {
      if (uris.some((one) => one.toString() === file.toString())) done();
    });
    const stopped = cancelled.onCancellationRequested(done);
    const timer = setTimeout(done, AFTER_EDIT_MS);
  });
}

function place({ line, character }: { line: number; character: number }): vscode.Position {
  return new vscode.Position(line, character);
}

/** As it travels. */
export function plain({ start, end }: vscode.Range): Range {
  return { start: { line: start.line, character: start.character }, end: { line: end.line, character: end.character } };
}
