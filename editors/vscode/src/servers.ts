// The MCP servers and how they are: start one, or decide on one that the project names.
import * as vscode from "vscode";
import type { McpServerView } from "../../../protocol/kode";
import type { Sidecar } from "./client/sidecar";

export async function showServers(sidecar: Sidecar): Promise<void> {
  const { servers, problems } = await sidecar.request("kode/mcp/list", {});
  const items = servers.map((server) => ({ label: server.name, description: state(server), detail: where(server), server }));
  const wrong = problems.map((problem) => ({ label: `$(warning) ${problem}`, server: undefined }));
  const placeHolder = items.length ? undefined : vscode.l10n.t("There are no MCP servers; kode-sidecar mcp add makes one.");
  const chosen = await vscode.window.showQuickPick([...items, ...wrong], { title: vscode.l10n.t("MCP servers"), placeHolder });
  if (chosen?.server) await decide(sidecar, chosen.server);
}

async function decide(sidecar: Sidecar, server: McpServerView): Promise<void> {
  const { name, fingerprint, source } = server;
  const [start, allow, refuse] = [vscode.l10n.t("Start it"), vscode.l10n.t("Allow it"), vscode.l10n.t("Refuse it")];
  const waits = server.state === "unapproved" || server.state === "refused";
  const verbs = [waits ? allow : start, ...(source === "project" ? [refuse] : [])];
  const gets = server.variables?.join(", ") || "–";
  const placeHolder = vscode.l10n.t("{0} in {1}, gets: {2}", where(server), server.folder ?? ".", gets);
  const verb = await vscode.window.showQuickPick(verbs, { title: name, placeHolder });
  if (verb === start) {
    const { tools } = await sidecar.request("kode/mcp/start", { name });
    vscode.window.setStatusBarMessage(vscode.l10n.t("{0} runs, and has {1} tools", name, tools.length), 5000);
  } else if (verb) {
    await sidecar.request("kode/mcp/decide", { name, fingerprint, allowed: verb === allow });
  }
}

function where(server: McpServerView): string {
  return server.url ?? (server.command ?? []).join(" ");
}

function state(server: McpServerView): string {
  const texts: Record<McpServerView["state"], string> = {
    unapproved: vscode.l10n.t("waits for your yes"),
    refused: vscode.l10n.t("refused by you"),
    idle: vscode.l10n.t("not started"),
    starting: vscode.l10n.t("starting"),
    ready: vscode.l10n.t("runs"),
    failed: vscode.l10n.t("failed"),
  };
  return [texts[server.state], server.lastError].filter(Boolean).join(" · ");
}
