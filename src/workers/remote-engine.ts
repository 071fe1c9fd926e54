import { EngineLifecycle, shuttingDown } from "../engines/lifecycle/engine-lifecycle.ts";
import type { Engine, EngineAnswer, EngineHealth, EngineQuestion, ModelInfo, QuestionKind } from "../core/engine.ts";
import type { GenerationEnd, GenerationFailure } from "../core/events.ts";
import { FailureError } from "../core/failure.ts";
import type { GenerationObserver } from "../core/generation-observer.ts";
import type { GenerationRequest } from "../core/request.ts";
import type { EngineState, LookUpAnswer } from "./engine-messages.ts";
import { RemoteGeneration } from "./remote-generation.ts";
import type { Remote } from "./remote-generation.ts";

/** How an engine's own process is told and asked. */
export interface Line {
  /** Begins a generation; what comes of it goes to `receive` of the one that is given. Returns the number by which it is known. */
  begin(request: string, generation: RemoteGeneration): number;
  taken(id: number, batches: number): void;
  leave(id: number): void;
  forget(id: number): void;
  /** Rejects when `signal` is aborted, with its reason, and when the connection ends. */
  lookUp<K extends QuestionKind>(kind: K, request: string, signal: AbortSignal): Promise<LookUpAnswer<K>>;
  /** The engine is needed no more. */
  close(): void;
}

/** An engine that lives in the primary process. */
export class RemoteEngine implements Engine {
  readonly #line: Line;
  readonly #lifecycle = new EngineLifecycle<RemoteGeneration>();
  #state: EngineState;
  #isLost = false;

  constructor(line: Line, state: EngineState) {
    this.#line = line;
    this.#state = state;
  }

  /** The news of the primary process. */
  become(state: EngineState): void {
    this.#state = state;
  }

  /** The primary process is gone. */
  lost(): void {
    this.#state = { ...this.#state, health: { state: "failed", message: primaryGone.message } };
    this.#isLost = true;
    for (const generation of this.#lifecycle.open) generation.end(lost);
  }

  models(): readonly ModelInfo[] {
    return this.#state.models;
  }

  health(): EngineHealth {
    return this.#lifecycle.state === "closed" ? { state: "closed" } : this.#state.health;
  }

  generate(request: GenerationRequest, observer?: GenerationObserver): RemoteGeneration {
    let id: number | undefined;
    const remote: Remote = {
      begin: () => {
        this.#lifecycle.begin(generation);
        if (this.#lifecycle.state === "closed") return generation.end(shuttingDown);
        if (this.#isLost) return generation.end(lost);
        const asked = jsonOf(portable(request));
        if (asked === undefined) return generation.end(tooDeep);
        id = this.#line.begin(asked, generation);
      },
      taken: (batches) => {
        if (id !== undefined) this.#line.taken(id, batches);
      },
      leave: () => {
        if (id !== undefined) this.#line.leave(id);
      },
      over: () => {
        if (id !== undefined) this.#line.forget(id);
        this.#lifecycle.end(generation);
      },
    };
    const generation = new RemoteGeneration(remote, observer);
    return generation;
  }

  questions(): readonly QuestionKind[] {
    return this.#state.questions;
  }

  async ask<K extends QuestionKind>(question: EngineQuestion<K>, signal: AbortSignal): Promise<EngineAnswer<K>> {
    if (this.#lifecycle.state === "closed") throw new FailureError(shuttingDown.failure);
    const request = jsonOf(portableRequest(question as EngineQuestion));
    if (request === undefined) throw new FailureError(tooDeep.failure);
    const answer = await this.#line.lookUp(question.kind, request, signal);
    if ("failure" in answer) throw new FailureError(answer.failure);
    return answer.value;
  }

  close(graceMs: number): Promise<void> {
    return this.#lifecycle.close(graceMs, {
      stop: (generation) => generation.end(shuttingDown),
      release: async () => this.#line.close(),
    });
  }
}

/** Only an upstream reads a client's own JSON, and none is asked from the primary process. */
function portable(request: GenerationRequest): GenerationRequest {
  return { ...request, passthrough: undefined };
}

function portableRequest(question: EngineQuestion): EngineQuestion["request"] {
  switch (question.kind) {
    case "count-tokens":
    case "apply-template":
      return portable(question.request);
    case "tokenize": {
      const { input } = question.request;
      const portableInput = input.kind === "chat" ? { ...input, request: portable(input.request) } : input;
      return { ...question.request, body: {}, input: portableInput };
    }
    default:
      return question.request;
  }
}

/** undefined: the value is nested too deeply for JSON. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

export const primaryGone: GenerationFailure = {
  kind: "unavailable",
  message: "The process that holds the server's models has ended.",
  status: 503,
  param: null,
  code: null,
  retryAfterSeconds: 5,
};

const lost: GenerationEnd = { kind: "engine-error", failure: primaryGone };

const tooDeep: Extract<GenerationEnd, { readonly failure: GenerationFailure }> = {
  kind: "rejected",
  failure: {
    kind: "invalid-request",
    message: "The request is nested too deeply.",
    status: 400,
    param: null,
    code: "invalid_value",
  },
};
