// What a user can give along with a prompt: a selection, a file, the problems of a file.
import * as vscode from "vscode";
import type { Sidecar } from "../client/sidecar";
import { type Offer, attached, firstPlace, offers } from "../session/server_resources";
import type { Attachment } from "./messages";

const MAX_LISTED_PROBLEMS = 100;

export function selection(editor: vscode.TextEditor): Attachment {
  const { document, selection: range } = editor;
  const last = range.end.character === 0 && range.end.line > range.start.line ? range.end.line : range.end.line + 1;
  const path = vscode.workspace.asRelativePath(document.uri);
  const startLine = range.start.line + 1;
  const whole = new vscode.Range(range.start.line, 0, last, 0);
  return {
    label: `${basename(path)}:${startLine}-${last}`,
    title: path,
    block: {
      type: "resource",
      uri: document.uri.toString(),
      text: document.getText(document.validateRange(whole)),
      languageId: document.languageId,
      startLine,
      endLine: last,
    },
  };
}

export function file(uri: vscode.Uri): Attachment {
  const path = vscode.workspace.asRelativePath(uri);
  return { label: basename(path), title: path, block: { type: "resource", uri: uri.toString() } };
}

/** The problems that the editor shows in a file, as text: the protocol has no block for them. */
export function problems(uri: vscode.Uri): Attachment | undefined {
  const found = vscode.languages.getDiagnostics(uri);
  if (!found.length) return undefined;
  const path = vscode.workspace.asRelativePath(uri);
  const lines = found.slice(0, MAX_LISTED_PROBLEMS).map(({ range, severity, message, source }) => {
    const kind = vscode.DiagnosticSeverity[severity].toLowerCase();
    return `${path}:${range.start.line + 1}:${range.start.character + 1}: ${kind}: ${message}${source ? ` (${source})` : ""}`;
  });
  return {
    label: vscode.l10n.t("{0} problems", found.length),
    title: path,
    block: { type: "text", text: `Problems that the editor shows:\n${lines.join("\n")}` },
  };
}

type Made = Attachment | readonly Attachment[] | undefined;

/** Let the user choose a file or picture of the workspace, anything that is open, or what an MCP server has. */
export async function pick(sidecar: Sidecar): Promise<readonly Attachment[]> {
  const editor = vscode.window.activeTextEditor;
  const uri = editor?.document.uri;
  const items: (vscode.QuickPickItem & { make(): Made | Promise<Made> })[] = [];
  if (editor && !editor.selection.isEmpty)
    items.push({ label: `$(selection) ${vscode.l10n.t("Selection")}`, description: selection(editor).label, make: () => selection(editor) });
  if (uri && vscode.languages.getDiagnostics(uri).length)
    items.push({ label: `$(warning) ${vscode.l10n.t("Problems")}`, description: vscode.workspace.asRelativePath(uri), make: () => problems(uri) });
  items.push({ label: `$(file-media) ${vscode.l10n.t("Picture …")}`, make: picture });
  const { servers } = sidecar.status === "ready" ? await sidecar.request("kode/mcp/list", {}) : { servers: [] };
  for (const offer of offers(servers))
    items.push({ label: `$(plug) ${offer.name}`, description: `${offer.server}:${offer.uri}`, make: () => resource(sidecar, offer) });
  const open = vscode.workspace.textDocuments.filter((document) => document.uri.scheme === "file").map((document) => document.uri);
  const others = await vscode.workspace.findFiles("**/*", "**/{node_modules,.git,.venv,dist,build}/**", 2000);
  const seen = new Set<string>();
  for (const each of [...open, ...others]) {
    if (seen.has(each.toString())) continue;
    seen.add(each.toString());
    items.push({ label: `$(file) ${basename(each.path)}`, description: vscode.workspace.asRelativePath(each), make: () => file(each) });
  }
  const title = vscode.l10n.t("Add to the prompt");
  const chosen = await vscode.window.showQuickPick(items, { title, matchOnDescription: true });
  const made = await chosen?.make();
  return made ? [made].flat() : [];
}

async function resource(sidecar: Sidecar, { server, uri: offered, isTemplate }: Offer): Promise<readonly Attachment[]> {
  const box = { title: server, value: offered, valueSelection: firstPlace(offered) };
  const uri = isTemplate ? await vscode.window.showInputBox(box) : offered;
  return uri ? attached(server, uri, (await sidecar.request("kode/mcp/read", { name: server, uri })).input) : [];
}

async function picture(): Promise<Attachment | undefined> {
  const [uri] = (await vscode.window.showOpenDialog({ filters: { Images: ["png", "jpg", "jpeg", "gif", "webp"] } })) ?? [];
  if (!uri) return undefined;
  const data = Buffer.from(await vscode.workspace.fs.readFile(uri)).toString("base64");
  const kind = uri.path.split(".").pop()?.toLowerCase() ?? "png";
  return { label: basename(uri.path), title: uri.path, block: { type: "image", mediaType: `image/${kind === "jpg" ? "jpeg" : kind}`, data } };
}

function basename(path: string): string {
  return path.split(/[\\/]/).pop() ?? path;
}
