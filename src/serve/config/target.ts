import type { ModelEntry } from "./model-schema.ts";

/**
 * Returns the configuration entry of a target of `truewire serve`: `model.gguf` and `hf:owner/repo:quant` are local models, `https://…`
 * and `host:port/v1` are upstreams (`host:port` alone means its `/v1`), `./program.ts` (or .js, .mjs, .mts, .cjs, .cts) is a program.
 * `name=` before any of them is the name that clients use.
 */
export function modelOfTarget(target: string): ModelEntry {
  const [, name, rest] = /^(?!https?:|[./\\])([^=]+)=(.+)$/s.exec(target) ?? [];
  const named = name === undefined ? {} : { name };
  const given = rest ?? target;
  const what = withScheme(given);
  if (what !== given && !given.includes("/")) return { kind: "upstream", url: `${what}/v1`, ...named };
  if (/^https?:\/\//i.test(what)) return { kind: "upstream", url: what, ...named };
  if (/\.[cm]?[jt]s$/i.test(what)) return { kind: "program", program: what, ...named };
  return { kind: "local", path: what, ...named };
}

/** Adds `http://` to an address that is written without a scheme: `localhost:11434/v1`, `10.0.0.5:8000`, `[::1]:8080`. */
export function withScheme(address: string): string {
  const hasPort = /^(?:[a-z\d-]+(?:\.[a-z\d-]+)*|\[[\da-f:.]+\]):\d{1,5}(?:\/\S*)?$/i.test(address);
  return hasPort ? `http://${address}` : address;
}
