// The status item: model, how full the context is, cost, and whether something runs.
import * as vscode from "vscode";
import type { Sidecar } from "./client/sidecar";
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
  ];
  return lines.filter(Boolean).join("\n");
}

function money({ fold: { cost } }: OpenSession): string {
  if (!cost) return "";
  const digits = cost.amount < 0.1 ? 4 : 2;
  const format = { style: "currency", currency: cost.currency, minimumFractionDigits: digits, maximumFractionDigits: digits } as const;
  return new Intl.NumberFormat(vscode.env.language, format).format(cost.amount);
}

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("kode.status", vscode.StatusBarAlignment.Right, 90);
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
  ) {
    this.item.name = "kode";
    this.item.command = "kode.chat";
    this.disposables = [this.item, sidecar.onDidChangeStatus(() => this.update()), sessions.onDidChange(() => this.update())];
    this.update();
    this.item.show();
  }

  private update(): void {
    const { status } = this.sidecar;
    const { shown } = this.sessions;
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
