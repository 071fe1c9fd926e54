import type { HeaderFields } from "./exchange.ts";

/** Longer ones are cut: proxies refuse answers whose head is larger than a few kilobytes. In characters. */
const longest = 1000;

/** What the request asks and the answer leaves out, for a client's developer who has no look at the log. */
export function warningHeader(warnings: readonly string[]): HeaderFields {
  const text = warnings.join("; ").replace(/[^ -~]+/g, "?");
  return { "x-truewire-warning": text.length > longest ? `${text.slice(0, longest - 3)}...` : text };
}
