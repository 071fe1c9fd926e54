import { EngineLifecycle, shuttingDown } from "../engines/lifecycle/engine-lifecycle.ts";
import type { Engine, EngineHealth, ModelInfo, TokenizeRequest } from "../core/engine.ts";
import type { GenerationEnd, GenerationFailure } from "../core/events.ts";
import { FailureError } from "../core/failure.ts";
import type { GenerationObserver } from "../core/generation-observer.ts";
import type { GenerationRequest } from "../core/request.ts";
import type { Ability, EngineState, LookUpAnswer } from "./engine-messages.ts";
import { RemoteGeneration } from "./remote-generation.ts";
import type { Remote } from "./remote-generation.ts";

type ValueOf<A extends Ability> = Extract<LookUpAnswer<A>, { readonly value: unknown }>["value"];

/** How an engine's own process is told and asked. */
export interface Line {
  /** Begins a generation; what comes of it goes to `receive` of the one that is given. Returns the number by which it is known. */
  begin(request: string, generation: RemoteGeneration): number;
  taken(id: number, batches: number): void;
  leave(id: number): void;
  forget(id: number): void;
  /** Rejects when `signal` is aborted, with its reason, and when the connection ends. */
  lookUp<A extends Ability>(about: A, request: string, signal: AbortSignal): Promise<LookUpAnswer<A>>;
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

  get countTokens(): Engine["countTokens"] {
    if (!this.#able("countTokens")) return undefined;
    return (request, signal) => this.#lookUp("countTokens", portable(request), signal);
  }

  get tokenize(): Engine["tokenize"] {
    if (!this.#able("tokenize")) return undefined;
    return (request, signal) => this.#lookUp("tokenize", portableTokenize(request), signal);
  }

  get detokenize(): Engine["detokenize"] {
    if (!this.#able("detokenize")) return undefined;
    return (request, signal) => this.#lookUp("detokenize", request, signal);
  }

  get applyTemplate(): Engine["applyTemplate"] {
    if (!this.#able("applyTemplate")) return undefined;
    return (request, signal) => this.#lookUp("applyTemplate", portable(request), signal);
  }

  get slots(): Engine["slots"] {
    if (!this.#able("slots")) return undefined;
    return (signal) => this.#lookUp("slots", null, signal);
  }

  get embed(): Engine["embed"] {
    if (!this.#able("embed")) return undefined;
    return (request, signal) => this.#lookUp("embed", request, signal);
  }

  get rerank(): Engine["rerank"] {
    if (!this.#able("rerank")) return undefined;
    return (request, signal) => this.#lookUp("rerank", request, signal);
  }

  close(graceMs: number): Promise<void> {
    return this.#lifecycle.close(graceMs, {
      stop: (generation) => generation.end(shuttingDown),
      release: async () => this.#line.close(),
    });
  }

  #able(ability: Ability): boolean {
    return this.#state.abilities.includes(ability);
  }

  async #lookUp<A extends Ability>(about: A, request: unknown, signal: AbortSignal): Promise<ValueOf<A>> {
    if (this.#lifecycle.state === "closed") throw new FailureError(shuttingDown.failure);
    const asked = jsonOf(request);
    if (asked === undefined) throw new FailureError(tooDeep.failure);
    const answer = await this.#line.lookUp(about, asked, signal);
    if ("failure" in answer) throw new FailureError(answer.failure);
    return answer.value;
  }
}

/** Only an upstream reads a client's own JSON, and none is asked from the primary process. */
function portable(request: GenerationRequest): GenerationRequest {
  return { ...request, passthrough: undefined };
}

function portableTokenize(request: TokenizeRequest): TokenizeRequest {
  const { input } = request;
  return {
    ...request,
    body: {},
    input: input.kind === "chat" ? { kind: "chat", request: portable(input.request) } : input,
  };
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
