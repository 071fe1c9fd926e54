import { shuttingDown } from "../../../engines/lifecycle/engine-lifecycle.ts";
import { canAnswer } from "../../../wire/core/engine.ts";
import type {
  Engine,
  EngineAnswer,
  EngineHealth,
  EngineQuestion,
  ModelInfo,
  QuestionKind,
  SlotState,
} from "../../../wire/core/engine.ts";
import type { GenerationEvent } from "../../../wire/core/events.ts";
import { FailureError } from "../../../wire/core/failure.ts";
import { isObject } from "../../../wire/core/json.ts";
import type { GenerationObserver } from "../../../wire/core/generation-observer.ts";
import { Relay } from "../../../wire/core/relay.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";
import { internalError } from "../../../wire/apis/failures.ts";
import type { KeptModel, Lease, ModelKeeper } from "./model-keeper.ts";

type Batch = readonly GenerationEvent[];

const localQuestions: readonly QuestionKind[] = [
  "count-tokens",
  "tokenize",
  "detokenize",
  "apply-template",
  "slots",
  "end-reasoning",
  "usage",
  "embed",
  "rerank",
];

const noSlots: readonly SlotState[] = [];

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
      const { created, file, defaults } = loadable.info;
      this.#models = [{ ...info, created, ...(file && { file }), ...(defaults && { defaults }) }];
    }
    return this.#models;
  }

  generate(request: GenerationRequest, observer?: GenerationObserver): AsyncIterable<Batch> {
    let lease: Lease | undefined;
    const open = async (relay: Relay): Promise<Batch> => {
      const isHere = this.#keeper.stateOf(this.model) === "in" && !this.#keeper.isWanted(this.model);
      try {
        lease = await this.#keeper.ask(this.model, isHere ? {} : { signal: relay.signal, owner: request.owner });
      } catch (error) {
        const { failure } = error instanceof FailureError ? error : internalError(error);
        const kind = failure.code === shuttingDown.failure.code ? "shutdown" : "rejected";
        return [{ type: "end", end: { kind, failure } }];
      }
      const { engine, release } = lease;
      if (relay.hasEnded) release();
      return relay.ask(() => engine.generate(request, observer));
    };
    return new Relay(open, { onEnd: () => lease?.release() });
  }

  questions(): readonly QuestionKind[] {
    return localQuestions;
  }

  async ask<K extends QuestionKind>(
    question: EngineQuestion<K>,
    signal: AbortSignal,
    observer?: GenerationObserver,
  ): Promise<EngineAnswer<K>> {
    const { kind } = question;
    // A question about slots, or running answers, does not load the model.
    const lease =
      kind === "slots" || kind === "end-reasoning" || kind === "usage"
        ? undefined
        : await this.#keeper.ask(this.model, { signal, owner: ownerOf(question.request) });
    const engine = lease?.engine ?? this.model.engine;
    try {
      if (engine && canAnswer(engine, kind)) return await engine.ask(question, signal, observer);
      if (kind === "slots") return noSlots as EngineAnswer<K>;
      if (kind === "end-reasoning") return false as EngineAnswer<K>;
      if (kind === "usage") return null as EngineAnswer<K>;
      throw internalError(new Error(`${this.model.name} does not answer ${kind}.`));
    } finally {
      lease?.release();
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
}

/** The owner of the key of a question's client, if questions of its kind have one. */
function ownerOf(request: unknown): string | undefined {
  return isObject(request) && typeof request["owner"] === "string" ? request["owner"] : undefined;
}
