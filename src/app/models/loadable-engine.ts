import { shuttingDown } from "../../engines/lifecycle/engine-lifecycle.ts";
import { cancellable } from "../../core/cancellable.ts";
import type {
  DetokenizeRequest,
  EmbeddingAnswer,
  EmbeddingRequest,
  Engine,
  EngineHealth,
  ModelInfo,
  RerankAnswer,
  RerankRequest,
  SlotState,
  Tokenization,
  TokenizeRequest,
} from "../../core/engine.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { FailureError } from "../../core/failure.ts";
import type { GenerationObserver } from "../../core/generation-observer.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { internalError } from "../../apis/failures.ts";
import type { KeptModel, Lease, ModelKeeper } from "./model-keeper.ts";

type Batch = readonly GenerationEvent[];

/** A model that is loaded when it is asked for, and stays while it answers. */
export class LoadableEngine implements Engine {
  readonly model: KeptModel;
  readonly #keeper: ModelKeeper;
  #closed = false;
  #models: readonly ModelInfo[];
  /** What the list was made of. */
  #listed: ModelInfo;

  constructor(model: KeptModel, keeper: ModelKeeper) {
    this.model = model;
    this.#keeper = keeper;
    this.#listed = model.loadable.info;
    this.#models = [this.#listed];
  }

  /** What the file says, and what the loaded model says better. */
  models(): readonly ModelInfo[] {
    const { engine, loadable } = this.model;
    const info = engine?.models()[0] ?? loadable.info;
    if (info !== this.#listed) {
      this.#listed = info;
      this.#models = [{ ...info, created: loadable.info.created }];
    }
    return this.#models;
  }

  generate(request: GenerationRequest, observer?: GenerationObserver): AsyncIterable<Batch> {
    return { [Symbol.asyncIterator]: () => this.#begin(request, observer) };
  }

  countTokens(request: GenerationRequest, signal: AbortSignal): Promise<number> {
    return this.#loaded(signal, (engine) => engine.countTokens?.(request, signal));
  }

  tokenize(request: TokenizeRequest, signal: AbortSignal): Promise<Tokenization> {
    return this.#loaded(signal, (engine) => engine.tokenize?.(request, signal));
  }

  detokenize(request: DetokenizeRequest, signal: AbortSignal): Promise<string> {
    return this.#loaded(signal, (engine) => engine.detokenize?.(request, signal));
  }

  applyTemplate(request: GenerationRequest, signal: AbortSignal): Promise<string> {
    return this.#loaded(signal, (engine) => engine.applyTemplate?.(request, signal));
  }

  embed(request: EmbeddingRequest, signal: AbortSignal, observer?: GenerationObserver): Promise<EmbeddingAnswer> {
    return this.#loaded(signal, (engine) => engine.embed?.(request, signal, observer));
  }

  rerank(request: RerankRequest, signal: AbortSignal, observer?: GenerationObserver): Promise<RerankAnswer> {
    return this.#loaded(signal, (engine) => engine.rerank?.(request, signal, observer));
  }

  /** None while the model is not loaded: to look must not load it. */
  async slots(signal: AbortSignal): Promise<readonly SlotState[]> {
    return (await this.model.engine?.slots?.(signal)) ?? [];
  }

  async #loaded<T>(signal: AbortSignal, ask: (engine: Engine) => Promise<T> | undefined): Promise<T> {
    const lease = await this.#keeper.ask(this.model, { signal });
    try {
      const answer = ask(lease.engine);
      if (!answer) throw internalError(new Error(`${this.model.name} cannot be asked that`));
      return await answer;
    } finally {
      lease.release();
    }
  }

  health(): EngineHealth {
    const { engine, failure, progress } = this.model;
    const waiting = this.#keeper.waitingFor(this.model);
    if (this.#closed) return { state: "closed" };
    if (engine) {
      const { queued = 0, ...health } = engine.health();
      const wanted = this.#keeper.isWanted(this.model);
      return { ...health, queued: queued + waiting, ...(wanted && { wanted }) };
    }
    const state = this.#keeper.stateOf(this.model);
    if (state === "loading" || state === "preparing") {
      const doing = progress?.phase === "download" ? "Downloading" : "Loading";
      return {
        state: "loading",
        queued: waiting,
        message: `${doing}: ${Math.floor((progress?.fraction ?? 0) * 100)} %.`,
      };
    }
    return failure
      ? { state: "failed", queued: waiting, message: failure.message }
      : { state: "unloaded", queued: waiting };
  }

  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    await this.#keeper.remove(this.model, graceMs);
  }

  #begin(request: GenerationRequest, observer?: GenerationObserver): AsyncIterator<Batch> {
    const isHere = this.#keeper.stateOf(this.model) === "in" && !this.#keeper.isWanted(this.model);
    const lease = isHere ? this.#keeper.ask(this.model) : undefined;
    if (lease && !(lease instanceof Promise)) return leased(lease, request, observer);
    return cancellable((signal) => this.#generateLater(request, signal, observer));
  }

  /** Generates when the model is there. */
  async *#generateLater(
    request: GenerationRequest,
    signal: AbortSignal,
    observer?: GenerationObserver,
  ): AsyncGenerator<Batch> {
    let lease: Lease;
    try {
      lease = await this.#keeper.ask(this.model, { signal });
    } catch (error) {
      const { failure } = error instanceof FailureError ? error : internalError(error);
      const kind = failure.code === shuttingDown.failure.code ? "shutdown" : "rejected";
      yield [{ type: "end", end: { kind, failure } }];
      return;
    }
    try {
      if (!signal.aborted) yield* lease.engine.generate(request, observer);
    } finally {
      lease.release();
    }
  }
}

/** The generation of a model that is loaded, which is released when it has ended: without a step more for each batch. */
function leased(
  { engine, release }: Lease,
  request: GenerationRequest,
  observer?: GenerationObserver,
): AsyncIterator<Batch> {
  let source: AsyncIterator<Batch>;
  try {
    source = engine.generate(request, observer)[Symbol.asyncIterator]();
  } catch (error) {
    release();
    throw error;
  }
  const over = (error: unknown): never => {
    release();
    throw error;
  };
  const seen = (step: IteratorResult<Batch>): IteratorResult<Batch> => {
    if (step.done === true) release();
    return step;
  };
  return {
    next: () => source.next().then(seen, over),
    async return() {
      try {
        await source.return?.();
      } finally {
        release();
      }
      return { done: true, value: undefined };
    },
  };
}
