import type { StreamRule } from "../rule.ts";
import { echoRules } from "./echo-rules.ts";
import { eventRules } from "./event-rules.ts";
import { itemRules } from "./item-rules.ts";
import { lifecycleRules } from "./lifecycle-rules.ts";
import { obedienceRules } from "./obedience-rules.ts";
import { partRules } from "./part-rules.ts";
import { responseRules } from "./response-rules.ts";
import type { ResponseRule } from "./response-rule.ts";
import { socketRules } from "./socket-rules.ts";
import { usageRules } from "./usage-rules.ts";

/** Rules about the events of a stream of the Responses API. */
export const responseStreamRules: readonly StreamRule[] = [
  ...eventRules,
  ...lifecycleRules,
  ...itemRules,
  ...partRules,
  ...socketRules,
];

/** Rules about a response as it ended, streamed or whole. */
export const everyResponseRule: readonly ResponseRule[] = [
  ...responseRules,
  ...usageRules,
  ...obedienceRules,
  ...echoRules,
];
