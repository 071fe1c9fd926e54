import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { llamaServerFile } from "./llama-server.ts";

export interface LlamaBenchOptions {
  readonly model: string;
  readonly threads: number;
  readonly promptTokens: number;
  readonly tokens: number;
  readonly rounds: number;
}

/** Tokens a second of llama.cpp alone, without server and sampler, one stream; medians. */
export interface Limits {
  readonly prompt: number;
  readonly decode: number;
}

/** Asks llama.cpp's `llama-bench`, which is built beside its server; null: it is not there. */
export function llamaBench({ model, threads, promptTokens, tokens, rounds }: LlamaBenchOptions): Limits | null {
  const file = llamaServerFile === undefined ? undefined : join(dirname(llamaServerFile), "llama-bench");
  if (file === undefined || !existsSync(file)) return null;
  const numbers = ["-t", threads, "-p", promptTokens, "-n", tokens, "-r", rounds, "-ngl", 0].map(String);
  const { stdout, status } = spawnSync(file, ["-m", model, ...numbers, "-o", "json"], { encoding: "utf8" });
  if (status !== 0) throw new Error(`${file} ended with ${status}.`);
  const results = JSON.parse(stdout) as readonly { readonly n_gen: number; readonly samples_ts: readonly number[] }[];
  const rate = (decodes: boolean): number => {
    const samples = results.find(({ n_gen }) => n_gen > 0 === decodes)?.samples_ts ?? [];
    return samples.toSorted((one, other) => one - other)[Math.floor(samples.length / 2)] ?? Number.NaN;
  };
  return { prompt: rate(false), decode: rate(true) };
}
