import type { StreamRule } from "../rule.ts";
import { deltaRules } from "./delta-rules.ts";
import { eventRules } from "./event-rules.ts";
import { growthRules } from "./growth-rules.ts";
import { orderRules } from "./order-rules.ts";

/** Every rule about how a message is streamed. */
export const messageStreamRules: readonly StreamRule[] = [...eventRules, ...orderRules, ...deltaRules, ...growthRules];
