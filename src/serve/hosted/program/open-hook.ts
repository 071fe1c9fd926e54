import { resolve } from "node:path";
import { failureEnd } from "../../../engines/program/program-failure.ts";
import { FailureError } from "../../../wire/core/failure.ts";
import type { Hook, HookRunner } from "../../../wire/core/hook.ts";
import type { LogListener } from "../../../wire/core/generation-observer.ts";
import type { HookConfig } from "../../config/hook-schema.ts";
import { ToolThreads } from "./tool-threads.ts";

/** The most memory of a thread's heap, in MiB: a hook that takes more ends its thread, not the server. */
const maxHeap = 256;

/** Loads a hook: a module in threads of its own, or an object in this thread. Rejects with an Error of one sentence. */
export async function openHook(
  { module, timeout, onTimeout, threads: limit }: HookConfig,
  log: LogListener,
): Promise<HookRunner> {
  const threads =
    typeof module === "string"
      ? new ToolThreads(resolve(module), { limit, maxHeap, timeoutMs: timeout, isHook: true })
      : undefined;
  const own = typeof module === "string" ? {} : module;
  const members = threads ? ((await threads.load()).members ?? []) : (Object.keys(own) as (keyof Hook)[]);
  return {
    sees: new Set(members),
    async run(member, input, context, owner, signal) {
      try {
        if (threads) return JSON.parse(String(await threads.run({ member, input, context }, owner, signal))) as unknown;
        return await settled(async () => own[member]?.(input as never, context), timeout, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof Error) || error.name !== "TimeoutError") throw refusalOf(error, context.requestId);
        if (onTimeout === "refuse") throw tooLate(timeout);
        const line = `the hook did not answer within ${timeout} ms: the ${member} has passed unseen`;
        log(line, "warn", { req: context.requestId });
        return null;
      }
    },
    async close() {
      await threads?.close();
    },
  };
}

/** What a hook of this thread returns, as JSON has it. Rejects as a call in another thread does. */
async function settled(call: () => Promise<unknown>, timeoutMs: number, signal: AbortSignal): Promise<unknown> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const left = new Promise<never>((_, reject) => {
    either.addEventListener("abort", () => reject(either.reason as Error));
  });
  return JSON.parse(JSON.stringify((await Promise.race([call(), left])) ?? null)) as unknown;
}

/** The refusal of a `RequestError`; anything else as it is. */
function refusalOf(error: unknown, requestId: string): unknown {
  if (!(error instanceof Error) || error.name !== "RequestError") return error;
  const { end } = failureEnd(error, { requestId, showErrors: false });
  return "failure" in end ? new FailureError(end.failure) : error;
}

function tooLate(ms: number): FailureError {
  return new FailureError({
    kind: "unavailable",
    status: 503,
    message: `The hook of this server did not answer within ${ms} ms. Please try again later.`,
    code: "hook_timeout",
    retryAfterSeconds: 1,
  });
}
