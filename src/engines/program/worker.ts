/** The worker thread of a program module: loads it, runs it, sends its events. Started by `worker-pool.ts`. */
import { parentPort, workerData } from "node:worker_threads";
import { loggedError } from "../../wire/core/failure.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { toolCallId } from "../../wire/apis/ids.ts";
import type { LoadedProgram } from "./classify-program.ts";
import { failureEnd } from "./program-failure.ts";
import { runProgram } from "./run-program.ts";
import type { FromWorker, ToWorker, WorkerSetup } from "./worker-pool.ts";
import { importModule } from "./import-module.ts";
import { classify, ProgramLoadError } from "./classify-program.ts";
import { random } from "../../wire/random/random.ts";

interface Run {
  readonly abort: AbortController;
  credit: number;
  /** Resumes a run that is waiting for credit. */
  resume: () => void;
}

const { path, format, showErrors } = workerData as WorkerSetup;
const runs = new Map<number, Run>();

try {
  const loaded = await loadProgram(path);
  parentPort?.on("message", (message: ToWorker) => receive(loaded, message));
  const models = loaded.kind === "engine" ? loaded.engine.models() : undefined;
  send({ type: "ready", blocking: loaded.kind === "program" && loaded.blocking, models });
} catch (error) {
  send({ type: "failed", message: error instanceof Error ? error.message : String(error) });
}

function receive(loaded: LoadedProgram, message: ToWorker): void {
  const run = runs.get(message.run);
  switch (message.type) {
    case "run":
      void start(loaded, message.run, message.request, message.credit);
      break;
    case "credit":
      if (!run) break;
      run.credit++;
      run.resume();
      break;
    case "abort":
      run?.abort.abort();
      run?.resume();
  }
}

async function start(loaded: LoadedProgram, id: number, request: GenerationRequest, credit: number): Promise<void> {
  const run: Run = { abort: new AbortController(), credit, resume: () => {} };
  runs.set(id, run);
  try {
    for await (const events of batches(loaded, request, run.abort.signal)) {
      while (run.credit === 0 && !run.abort.signal.aborted)
        await new Promise<void>((resolve) => (run.resume = resolve));
      run.credit--;
      send({ type: "events", run: id, events: events.map(cloneable) });
    }
  } catch (error) {
    send({ type: "events", run: id, events: [cloneable(failureEnd(error, { requestId: request.id, showErrors }))] });
  }
  runs.delete(id);
  send({ type: "done", run: id });
}

function batches(
  loaded: LoadedProgram,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncIterable<readonly GenerationEvent[]> {
  if (loaded.kind === "engine") return untilAborted(loaded.engine.generate(request), signal);
  return runProgram(loaded.program, request, signal, {
    format,
    showErrors,
    newCallId: () => toolCallId(random),
    warn: (line) => send({ type: "warning", line }),
  });
}

/** Returns from the iteration when the signal aborts. */
function untilAborted<T>(iterable: AsyncIterable<T>, signal: AbortSignal): AsyncIterable<T> {
  const iterator = iterable[Symbol.asyncIterator]();
  signal.addEventListener("abort", () => void iterator.return?.()?.catch(() => {}), { once: true });
  return { [Symbol.asyncIterator]: () => iterator };
}

/** A cause may contain functions, which cannot be sent between threads, so only its text is sent. */
function cloneable(event: GenerationEvent): GenerationEvent {
  if (event.type !== "end" || !("failure" in event.end) || event.end.failure.cause === undefined) return event;
  const { cause } = event.end.failure;
  const text = typeof cause === "string" ? cause : loggedError(cause);
  return { ...event, end: { ...event.end, failure: { ...event.end.failure, cause: text } } };
}

function send(message: FromWorker): void {
  parentPort?.postMessage(message);
}

/** Imports a module and classifies its default export. */
async function loadProgram(path: string): Promise<LoadedProgram> {
  let value: unknown;
  try {
    value = (await importModule(path))["default"];
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ProgramLoadError(`${path} could not be loaded: ${reason}`, { cause });
  }
  const loaded = classify(value);
  if (loaded === undefined) {
    throw new ProgramLoadError(
      `${path} needs a default export that is a function, an AI SDK language model or an engine; it is ${describe(value)}.`,
    );
  }
  return loaded;
}

function describe(value: unknown): string {
  if (value === undefined) return "missing";
  return value === null ? "null" : typeof value === "object" ? "an object of another form" : `a ${typeof value}`;
}
