import { Worker } from "node:worker_threads";
import { FailureError } from "../../core/failure.ts";
import type { CheckRequest, Checker } from "../../server/admin/model-control.ts";
import type { CheckEvent } from "../../check/report/report.ts";

/** Two servers are checked side by side. */
const maxChecks = 2;
/** A slow model needs some minutes for its 250 answers. In milliseconds. */
const longest = 60 * 60_000;
/** Of the thread's heap, in MiB: a server under check may send what it likes. */
const memory = 1024;

/** Checks servers, each in a thread of its own, which ends with its check. */
export function openChecker(): Checker {
  let running = 0;
  return {
    async *check(asked, signal) {
      if (running >= maxChecks) throw tooMany();
      running++;
      try {
        yield* eventsOf(asked, signal);
      } finally {
        running--;
      }
    },
  };
}

async function* eventsOf(asked: CheckRequest, signal: AbortSignal): AsyncGenerator<CheckEvent> {
  const arrived: ThreadMessage[] = [];
  let end: { readonly error?: Error } | undefined;
  let wake = (): void => {};
  const finish = (error?: Error): void => {
    end ??= error ? { error } : {};
    wake();
  };
  const leave = (): void => finish();
  const thread = new Worker(new URL("./check-thread.js", import.meta.url), {
    workerData: asked,
    // Nothing that the server knows concerns the server under check.
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: memory },
  });
  thread
    .on("message", (message: ThreadMessage) => {
      arrived.push(message);
      wake();
    })
    .on("error", finish)
    .on("exit", leave);
  const timer = setTimeout(() => finish(failed("The check took longer than an hour.")), longest);
  signal.addEventListener("abort", leave);
  try {
    while (!signal.aborted) {
      const message = arrived.shift();
      if (message?.type === "failed") throw failed(message.message);
      if (message) yield message;
      if (message?.type === "done") return;
      if (message) continue;
      if (end?.error) throw end.error;
      if (end) return;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", leave);
    await thread.terminate();
  }
}

function failed(message: string): FailureError {
  return new FailureError({ message, status: 502, kind: "bad-answer", param: null, code: "check_failed" });
}

function tooMany(): FailureError {
  return new FailureError({
    message: `${maxChecks} checks are running: wait until one of them has ended.`,
    status: 429,
    kind: "rate-limited",
    param: null,
    code: "too_many_checks",
    retryAfterSeconds: 10,
  });
}

/** A message of the thread that runs a check: an event, or why the server cannot be checked. */
export type ThreadMessage = CheckEvent | { readonly type: "failed"; readonly message: string };
