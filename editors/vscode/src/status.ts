// The status item: model, how full the context is, cost, and whether something runs.
import * as vscode from "vscode";
import { type Questions, questionTitle } from "./chat/questions";
import type { Sidecar } from "./client/sidecar";
import { setContext } from "./context";
import type { OpenSession, Sessions } from "./session/sessions";

export function meter(session: OpenSession): string {
  const { tokens, window } = session.context ?? {};
  const full = tokens !== undefined && window ? `${Math.round((100 * tokens) / window)} %` : "";
  return [full, money(session)].filter(Boolean).join(" · ");
}

export function meterTitle(session: OpenSession): string {
  const { context } = session;
  const { usage } = session.fold;
  const lines = [
    context?.window ? vscode.l10n.t("The next request: {0} of {1} tokens", context.tokens, context.window) : "",
    vscode.l10n.t("Used: {0} tokens in, {1} of them cached, {2} out", usage.inputTokens ?? 0, usage.cachedTokens ?? 0, usage.outputTokens ?? 0),
    money(session) ? vscode.l10n.t("Cost at list price: {0}", money(session)) : "",
    ...(session.spent?.uses ?? []).map(({ scope, spent, limit }) =>
      vscode.l10n.t("Budget ({0}): {1} of {2} before the last request", scope, amount(spent, session.spent?.currency), amount(limit, session.spent?.currency)),
    ),
  ];
  return lines.filter(Boolean).join("\n");
}

/** With what the session may cost, where that is limited. */
function money({ fold: { cost }, budget }: OpenSession): string {
  const limit = budget?.session ? ` / ${amount(budget.session, budget.currency)}` : "";
  return cost ? amount(cost.amount, cost.currency) + limit : limit && amount(0, budget?.currency) + limit;
}

function amount(value: number, currency = "USD"): string {
  const digits = value > 0 && value < 0.1 ? 4 : 2;
  const format = { style: "currency", currency, minimumFractionDigits: digits, maximumFractionDigits: digits } as const;
  return new Intl.NumberFormat(vscode.env.language, format).format(value);
}

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("kode.status", vscode.StatusBarAlignment.Right, 90);
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
    private readonly questions: Questions,
  ) {
    this.item.name = "kode";
    this.disposables = [this.item, sidecar.onDidChangeStatus(() => this.update()), sessions.onDidChange(() => this.update()), questions.onDidChange(() => this.update())];
    this.update();
    this.item.show();
  }

  private update(): void {
    const { status } = this.sidecar;
    const { shown } = this.sessions;
    const [question] = this.questions.all();
    setContext("running", shown?.running ?? false);
    this.item.command = question ? "kode.answerQuestion" : "kode.chat";
    this.item.backgroundColor = question && new vscode.ThemeColor("statusBarItem.warningBackground");
    if (question) {
      this.item.text = `$(question) ${vscode.l10n.t("kode asks: {0}", questionTitle(question))}`;
      this.item.tooltip = vscode.l10n.t("Go to the question");
      return;
    }
    const icon = status === "ready" || status === "stopped" ? (shown?.running ? "$(loading~spin)" : "$(comment-discussion)") : "$(warning)";
    const parts = status === "ready" || status === "stopped" ? [shown?.fold.model || "kode", shown ? meter(shown) : ""] : ["kode", stateText(status)];
    this.item.text = `${icon} ${parts.filter(Boolean).join(" · ")}`;
    this.item.tooltip = [shown ? meterTitle(shown) : "", this.sidecar.problem || stateText(status)].filter(Boolean).join("\n");
    this.item.accessibilityInformation = { label: `kode, ${parts.join(", ")}, ${shown?.running ? vscode.l10n.t("working") : stateText(status)}` };
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }
}

function stateText(status: Sidecar["status"]): string {
  switch (status) {
    case "ready":
      return vscode.l10n.t("ready");
    case "starting":
      return vscode.l10n.t("starting");
    case "waiting":
      return vscode.l10n.t("restarting");
    case "missing":
      return vscode.l10n.t("program not found");
    case "stopped":
      return vscode.l10n.t("not started");
  }
}
