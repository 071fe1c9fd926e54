import { cancellable } from "../../src/wire/core/cancellable.ts";
import type {
  Engine,
  EngineAnswer,
  EngineHealth,
  EngineQuestion,
  ModelInfo,
  QuestionHandlers,
  QuestionKind,
} from "../../src/wire/core/engine.ts";
import type { EndEvent, FinishReason, GenerationEvent, GenerationFailure, Usage } from "../../src/wire/core/events.ts";
import { kindOfStatus } from "../../src/wire/core/failure.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { waitMs } from "./hang.ts";

export type Batch = readonly GenerationEvent[];
export type Script = (request: GenerationRequest, signal: AbortSignal) => AsyncIterable<Batch> | Iterable<Batch>;

/** An engine that says what a test wrote down, and counts what is open. */
export class ScriptedEngine implements Engine {
  readonly requests: GenerationRequest[] = [];
  readonly #names: readonly string[];
  readonly #script: Script;
  /** Generations that have begun and neither ended nor were left. */
  running = 0;
  /** Batches that were pulled. */
  pulled = 0;
  /** Generations whose signal was aborted while they ran. */
  aborted = 0;
  closedWith: number | undefined;
  state: EngineHealth["state"] = "ready";
  /** The questions that it answers. */
  readonly handlers: Partial<QuestionHandlers> = {};

  constructor(script: Script, ...names: string[]) {
    this.#script = script;
    this.#names = names.length > 0 ? names : ["scripted"];
  }

  #models: readonly ModelInfo[] | undefined;

  models(): readonly ModelInfo[] {
    return (this.#models ??= this.#names.map((id) => ({
      id,
      created: 1_700_000_000,
      ownedBy: "test",
      endpoints: ["chat", "completions"],
    })));
  }

  generate(request: GenerationRequest): AsyncIterable<Batch> {
    return cancellable((signal) => this.#run(request, signal));
  }

  async *#run(request: GenerationRequest, signal: AbortSignal): AsyncGenerator<Batch> {
    this.requests.push(request);
    this.running++;
    const noteAbort = (): void => {
      this.aborted++;
    };
    signal.addEventListener("abort", noteAbort, { once: true });
    try {
      for await (const batch of this.#script(request, signal)) {
        this.pulled++;
        yield batch;
      }
    } finally {
      signal.removeEventListener("abort", noteAbort);
      this.running--;
    }
  }

  questions(): readonly QuestionKind[] {
    return Object.keys(this.handlers) as QuestionKind[];
  }

  ask<K extends QuestionKind>({ kind, request }: EngineQuestion<K>, signal: AbortSignal): Promise<EngineAnswer<K>> {
    const handlers = this.handlers as QuestionHandlers;
    return handlers[kind](request, signal);
  }

  health(): EngineHealth {
    return { state: this.state, slots: { busy: this.running, total: 8 }, queued: 0, counters: { pulled: this.pulled } };
  }

  async close(graceMs: number): Promise<void> {
    this.closedWith = graceMs;
    const deadline = performance.now() + graceMs;
    while (this.running > 0 && performance.now() < deadline) await sleep(5);
    this.state = "closed";
  }
}

/** The batches of a whole answer: one piece of text each, then the finish, the usage and the end. */
export function* answer(pieces: readonly string[], options: AnswerOptions = {}): Generator<Batch> {
  const { choice = 0, reason = "stop", usage = { promptTokens: 3, completionTokens: pieces.length } } = options;
  for (const [at, text] of pieces.entries()) {
    const delta: GenerationEvent = { type: "text-delta", choice, text };
    yield at === 0 ? [{ type: "start", choice }, delta] : [delta];
  }
  yield [{ type: "finish", choice, reason }, { type: "usage", usage }, done];
}

interface AnswerOptions {
  readonly choice?: number;
  readonly reason?: FinishReason;
  readonly usage?: Usage;
}

/** The batches of an answer that calls one tool. */
export function* callOf(name: string, ...argumentPieces: readonly string[]): Generator<Batch> {
  yield [
    { type: "start", choice: 0 },
    { type: "tool-call-start", choice: 0, index: 0, id: `call_${"0".repeat(24)}`, name },
  ];
  for (const piece of argumentPieces) yield [{ type: "tool-call-delta", choice: 0, index: 0, arguments: piece }];
  yield [
    { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
    { type: "finish", choice: 0, reason: "tool-calls" },
    { type: "usage", usage: { promptTokens: 3, completionTokens: 5 } },
    done,
  ];
}

export const done: EndEvent = { type: "end", end: { kind: "done" } };

export function failed(
  kind: "rejected" | "truncated" | "upstream-error" | "engine-error" | "idle-timeout" | "shutdown",
  failure: Partial<GenerationFailure> = {},
): EndEvent {
  return {
    type: "end",
    end: {
      kind,
      failure: { kind: kindOfStatus(failure.status ?? 500), message: "It broke.", status: 500, ...failure },
    },
  };
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Resolves once `condition` holds; rejects when it hangs. */
export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + waitMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`it never came to pass that ${what}`);
    // Many conditions are a request to a server.
    await sleep(10);
  }
}

/** The text of the last message of a chat, or the first prompt. */
export function asked({ prompt }: GenerationRequest): string {
  if (prompt.kind === "text") return String(prompt.prompts[0]);
  const content = prompt.messages.at(-1)?.content;
  return typeof content === "string" ? content : "";
}
