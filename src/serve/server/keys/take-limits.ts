import { rateLimitReached } from "../../../wire/apis/rate-limits.ts";
import type { Reply, TakenTokens } from "../reply.ts";
import type { Service } from "../service.ts";
import { moneyHeaders, nearBudgets, nearBudgetWarning } from "./money-headers.ts";
import { UsageLease } from "./usage-lease.ts";

/**
 * Takes a request from its client's limits, and from its budgets `cost` nanodollars; adds the headers that report what is left. What it uses is
 * counted if it has a client or a price. Rejects with `FailureError` 429.
 */
export async function takeLimits(
  reply: Reply,
  { stores: { limiter }, log }: Service,
  { prompt, reserved = 0 }: TakenTokens = { prompt: 0 },
  cost = 0,
): Promise<void> {
  const { record, conventions, requestId } = reply;
  const { client } = reply.caller;
  if (!client && !record.asked.price) return;
  const { owner = "", limits = {} } = client ?? {};
  const { name = owner } = client ?? {};
  const taken = await limiter.take(name, limits, prompt, reserved, cost);
  reply.addHeaders({ ...conventions.limitHeaders(taken.levels, Date.now()), ...moneyHeaders(taken.levels) });
  if ("bound" in taken) throw rateLimitReached(taken, name, record.asked.model, Date.now());
  reply.hold({ usage: new UsageLease(taken, record, client?.limits !== undefined) });
  const { warnAt, near } = nearBudgets(limits.budget, taken.levels);
  if (near.length === 0) return;
  const warnings = near.map((level) => nearBudgetWarning(name, level));
  // Once: the requests after this one only have the header.
  if (near.some(({ limit, used }) => used - cost < limit * warnAt))
    log.warn({ req: requestId, key: name, warnings }, "a budget is nearly spent");
  reply.warn("budget", warnings);
}
