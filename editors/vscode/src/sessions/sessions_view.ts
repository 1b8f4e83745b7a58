// The sessions that are kept, forks below the ones they came from.
import * as vscode from "vscode";
import type { SessionView } from "../../../../protocol/kode";
import type { Sidecar } from "../client/sidecar";
import type { Sessions } from "../session/sessions";

/** Older ones are found by searching. */
const NEWEST = 300;

export class SessionsView implements vscode.TreeDataProvider<SessionView>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<SessionView>;
  private sessionViews: SessionView[] = [];
  private query = "";
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
  ) {
    this.view = vscode.window.createTreeView("kode.sessions", { treeDataProvider: this, showCollapseAll: true });
    let running = false;
    this.disposables = [
      this.view,
      this.view.onDidChangeVisibility(({ visible }) => visible && this.refresh()),
      sessions.onDidChange((what) => {
        const { shown } = sessions;
        if (what === "shown" || (running && !shown?.running)) void this.refresh();
        running = shown?.running ?? false;
      }),
      sidecar.onDidChangeStatus((status) => status === "ready" && this.refresh()),
    ];
  }

  async refresh(): Promise<void> {
    if (!this.view.visible) return;
    const { sessions } = await this.sidecar.request("kode/session/list", { limit: NEWEST, query: this.query || undefined });
    this.sessionViews = sessions;
    this.view.message = this.query ? vscode.l10n.t("Sessions with “{0}”", this.query) : undefined;
    this.changed.fire();
  }

  async search(): Promise<void> {
    const query = await vscode.window.showInputBox({ title: vscode.l10n.t("Search in titles, prompts and answers"), value: this.query });
    if (query === undefined) return;
    this.query = query;
    await vscode.commands.executeCommand("kode.sessions.focus");
    await this.refresh();
  }

  getChildren(parent?: SessionView): SessionView[] {
    const known = new Set(this.sessionViews.map(({ sessionId }) => sessionId));
    return this.sessionViews.filter((view) => {
      const origin = originOf(view);
      return parent ? origin === parent.sessionId : origin === undefined || !known.has(origin);
    });
  }

  getTreeItem(view: SessionView): vscode.TreeItem {
    const forks = this.sessionViews.some((other) => originOf(other) === view.sessionId);
    const item = new vscode.TreeItem(view.title || vscode.l10n.t("Untitled"), forks ? vscode.TreeItemCollapsibleState.Expanded : vscode.TreeItemCollapsibleState.None);
    // The editor remembers by the id that something without children was folded.
    item.id = forks ? `${view.sessionId}/forks` : view.sessionId;
    item.contextValue = "kode.session";
    item.description = [view.sessionId === this.sessions.shown?.id ? "●" : "", ago(view.updatedAt)].filter(Boolean).join(" ");
    item.iconPath = new vscode.ThemeIcon(view.activeTurnId ? "loading~spin" : originOf(view) ? "repo-forked" : "comment");
    item.tooltip = `${view.title}\n${view.model} · ${view.mode} · ${view.agent}\n${new Date(view.updatedAt).toLocaleString(vscode.env.language)}`;
    item.command = { command: "kode.openSession", title: "", arguments: [view.sessionId] };
    return item;
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }
}

function originOf({ meta }: SessionView): string | undefined {
  return (meta.forkedFrom as { sessionId?: string } | undefined)?.sessionId;
}

function ago(time: string): string {
  const minutes = Math.round((Date.parse(time) - Date.now()) / 60_000);
  const format = new Intl.RelativeTimeFormat(vscode.env.language, { numeric: "auto", style: "short" });
  if (minutes > -60) return format.format(minutes, "minute");
  if (minutes > -60 * 24) return format.format(Math.round(minutes / 60), "hour");
  return format.format(Math.round(minutes / 60 / 24), "day");
}
