import type { HeaderFields } from "./exchange.ts";

/** Longer ones are cut: proxies refuse answers whose head is larger than a few kilobytes. In characters. */
const longest = 1000;

/** What the request asks and the answer leaves out, for a client's developer who has no look at the log. */
export function warningHeader(warnings: readonly string[]): HeaderFields {
  let text = "";
  for (const warning of warnings) {
    text += `${text === "" ? "" : "; "}${warning.slice(0, longest + 1)}`;
    if (text.length > longest) break;
  }
  const plain = text.replace(/[^ -~]+/g, "?");
  return { "x-truewire-warning": plain.length > longest ? `${plain.slice(0, longest - 3)}...` : plain };
}
