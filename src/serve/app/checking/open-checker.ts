import { FailureError } from "../../../wire/core/failure.ts";
import { howItEnded, startLimitedProcess } from "../../../engines/lifecycle/limited-process.ts";
import type { Checker } from "../../server/admin/model-control.ts";
import type { CheckEvent } from "../../../judge/check/report/report.ts";

/** Two servers are checked side by side. */
const maxChecks = 2;
/** A slow model needs some minutes for its 250 answers. In milliseconds. */
const longest = 60 * 60_000;
/** A server under check may send what it likes. */
const limits = { heapMiB: 1024, memoryMiB: 1536 };

/** Checks servers, each in a process of its own, which ends with its check. */
export function openChecker(): Checker {
  let running = 0;
  async function* run(script: URL, asked: object, signal: AbortSignal): AsyncGenerator<object> {
    if (running >= maxChecks) throw tooMany();
    running++;
    let isFree = false;
    const free = (): void => {
      if (!isFree) running--;
      isFree = true;
    };
    // Not only when the process has ended, which on a busy machine is later than its connections have.
    signal.addEventListener("abort", free);
    try {
      yield* eventsOf(script, asked, signal);
    } finally {
      signal.removeEventListener("abort", free);
      free();
    }
  }
  return {
    check: (asked, signal) => run(new URL("./check-process.js", import.meta.url), asked, signal),
    between: (asked, signal) => run(new URL("./between-process.js", import.meta.url), asked, signal),
  };
}

async function* eventsOf(script: URL, asked: object, signal: AbortSignal): AsyncGenerator<object> {
  const arrived: FromCheck[] = [];
  let end: { readonly error?: Error } | undefined;
  let wake = (): void => {};
  const finish = (error?: Error): void => {
    end ??= error ? { error } : {};
    wake();
  };
  const leave = (): void => finish();
  const child = startLimitedProcess(script, limits, certificates())
    .on("message", (message: FromCheck) => {
      arrived.push(message);
      wake();
    })
    .on("error", (error) => finish(failed(`The check could not be started: ${error.message}`)))
    .on("exit", (code, how) => finish(failed(`The check has ended: ${howItEnded(code, how, limits)}.`)));
  child.send(asked, () => {});
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
    child.kill("SIGKILL");
  }
}

/** Variables that say which certificates this server trusts (Node's CLI documentation). */
function certificates(): Readonly<Record<string, string | undefined>> {
  const { NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, SSL_CERT_DIR } = process.env;
  return { NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, SSL_CERT_DIR };
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

/** A message of the process that runs a check: an event, or why the server cannot be checked. */
export type FromCheck = CheckEvent | { readonly type: "failed"; readonly message: string };
