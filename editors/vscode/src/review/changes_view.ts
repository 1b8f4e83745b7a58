// All touched files, with what became of every hunk.
import * as vscode from "vscode";
import type { FoldedChangeSet, FoldedHunk } from "../../../../protocol/fold/fold";
import type { Sessions } from "../session/sessions";
import { canBeUndone, isPending, isToKeep, waits } from "./hunks";
import type { Review } from "./review";

export type Node = { kind: "changeSet"; set: FoldedChangeSet } | { kind: "file"; uri: string; path: string; set: FoldedChangeSet; folded: boolean } | { kind: "hunk"; hunk: FoldedHunk };

const SETTLE_MS = 50;
/** More files than this are folded: an unfolded tree is told whole with each change. */
const MAX_UNFOLDED = 12;

const ICONS: Record<FoldedHunk["state"], string> = {
  proposed: "circle-outline",
  applied: "check",
  replaced: "edit",
  rejected: "close",
  superseded: "arrow-right",
  stale: "clock",
  conflict: "warning",
  diverged: "warning",
  undone: "discard",
};

export class ChangesView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<Node>;
  private readonly listener: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly review: Review,
    private readonly sessions: Sessions,
  ) {
    this.view = vscode.window.createTreeView("kode.changes", { treeDataProvider: this });
    this.listener = review.onDidChange(() => {
      const waiting = review.waiting().length;
      this.view.badge = waiting ? { value: waiting, tooltip: vscode.l10n.t("{0} edits wait for you", waiting) } : undefined;
      this.timer ??= setTimeout(() => {
        this.timer = undefined;
        this.changed.fire();
      }, SETTLE_MS);
    });
  }

  getChildren(node?: Node): Node[] {
    const { shown } = this.sessions;
    if (!shown) return [];
    if (!node) return [...shown.fold.changeSets.values()].reverse().map((set) => ({ kind: "changeSet", set }));
    const hunks = this.review.all().filter((hunk) => (node.kind === "hunk" ? false : hunk.changeSetId === node.set.id) && hunk.state !== "superseded");
    if (node.kind === "changeSet") {
      const files = new Map(hunks.map((hunk) => [hunk.uri, hunk.path]));
      return [...files].map(([uri, path]) => ({ kind: "file", uri, path, set: node.set, folded: files.size > MAX_UNFOLDED }));
    }
    return node.kind === "file" ? hunks.filter((hunk) => hunk.uri === node.uri).map((hunk) => ({ kind: "hunk", hunk })) : [];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if (node.kind === "changeSet") return this.changeSetItem(node.set);
    if (node.kind === "file") {
      const item = new vscode.TreeItem(vscode.Uri.parse(node.uri), node.folded ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.Expanded);
      item.id = `${node.set.id}/${node.uri}`;
      item.description = node.path.includes("/") ? node.path.slice(0, node.path.lastIndexOf("/")) : "";
      item.contextValue = "kode.file";
      return item;
    }
    return hunkItem(node.hunk);
  }

  private changeSetItem(set: FoldedChangeSet): vscode.TreeItem {
    const hunks = this.review.all().filter((hunk) => hunk.changeSetId === set.id);
    const waiting = hunks.filter(waits).length;
    const names = [...new Set(hunks.map(({ path }) => path.split("/").pop()))];
    const item = new vscode.TreeItem(names.slice(0, 3).join(", ") + (names.length > 3 ? ` +${names.length - 3}` : ""), vscode.TreeItemCollapsibleState.Expanded);
    item.id = set.id;
    item.description = waiting ? vscode.l10n.t("{0} wait", waiting) : vscode.l10n.t("decided");
    item.contextValue = hunks.some((hunk) => canBeUndone(hunk) || hunk.state === "undone") ? "kode.changeSet" : "kode.changeSet.none";
    return item;
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.listener.dispose();
    this.view.dispose();
  }
}

function hunkItem(hunk: FoldedHunk): vscode.TreeItem {
  const first = (hunk.newText || hunk.oldText || hunk.newPath || "").split(/\r?\n/).find((line) => line.trim()) ?? "";
  const kinds: Record<string, string> = { create: vscode.l10n.t("new file"), delete: vscode.l10n.t("delete the file"), rename: vscode.l10n.t("rename to {0}", hunk.newPath ?? "") };
  const item = new vscode.TreeItem(kinds[hunk.kind ?? ""] ?? first.trim());
  item.id = `${hunk.hunkId}`;
  item.description = [hunk.range ? String(hunk.range.start.line + 1) : "", isToKeep(hunk) ? vscode.l10n.t("keep or undo?") : stateText(hunk.state), hunk.reason ?? ""].filter(Boolean).join(" · ");
  item.iconPath = new vscode.ThemeIcon(ICONS[hunk.state] ?? "circle-outline");
  item.contextValue = isPending(hunk) ? "kode.hunk.proposed" : isToKeep(hunk) ? "kode.hunk.toKeep" : canBeUndone(hunk) || hunk.state === "undone" ? "kode.hunk.applied" : "kode.hunk";
  item.tooltip = new vscode.MarkdownString().appendCodeblock(hunk.diff ?? `${hunk.oldText ?? ""}\n→\n${hunk.newText ?? ""}`, "diff");
  item.command = { command: "kode.revealHunk", title: "", arguments: [hunk.hunkId] };
  return item;
}

function stateText(state: FoldedHunk["state"]): string {
  const names: Record<FoldedHunk["state"], string> = {
    proposed: vscode.l10n.t("waits"),
    applied: vscode.l10n.t("applied"),
    replaced: vscode.l10n.t("applied with your text"),
    rejected: vscode.l10n.t("rejected"),
    superseded: vscode.l10n.t("superseded"),
    stale: vscode.l10n.t("out of date"),
    conflict: vscode.l10n.t("conflict"),
    diverged: vscode.l10n.t("landed differently"),
    undone: vscode.l10n.t("taken back"),
  };
  return names[state] ?? state;
}
