import type { HeaderFields } from "./exchange.ts";

/** Longer ones are cut: proxies refuse answers whose head is larger than a few kilobytes. In characters. */
const longest = 1000;

/** In the log. */
const [mostShown, longestShown] = [20, 300];

/** Warnings for the log: a client may cause thousands, and quote itself in them. */
export function shownWarnings(warnings: readonly string[]): string[] {
  const shown = warnings
    .slice(0, mostShown)
    .map((text) => (text.length > longestShown ? `${text.slice(0, longestShown)}...` : text));
  return warnings.length > mostShown ? [...shown, `and ${warnings.length - mostShown} more`] : shown;
}

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
