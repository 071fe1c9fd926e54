import type { Config } from "../config/schema.ts";
import type { HostedCallObserver, HostedToolPool, PreparedHostedTools } from "../hosted/open-hosted-tools.ts";
import { HookPrefixes } from "../server/hook/hook-prefixes.ts";
import type { ServedHook } from "../server/hook/hook-prefixes.ts";
import type { Log } from "../server/log.ts";
import type { Runtime } from "./runtime.ts";

/** The executors of hosted tools. They survive a reload of the configuration if their settings stay the same. Imported at first use. */
export class HostedTools {
  readonly #log: Log;
  readonly #runtime: Pick<Runtime, "hostedTools">;
  readonly #observe: HostedCallObserver;
  #pool: HostedToolPool | undefined;

  constructor(log: Log, runtime: Pick<Runtime, "hostedTools">, observe: HostedCallObserver) {
    this.#log = log;
    this.#runtime = runtime;
    this.#observe = observe;
  }

  /** Rejects with an Error of one sentence if a program cannot be loaded. */
  async prepare(config: Pick<Config, "hostedTools">): Promise<PreparedHostedTools> {
    const { webSearch, webFetch, mcp, programs } = config.hostedTools;
    const isEmpty = !webSearch && !webFetch && Object.keys(mcp).length + Object.keys(programs).length === 0;
    if (isEmpty && !this.#pool) return nothing;
    const { HostedToolPool } = await this.#runtime.hostedTools();
    this.#pool ??= new HostedToolPool((line, level, fields) => this.#log[level]({ ...fields }, line), this.#observe);
    return this.#pool.prepare(config);
  }

  async close(): Promise<void> {
    await this.#pool?.close();
  }
}

/** Rejects with an Error of one sentence if the hook cannot be loaded. */
export async function openHookOf(
  { hook }: Pick<Config, "hook">,
  log: Log,
  runtime: Pick<Runtime, "hook">,
): Promise<ServedHook | undefined> {
  if (!hook) return undefined;
  const { openHook } = await runtime.hook();
  const runner = await openHook(hook, (line, level, fields) => log[level]({ ...fields }, line));
  return { ...runner, prefixes: new HookPrefixes() };
}

const nothing: PreparedHostedTools = { executors: undefined, commit() {}, discard: async () => {} };
