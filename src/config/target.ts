import type { ModelEntry } from "./config.ts";

/**
 * What a target of `truewire serve` means, in the form of a configuration's entry: `model.gguf` and `hf:owner/repo:quant` are local
 * models, `https://…` is an upstream, `./program.ts` (or .js, .mjs, .mts, .cjs, .cts) a program. `name=` before any of them is the
 * name that clients use.
 */
export function modelOfTarget(target: string): ModelEntry {
  const [, name, rest] = /^(?!https?:|[./\\])([^=]+)=(.+)$/s.exec(target) ?? [];
  const named = name === undefined ? {} : { name };
  const what = rest ?? target;
  if (/^https?:\/\//i.test(what)) return { kind: "upstream", url: what, ...named };
  if (/\.[cm]?[jt]s$/i.test(what)) return { kind: "program", program: what, ...named };
  return { kind: "local", path: what, ...named };
}
