import { dollarText } from "../../../wire/apis/rate-limits.ts";
import type { Levels } from "../../kv/limits.ts";
import type { Budget, BudgetLevel } from "../../kv/spending.ts";

/** The share of a budget from which on answers have a warning, unless the key has another one. */
const usualWarnAt = 0.8;

/** US dollars, of nanodollars: `0.000315`. */
export function dollars(nanodollars: number): string {
  return dollarText(nanodollars).slice(1);
}

/** The header with the rest of the budget that is spent first; none without budgets. */
export function moneyHeaders({ budgets = [] }: Levels): Readonly<Record<string, string>> {
  if (budgets.length === 0) return {};
  const rests = budgets.map(({ limit, used }) => limit - used);
  return { "x-truewire-budget-remaining": dollars(Math.max(0, Math.min(...rests))) };
}

/** The budgets of which at least the share `warnAt` is spent. */
export function nearBudgets(
  budget: Budget | undefined,
  { budgets = [] }: Levels,
): { readonly warnAt: number; readonly near: readonly BudgetLevel[] } {
  const { warnAt = usualWarnAt } = budget ?? {};
  return { warnAt, near: budgets.filter(({ limit, used }) => used >= limit * warnAt) };
}

export function nearBudgetWarning(key: string, { period, limit, used }: BudgetLevel): string {
  const whole = period === "total" ? "in all" : `for this ${period}`;
  return `the key '${key}' has spent ${dollarText(used)} of its budget of ${dollarText(limit)} ${whole}`;
}
