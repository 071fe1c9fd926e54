import { resolve } from "node:path";
import type { HostedCall, HostedResult, HostedTool, HostedToolKind } from "../../../wire/core/hosted-tool.ts";
import { abandoned, type ExecutorSetup, failure, type OpenExecutor, shown } from "../executor.ts";
import type { WebSearchSetup } from "../web-search.ts";
import type { HostedProgram, HostedProgramInput } from "../../../wire/core/hosted-program.ts";
import { functionOfProgram, resultOf, searchResults } from "./results.ts";
import { ToolThreads } from "./tool-threads.ts";

/** A user's function: one in this thread, or a module in threads of its own. */
export interface OpenProgram {
  readonly description?: unknown;
  readonly parameters?: unknown;
  /** `owner`: where calls wait, owners take turns. */
  run(input: Omit<HostedProgramInput, "signal">, owner: string, signal: AbortSignal): Promise<unknown>;
  close(): Promise<void>;
}

/** Rejects with an Error of one sentence if the module cannot be loaded. */
export async function openProgram(program: string | HostedProgram): Promise<OpenProgram> {
  if (typeof program === "function")
    return {
      run: (input, _owner, signal) => unlessAborted(async () => program({ ...input, signal }), signal),
      close: async () => {},
    };
  const threads = new ToolThreads(resolve(program));
  const { description, parameters } = await threads.load();
  const run: OpenProgram["run"] = (input, owner, signal) => threads.run(input, owner, signal);
  return { description, parameters, run, close: () => threads.close() };
}

export function openProgramTool(
  kind: HostedToolKind,
  program: OpenProgram,
  { name, timeoutMs, maxCalls, maxOutput, log }: ExecutorSetup,
): OpenExecutor {
  return {
    name,
    kind,
    timeoutMs,
    maxCalls,
    functions: async ({ type }) => [functionOfProgram(kind, type, program)],
    async run({ tool, arguments: given, owner }: HostedCall, signal: AbortSignal): Promise<HostedResult> {
      try {
        return resultOf(kind, await program.run(inputOf(tool, given), owner, signal), maxOutput);
      } catch (error) {
        if (signal.aborted) return abandoned;
        const reason = error instanceof Error ? error.message : String(error);
        log?.(`the program of ${name} failed: ${reason}`, "warn");
        return failure("unavailable", `The tool failed: ${shown(reason, 1000)}`);
      }
    },
    close: () => program.close(),
  };
}

/** A user's function as a search engine. */
export function programSearch(program: OpenProgram): WebSearchSetup["search"] {
  return async ({ query, maxResults }, { tool, owner }, signal) =>
    searchResults(await program.run(inputOf(tool, { query, maxResults }), owner, signal));
}

function inputOf(
  { type, options, declaration }: HostedTool,
  given: Readonly<Record<string, unknown>>,
): Omit<HostedProgramInput, "signal"> {
  return { tool: type, arguments: given, options, declaration };
}

/** Rejects when the signal aborts, whether the function heeds it or not. */
function unlessAborted(work: () => Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  return new Promise((settle, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    work()
      .then(settle, reject)
      .finally(() => signal.removeEventListener("abort", abort));
  });
}
