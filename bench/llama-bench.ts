import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { withOurLibraries } from "./llama-server.ts";

export interface LlamaBenchOptions {
  readonly model: string;
  readonly threads: number;
  /** The lengths of prompts, in tokens. */
  readonly prompts: readonly number[];
  readonly tokens: number;
  readonly rounds: number;
}

/** Tokens a second of llama.cpp alone, without server and sampler, one stream; medians. */
export interface Limits {
  /** By the length of the prompt. */
  readonly prompts: ReadonlyMap<number, number>;
  readonly decode: number;
}

/** Asks llama.cpp's `llama-bench`, which is built into the folder of its server; null if it is absent. */
export async function llamaBench(options: LlamaBenchOptions): Promise<Limits | null> {
  const { model, threads, prompts, tokens, rounds } = options;
  const bench = withOurLibraries("llama-bench");
  if (!bench) return null;
  const { file, env } = bench;
  const numbers = ["-t", threads, "-p", prompts.join(","), "-n", tokens, "-r", rounds, "-ngl", 0].map(String);
  const running = promisify(execFile)(file, ["-m", model, ...numbers, "-o", "json"], { env });
  const kill = (): void => void running.child.kill("SIGKILL");
  process.once("exit", kill);
  const { stdout } = await running.finally(() => process.off("exit", kill));
  interface Result {
    /** 0: it has measured decoding. */
    readonly n_prompt: number;
    readonly samples_ts: readonly number[];
  }
  const results = JSON.parse(stdout) as readonly Result[];
  const rate = (length: number): number => {
    const samples = results.find(({ n_prompt }) => n_prompt === length)?.samples_ts ?? [];
    return samples.toSorted((one, other) => one - other)[Math.floor(samples.length / 2)] ?? Number.NaN;
  };
  return { prompts: new Map(prompts.map((length) => [length, rate(length)])), decode: rate(0) };
}
