import type { RuleFacts } from "../rule.ts";

/** A rule about more than one exchange, or about what a probe expects of its answer. */
export type GroupRule = RuleFacts & { readonly judges: "group" };
