// What a session may cost, as the user says it. No VS Code in here.
import type { Budget } from "../../../../protocol/kode";

/** "5 CNY" as a budget of the session; undefined for anything else. */
export function parseBudget(said: string): Budget | undefined {
  const [, amount, currency] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]{3})\s*$/i.exec(said) ?? [];
  const session = Number(amount);
  return currency && session > 0 ? { currency: currency.toUpperCase(), session } : undefined;
}

/** As it is written into the box again. */
export function shownBudget(budget: Budget | undefined): string {
  return budget?.session ? `${budget.session} ${budget.currency}` : "";
}
