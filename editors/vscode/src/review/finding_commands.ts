// The commands on findings of code reviews.
import * as vscode from "vscode";
import type { ChatView } from "../chat/view";
import type { Sessions } from "../session/sessions";
import type { FindingArgument, Findings } from "./findings";

type Rooms = { chat: ChatView; sessions: Sessions; findings: Findings };

export function findingCommands({ chat, sessions, findings }: Rooms): Record<string, (...args: never[]) => unknown> {
  return {
    reviewChanges: async () => {
      const placeHolder = vscode.l10n.t("what is not committed; or a commit, main..HEAD, a file");
      const words = await vscode.window.showInputBox({ title: vscode.l10n.t("What to review"), placeHolder });
      if (words === undefined) return;
      await chat.focus();
      await sessions.send(`/review ${words}`.trim());
    },
    fixFinding: (one: FindingArgument) => findings.ask(one, vscode.l10n.t("Fix this finding, and only it.")),
    fixKindOfFinding: (one: FindingArgument) => {
      const [, { category }] = findings.named(one);
      return findings.ask(one, vscode.l10n.t("Fix these findings, which are of one kind."), (other) => other.category === category);
    },
    explainFinding: async (one: FindingArgument) => {
      await findings.ask(one, vscode.l10n.t("Explain this finding."));
      await chat.focus();
    },
    dismissFinding: async (one: FindingArgument) => {
      const [, { title }] = findings.named(one);
      const reason = await vscode.window.showInputBox({ title, prompt: vscode.l10n.t("Why is it no fault?") });
      if (reason) await findings.decide(one, "dismissed", reason);
    },
    resolveFinding: (one: FindingArgument) => findings.decide(one, "resolved"),
    reopenFinding: (one: FindingArgument) => findings.decide(one, "open"),
  };
}
