// What code reviews found: a list by file, and a comment at each place. The diagnostics come from the sidecar.
import * as vscode from "vscode";
import type { FindingView } from "../../../../protocol/kode";
import type { Sidecar } from "../client/sidecar";
import type { OpenSession, Sessions } from "../session/sessions";

export type FindingNode = { kind: "file"; path: string; uri: string } | { kind: "finding"; found: FindingView };
/** What a command on a finding is called with: from the list, a comment, a code action, or nothing. */
export type FindingArgument = FindingNode | vscode.CommentThread | string | undefined;

const ICONS: Record<FindingView["severity"], string> = { error: "error", warning: "warning", info: "info", nit: "lightbulb" };
const SOURCE = "kode review";

export class Findings implements vscode.TreeDataProvider<FindingNode>, vscode.CodeActionProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<FindingNode>;
  private readonly controller = vscode.comments.createCommentController("kode.findings", "kode");
  private readonly threads = new Map<string, vscode.CommentThread>();
  private drawn: readonly FindingView[] = [];
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
  ) {
    this.view = vscode.window.createTreeView("kode.findings", { treeDataProvider: this });
    const kinds = { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] };
    this.disposables = [
      this.view,
      this.controller,
      vscode.languages.registerCodeActionsProvider({ scheme: "file" }, this, kinds),
      sessions.onEvents(() => this.update()),
      sessions.onSnapshot(() => this.update()),
      sessions.onDidChange(() => this.update()),
      vscode.languages.onDidChangeDiagnostics(({ uris }) => {
        const changed = new Set(uris.map(String));
        if (this.drawn.some((found) => changed.has(String(document(found))))) this.draw();
      }),
    ];
  }

  /** Those of the session that is shown, the open ones first. */
  all(): FindingView[] {
    const rank = ({ state }: FindingView): number => Number(state !== "open");
    return [...(this.sessions.shown?.fold.findings ?? [])].sort((a, b) => rank(a) - rank(b));
  }

  getChildren(node?: FindingNode): FindingNode[] {
    const found = this.all();
    if (!node) return [...new Map(found.map(({ path, uri }) => [path, uri]))].map(([path, uri]) => ({ kind: "file", path, uri }));
    return node.kind === "file" ? found.filter(({ path }) => path === node.path).map((one) => ({ kind: "finding", found: one })) : [];
  }

  getTreeItem(node: FindingNode): vscode.TreeItem {
    if (node.kind === "file") {
      const item = new vscode.TreeItem(vscode.Uri.parse(node.uri), vscode.TreeItemCollapsibleState.Expanded);
      item.id = node.path;
      return item;
    }
    const { found } = node;
    const item = new vscode.TreeItem(found.title);
    const range = this.place(found);
    item.id = found.findingId;
    item.description = [range ? String(range.start.line + 1) : "", found.state === "open" ? "" : stateText(found.state), found.category].filter(Boolean).join(" · ");
    item.tooltip = body(found);
    item.iconPath = new vscode.ThemeIcon(found.state === "open" ? ICONS[found.severity] : "pass");
    item.contextValue = found.state === "open" ? "kode.finding.open" : "kode.finding.decided";
    if (range) item.command = { command: "vscode.open", title: "", arguments: [document(found), { selection: range }] };
    return item;
  }

  provideCodeActions(_document: vscode.TextDocument, _range: vscode.Range, { diagnostics }: vscode.CodeActionContext): vscode.CodeAction[] {
    const ours = diagnostics.filter((one) => this.isOurs(one));
    return ours.flatMap((diagnostic) => {
      const action = (title: string, name: string): vscode.CodeAction => {
        const made = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
        made.diagnostics = [diagnostic];
        made.command = { command: `kode.${name}`, title, arguments: [String(diagnostic.code)] };
        return made;
      };
      return [
        action(vscode.l10n.t("kode: fix this finding"), "fixFinding"),
        action(vscode.l10n.t("kode: explain this finding"), "explainFinding"),
        action(vscode.l10n.t("kode: dismiss this finding"), "dismissFinding"),
      ];
    });
  }

  /** Start a turn about findings. */
  async ask(argument: FindingArgument, prompt: string, more: (one: FindingView) => boolean = () => false): Promise<void> {
    const [session, found] = this.named(argument);
    const alike = this.all().filter((one) => one.state === "open" && one !== found && more(one));
    const findingIds = [found, ...alike].map(({ findingId }) => findingId);
    await this.sidecar.request("kode/review/ask", { sessionId: session.id, findingIds, prompt });
  }

  async decide(argument: FindingArgument, state: "dismissed" | "resolved" | "open", reason?: string): Promise<void> {
    const [session, { findingId }] = this.named(argument);
    await this.sidecar.request("kode/review/decide", { sessionId: session.id, findingId, state, reason });
  }

  /** The finding that a command is about. Throws where there is none. */
  named(argument: FindingArgument): [OpenSession, FindingView] {
    const id = typeof argument === "string" ? argument : argument && "kind" in argument ? argument.kind === "finding" && argument.found.findingId : argument?.contextValue;
    const session = this.sessions.shown;
    const found = this.all().find(({ findingId }) => findingId === id);
    if (!session || !found) throw new Error(vscode.l10n.t("Choose a finding in the list first."));
    return [session, found];
  }

  private update(): void {
    if ((this.sessions.shown?.fold.findings ?? []) !== this.drawn) this.draw();
  }

  /** A thread stays while its finding is open, so that one that the user reads does not close. */
  private draw(): void {
    this.drawn = this.sessions.shown?.fold.findings ?? [];
    const open = new Map(this.drawn.flatMap((found) => (found.state === "open" && this.place(found) ? [[threadKey(found), found]] : [])));
    this.view.badge = open.size ? { value: open.size, tooltip: vscode.l10n.t("{0} findings are open", open.size) } : undefined;
    for (const [key, thread] of this.threads) {
      if (open.has(key)) continue;
      thread.dispose();
      this.threads.delete(key);
    }
    for (const [key, found] of open) {
      const range = this.place(found);
      if (!range) continue;
      const thread = this.threads.get(key) ?? this.controller.createCommentThread(document(found), range, []);
      const comment: vscode.Comment = { author: { name: "kode" }, body: body(found), mode: vscode.CommentMode.Preview };
      Object.assign(thread, { range, comments: [comment], contextValue: found.findingId, label: `${found.severity}: ${found.title}`, canReply: false });
      this.threads.set(key, thread);
    }
    this.changed.fire();
  }

  /** Where a finding is now: its diagnostic follows what the user types. */
  private place(found: FindingView): vscode.Range | undefined {
    const shown = vscode.languages.getDiagnostics(document(found));
    return shown.find((one) => this.isOurs(one) && one.code === found.findingId)?.range;
  }

  /** Is it a finding of the session that is shown? Each session counts its own from 1. */
  private isOurs(one: vscode.Diagnostic & { data?: { sessionId?: string } }): boolean {
    return one.source === SOURCE && one.data?.sessionId === this.sessions.shown?.id;
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }
}

function document({ uri }: FindingView): vscode.Uri {
  return vscode.Uri.parse(uri);
}

function threadKey({ findingId, uri }: FindingView): string {
  return `${findingId} ${uri}`;
}

function body({ explanation, suggestion, reason }: FindingView): vscode.MarkdownString {
  const text = new vscode.MarkdownString();
  for (const part of [explanation, suggestion, reason]) if (part) text.appendText(`${part}\n\n`);
  return text;
}

function stateText(state: FindingView["state"]): string {
  const names: Record<FindingView["state"], string> = {
    open: vscode.l10n.t("open"),
    dismissed: vscode.l10n.t("dismissed"),
    resolved: vscode.l10n.t("resolved"),
    fixed: vscode.l10n.t("fixed"),
  };
  return names[state];
}
