import { cacheMissWords } from "../core/cache-miss.ts";
import type { CacheMiss } from "../core/cache-miss.ts";
import type { Reply } from "./reply.ts";

/**
 * Where the request's `x-truewire-cache: explain` asks for it, the answer's `x-truewire-cache-miss` says why the model reads much of the
 * prompt again: JSON in ASCII. It is known before the first token; an answer whose head had to go out before that has no such header.
 */
export function explainMisses(reply: Reply): void {
  const { exchange, record } = reply;
  if (exchange.header("x-truewire-cache")?.trim().toLowerCase() !== "explain") return;
  record.onCacheMiss = (miss) => {
    if (!reply.sent) reply.addHeaders({ "x-truewire-cache-miss": headerText(miss) });
  };
}

/** At most some three kilobytes: every text in it is bounded. */
function headerText(miss: CacheMiss): string {
  const { cause, where, at, promptTokens, cachedTokens, knownTokens, texts } = miss;
  const says = cacheMissWords(miss);
  const json = JSON.stringify({ cause, where, says, at, promptTokens, cachedTokens, knownTokens, ...texts });
  return json.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
