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
    typeof module === "string" ? new ToolThreads(resolve(module), { limit, maxHeap, isHook: true }) : undefined;
  const own = typeof module === "string" ? {} : module;
  const members = threads ? ((await threads.load()).members ?? []) : (Object.keys(own) as (keyof Hook)[]);
  return {
    sees: new Set(members),
    async run(member, input, context, owner, signal) {
      const late = AbortSignal.timeout(timeout);
      const either = AbortSignal.any([signal, late]);
      try {
        if (!threads) return await settled(Promise.resolve(own[member]?.(input as never, context)), either);
        return JSON.parse(String(await threads.run({ member, input, context }, owner, either))) as unknown;
      } catch (error) {
        signal.throwIfAborted();
        if (late.aborted && onTimeout === "pass") {
          log(`the hook did not answer within ${timeout} ms: the ${member} has passed unseen`, "warn", {
            req: context.requestId,
          });
          return null;
        }
        throw late.aborted ? tooLate(timeout) : refusalOf(error, context.requestId);
      }
    },
    async close() {
      await threads?.close();
    },
  };
}

/** The value as JSON has it: an object in this thread is as one of another thread. */
async function settled(value: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  const left = new Promise<never>((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason as Error)),
  );
  return JSON.parse(JSON.stringify((await Promise.race([value, left])) ?? null)) as unknown;
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
