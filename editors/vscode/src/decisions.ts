// What the user decides about beside the edits: how hard the model thinks, what it remembers, what it may do; and what it cost.
import * as vscode from "vscode";
import type { Cost, UsageSum } from "../../../protocol/kode";
import type { Sidecar } from "./client/sidecar";
import type { Sessions } from "./session/sessions";

const EFFORTS = ["off", "low", "medium", "high", "max"] as const;

export class Decisions {
  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
    private readonly showText: (title: string, text: string) => Promise<void>,
  ) {}

  /** Without a choice the model does as it does by itself. */
  async effort(): Promise<void> {
    const items = [{ label: vscode.l10n.t("As the model does by itself"), effort: null }, ...EFFORTS.map((effort) => ({ label: effort, effort }))];
    const chosen = await vscode.window.showQuickPick(items, { title: vscode.l10n.t("How hard the model thinks") });
    if (chosen) await this.sessions.update({ effort: chosen.effort });
  }

  /** What is ticked is remembered; a suggestion that is not, and what was unticked, is forgotten. */
  async memories(): Promise<void> {
    const { memories } = await this.sidecar.request("kode/memory/list", {});
    const items = memories.map(({ memoryId, content, scope, state, tags = [] }) => ({
      label: content,
      description: [state === "candidate" ? vscode.l10n.t("suggested") : "", scope, ...tags].filter(Boolean).join(" · "),
      picked: state === "accepted",
      memoryId,
    }));
    const placeHolder = items.length ? vscode.l10n.t("Ticked ones are remembered, the others deleted") : vscode.l10n.t("Nothing is remembered, and nothing suggested.");
    const chosen = await vscode.window.showQuickPick(items, { title: vscode.l10n.t("Memories"), placeHolder, canPickMany: true, ignoreFocusOut: true });
    if (!chosen || !items.length) return;
    const kept = new Set(chosen.map(({ memoryId }) => memoryId));
    await this.sidecar.request("kode/memory/decide", { decisions: memories.map(({ memoryId }) => ({ memoryId, action: kept.has(memoryId) ? "accept" : "reject" })) });
  }

  /** The rules of the session that is shown; those of the user can be changed or removed. */
  async permissions(): Promise<void> {
    const sessionId = this.sessions.shown?.id;
    if (!sessionId) return;
    const { rules } = await this.sidecar.request("kode/permission/list", { sessionId });
    const items = rules.map((rule) => ({ label: `${rule.effect} ${rule.tool} ${rule.pattern}`, description: rule.matched ? vscode.l10n.t("{0} times", rule.matched) : "", detail: rule.reason, rule }));
    const chosen = await vscode.window.showQuickPick(items, { title: vscode.l10n.t("What this session may do"), matchOnDetail: true });
    if (!chosen || chosen.rule.source === "builtIn") return;
    const { tool, pattern } = chosen.rule;
    const effects = [
      { label: vscode.l10n.t("Allow"), effect: "allow" as const },
      { label: vscode.l10n.t("Ask each time"), effect: "ask" as const },
      { label: vscode.l10n.t("Never"), effect: "deny" as const },
      { label: vscode.l10n.t("Remove the rule"), effect: null },
    ];
    const effect = await vscode.window.showQuickPick(effects, { title: chosen.label });
    if (effect) await this.sidecar.request("kode/permission/set", { sessionId, tool, pattern, effect: effect.effect });
  }

  /** By day and model, over all sessions. */
  async usage(): Promise<void> {
    const utcOffsetMinutes = -new Date().getTimezoneOffset();
    const { rows, total } = await this.sidecar.request("kode/usage/get", { by: ["day", "model"], utcOffsetMinutes });
    const line = (day: string, model: string, { answers, usage, costs = [] }: UsageSum): string =>
      [day, model, answers, usage.inputTokens, usage.outputTokens, costs.map(money).join(" + ") || "–"].join(" | ");
    const head = [vscode.l10n.t("day"), vscode.l10n.t("model"), vscode.l10n.t("answers"), vscode.l10n.t("tokens in"), vscode.l10n.t("tokens out"), vscode.l10n.t("cost")];
    const table = [head.join(" | "), head.map(() => "---").join(" | "), ...rows.map((row) => line(row.day ?? "", row.model ?? "", row)), line("", vscode.l10n.t("all"), total)];
    await this.showText("usage.md", `${table.map((row) => `| ${row} |`).join("\n")}\n`);
  }
}

function money({ amount, currency }: Cost): string {
  return `${amount.toFixed(4)} ${currency}`;
}
