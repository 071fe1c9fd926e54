import { bodyRules } from "./body/body-rules.ts";
import type { Rule } from "./rule.ts";
import { streamRules } from "./stream/stream-rules.ts";

/** Every rule about one exchange. */
export const allRules: readonly Rule[] = [...streamRules, ...bodyRules];
