import { isObject } from "../../../../wire/core/json.ts";
import type { Exchange } from "../exchange.ts";
import { bodyView } from "../view.ts";
import { type GroupVerdict, notShown, verdictOn } from "./group-rule.ts";

const rule = "cache/diagnosed";

/** The reason that each API has for a changed system prompt. */
const reasons: Partial<Readonly<Record<Exchange["endpoint"], string>>> = {
  messages: "system_changed",
  responses: "input_changed",
};

/**
 * Judges two requests that are compared with an earlier one. `same`: the earlier request again; `changed`: the same with another system
 * prompt.
 */
export function judgeDiagnosed(same: Exchange, changed: Exchange): GroupVerdict {
  const refused = [same, changed].find(({ response }) => response.status !== 200);
  if (refused) return notShown(`cache diagnostics are refused (status ${refused.response.status})`);
  const [before, after] = [reasonIn(same), reasonIn(changed)];
  if (before === undefined || after === undefined) return notShown("the server has no cache diagnostics");
  if (before === "inconclusive" || after === "inconclusive") return notShown("the comparison has no result");
  if (before !== "none") return verdictOn(rule, `${before} for the same request`);
  const due = reasons[changed.endpoint];
  return verdictOn(rule, after === due ? undefined : `${after} for a changed system prompt, not ${due}`);
}

/** Returns the reason of a miss; "none" without one, "inconclusive" without a result, undefined where the answer has no such member. */
function reasonIn(exchange: Exchange): string | undefined {
  const { value } = bodyView(exchange);
  const { diagnostics, prompt_cache_diagnostics: found } = isObject(value) ? value : {};
  if (exchange.endpoint === "messages") {
    if (diagnostics === null) return "none";
    if (!isObject(diagnostics)) return undefined;
    const reason = diagnostics["cache_miss_reason"];
    return reasonOf(isObject(reason) ? reason["type"] : undefined);
  }
  if (!isObject(found)) return undefined;
  const { type, reason } = found;
  if (type === "cache_hit") return "none";
  return reasonOf(type === "cache_miss" ? reason : type);
}

function reasonOf(word: unknown): string {
  return typeof word === "string" && word !== "unavailable" ? word : "inconclusive";
}
