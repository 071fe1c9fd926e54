import { expectationRules } from "./expectation.ts";
import type { GroupRule } from "./group-rule.ts";
import { liveRules } from "./live.ts";
import { sameRules } from "./same.ts";

export const groupRules: readonly GroupRule[] = [...expectationRules, ...sameRules, ...liveRules];
