import type { RuleFacts } from "../rule.ts";
import { expectationRules } from "./expectation.ts";
import { liveRules } from "./live.ts";
import { sameRules } from "./same.ts";

/** A rule about more than one exchange, or about what a probe expects of its answer. */
export type GroupRule = RuleFacts & { readonly judges: "group" };

export const groupRules: readonly GroupRule[] = [...expectationRules, ...sameRules, ...liveRules];
