/** What the requests of one model used on one day. */
export interface ModelUsage {
  readonly requests: number;
  readonly promptTokens: number;
  /** Those of the prompt that were read from a cache. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
  /** In nanodollars: sums of whole numbers are exact. A dollar for a million tokens is 1,000 nanodollars for one. */
  readonly cost: number;
}

/** What one request used. */
export interface RequestUsage extends Omit<ModelUsage, "requests"> {
  readonly model: string;
}

/** What one key used of one model on one day. */
export interface UsageRow extends ModelUsage {
  /** "": requests without a key. */
  readonly name: string;
  /** In UTC: `2026-11-30`. */
  readonly day: string;
  /** "": requests whose process ended before they did; they cost what was reserved for them. */
  readonly model: string;
}

/** The members of `ModelUsage`, in the order in which stores keep them. */
export const usageMembers = ["requests", "promptTokens", "cachedTokens", "completionTokens", "cost"] as const;

export const noUsage: ModelUsage = { requests: 0, promptTokens: 0, cachedTokens: 0, completionTokens: 0, cost: 0 };

export function addUsage(one: ModelUsage, other: ModelUsage): ModelUsage {
  return Object.fromEntries(
    usageMembers.map((member) => [member, one[member] + other[member]]),
  ) as unknown as ModelUsage;
}

/** How long usage is kept by day and model, in days. Totals do not expire. */
export const keptDays = 92;

/** The most that may be spent, in US dollars. */
export interface Budget {
  /** On a day in UTC. */
  readonly day?: number | undefined;
  /** In a calendar month in UTC. */
  readonly month?: number | undefined;
  /** In all. */
  readonly total?: number | undefined;
  /** The share of a budget from which on answers have a warning. */
  readonly warnAt?: number | undefined;
}

export const budgetPeriods = ["day", "month", "total"] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** What was spent in each period, in nanodollars; what is reserved for open requests counts. */
export type Spent = Readonly<Record<BudgetPeriod, number>>;

/** How much of a budget is spent, in nanodollars. */
export interface BudgetLevel {
  readonly period: BudgetPeriod;
  readonly limit: number;
  readonly used: number;
}

export function budgetLevels(budget: Budget | undefined, spent: Spent): readonly BudgetLevel[] {
  return budgetPeriods.flatMap((period) => {
    const limit = budget?.[period];
    return limit === undefined ? [] : [{ period, limit: nanodollars(limit), used: spent[period] }];
  });
}

export function nanodollars(dollars: number): number {
  return Math.round(dollars * 1e9);
}

export const dayMs = 86_400_000;

/** The number of a day since 1970. */
export function dayOf(unixMs: number): number {
  return Math.floor(unixMs / dayMs);
}

/** `2026-11-30` */
export function dayText(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10);
}

/** The number of a day's month, counted from March of the year 0: leap days are the last ones of a year then (`redis-scripts.ts`). */
export function monthOf(day: number): number {
  const date = new Date(day * dayMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth() - 2;
}

/** Until the next month begins, in milliseconds. */
export function monthLeftMs(unixMs: number): number {
  const date = new Date(unixMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) - unixMs;
}
