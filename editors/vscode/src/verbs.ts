// Verbs and skills, by a list, the context menu and code actions; what they are about is what the editor shows.
import * as vscode from "vscode";
import type { ChatView } from "./chat/view";
import type { Sidecar } from "./client/sidecar";
import type { Sessions } from "./session/sessions";

export class Verbs implements vscode.CodeActionProvider {
  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
    private readonly chat: ChatView,
  ) {}

  /** Without a name the user chooses one; without words they are asked for what it takes. */
  async run(name?: string, words?: string): Promise<void> {
    const { verbs } = await this.sidecar.request("kode/verbs/list", {});
    const items = verbs.map((verb) => ({ label: `/${verb.name}`, description: verb.title, detail: verb.description, verb }));
    const title = vscode.l10n.t("Run a verb or a skill");
    const named = items.find(({ verb }) => verb.name === name);
    const chosen = named ?? (await vscode.window.showQuickPick(items, { title, matchOnDescription: true, matchOnDetail: true }));
    if (!chosen) return;
    const hint = chosen.verb.arguments;
    const said = words ?? (hint ? await vscode.window.showInputBox({ title: chosen.label, placeHolder: hint }) : "");
    if (said === undefined) return;
    await this.chat.focus();
    await this.sessions.send(`${chosen.label} ${said}`.trim());
  }

  provideCodeActions(_document: vscode.TextDocument, range: vscode.Range, { diagnostics }: vscode.CodeActionContext): vscode.CodeAction[] {
    const action = (title: string, kind: vscode.CodeActionKind, ...called: string[]): vscode.CodeAction => {
      const made = new vscode.CodeAction(title, kind);
      made.command = { command: "kode.verb", title, arguments: called };
      return made;
    };
    const problems = diagnostics.map(({ message }) => message).join("; ");
    const fix = problems ? [action(vscode.l10n.t("Fix with kode"), vscode.CodeActionKind.QuickFix, "fix", problems)] : [];
    for (const one of fix) one.diagnostics = [...diagnostics];
    if (range.isEmpty) return fix;
    return [
      ...fix,
      action(vscode.l10n.t("Refactor with kode"), vscode.CodeActionKind.RefactorRewrite, "refactor", ""),
      action(vscode.l10n.t("Explain with kode"), vscode.CodeActionKind.Empty, "explain", ""),
      action(vscode.l10n.t("Write tests with kode"), vscode.CodeActionKind.Empty, "tests", ""),
    ];
  }
}
