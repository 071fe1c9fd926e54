import { canAnswer } from "../../../wire/core/engine.ts";
import type { SlotState } from "../../../wire/core/engine.ts";
import { changeBetween } from "../../../judge/inspect/model-states.ts";
import type { ModelState, ModelStates, ModelStatesEvent, SlotReport } from "../../../judge/inspect/model-states.ts";
import { healthOf } from "../health.ts";
import type { ServedEngine } from "../model-directory.ts";
import type { EngineReport, Service } from "../service.ts";
import type { ControlledModel, ModelControl } from "./model-control.ts";

/** The minimum time between two samples, in milliseconds. */
const intervalMs = 250;
/** How long a sample waits for the slots of a model: its process answers between two decodes. In milliseconds. */
const slotsMs = 150;

/**
 * Yields a snapshot of all models, and then the changes, each from the last yielded state to the newest sample. Ends when `signal` is
 * aborted, and when the server stops. Throws `FailureError`.
 */
export async function* modelEvents(
  service: Service,
  control: ModelControl,
  signal: AbortSignal,
): AsyncGenerator<ModelStatesEvent> {
  const watch = watches.get(service) ?? new ModelWatch(service, control);
  watches.set(service, watch);
  let sent: ModelStates | undefined;
  while (!signal.aborted && service.state === "ready") {
    const states = await watch.next();
    const event: ModelStatesEvent | undefined = sent ? changeBetween(sent, states) : { type: "snapshot", ...states };
    sent = states;
    // A server that stops closes its engines, which says nothing about the models.
    if (event && service.state === "ready") yield event;
  }
}

const watches = new WeakMap<Service, ModelWatch>();

/**
 * Samples the states of all models for `GET /admin/models/live`. All listeners share the samples. A sample is taken only while a listener
 * waits for one, so a server without listeners, and one whose listeners do not read, does nothing.
 */
class ModelWatch {
  readonly #service: Service;
  readonly #control: ModelControl;
  #sample: Promise<ModelStates> | undefined;
  /** By the clock of `performance.now`. */
  #sampledAt = -Infinity;
  readonly #slots = new WeakMap<ServedEngine, SlotWatch>();
  readonly #rates = new Rates();

  constructor(service: Service, control: ModelControl) {
    this.#service = service;
    this.#control = control;
  }

  /** The next sample: immediately, unless the last one is newer than `intervalMs`. Rejects with `FailureError`. */
  next(): Promise<ModelStates> {
    return (this.#sample ??= this.#take());
  }

  async #take(): Promise<ModelStates> {
    const service = this.#service;
    try {
      const wait = this.#sampledAt + intervalMs - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      this.#sampledAt = performance.now();
      const reports = healthOf(service).engines;
      const { engines } = service.directory;
      const [listed] = await Promise.all([
        this.#control.list(),
        ...engines.map((served) => this.#slotsOf(served).look(served)),
      ]);
      const models = reports.flatMap((report, at) => {
        const served = engines[at];
        const found = listed.models[at];
        return served ? this.#stateOf(served, found?.name === served.name ? found : undefined, report) : [];
      });
      const now = performance.now();
      const pulls = (listed.pulls ?? []).map((pull) => ({
        ...pull,
        ...optional("bytes_per_second", this.#rates.of(`pull ${pull.model}`, pull.bytes, now)),
      }));
      this.#rates.forgetBefore(now - keptMs);
      return service.settings.mask.value({ memory: listed.memory, models, pulls });
    } finally {
      this.#sample = undefined;
    }
  }

  #slotsOf(served: ServedEngine): SlotWatch {
    const watch = this.#slots.get(served) ?? new SlotWatch();
    this.#slots.set(served, watch);
    return watch;
  }

  #stateOf(served: ServedEngine, listed: ControlledModel | undefined, health: EngineReport): ModelState {
    const { name, engine, kind, source, aliases, fallbacks } = served;
    const { slots, counters = {}, queued, wanted } = health;
    // Of local models, the process that has them knows the state first.
    const { state, message } = kind === "local" && listed ? listed : health;
    const contextLength = kind === "local" ? engine.models()[0]?.contextLength : undefined;
    const restarts = counters["restarts"];
    const each = this.#slotsOf(served).reports;
    return {
      name,
      ...optional("kind", kind),
      ...optional("source", source),
      models: engine.models().map(({ id }) => id),
      ...(aliases.length > 0 && { aliases }),
      ...optional("fallbacks", fallbacks),
      state,
      ...optional("message", message),
      ...optional("progress", listed?.progress),
      ...optional("memory", listed?.memory),
      ...optional("load", listed?.load),
      ...optional("keep", listed?.keep),
      ...optional("idle_unload_ms", listed?.idle_unload_ms),
      ...optional("context_length", contextLength),
      ...optional("busy", listed?.busy ?? counters["outstanding"] ?? counters["running"]),
      ...optional("queued", queued),
      ...(wanted === true && { leaving: true as const }),
      ...(slots && { slots: { ...slots, ...(kind === "local" && each.length > 0 && { each }) } }),
      ...(restarts !== undefined && restarts > 0 && { restarts }),
      ...optional("urls", health.urls),
    };
  }
}

/** A member, unless its value is null or undefined. */
function optional<Name extends string, Value>(name: Name, value: Value): { readonly [N in Name]?: NonNullable<Value> } {
  return (value === undefined || value === null ? {} : { [name]: value }) as { [N in Name]?: NonNullable<Value> };
}

const never = new AbortController().signal;

/** The slots of one local model. They are asked for while one is busy. */
class SlotWatch {
  reports: readonly SlotReport[] = [];
  readonly #rates = new Rates();
  #asking: Promise<void> | undefined;

  /** Resolves when the slots are known, or after `slotsMs`: then the next sample has them. Never rejects. */
  async look({ engine, kind }: ServedEngine): Promise<void> {
    const { slots, state } = engine.health();
    if (kind !== "local" || !slots || state !== "ready") {
      this.reports = [];
      return;
    }
    const isSettled = this.reports.length > 0 && this.reports.every(({ state: own }) => own === "idle");
    if ((slots.busy === 0 && isSettled) || !canAnswer(engine, "slots")) return;
    this.#asking ??= engine
      .ask({ kind: "slots", request: null }, never)
      .then((answer) => this.#take(answer))
      // Its process has ended: the state says so.
      .catch(() => {})
      .finally(() => (this.#asking = undefined));
    let timer: ReturnType<typeof setTimeout> | undefined;
    await Promise.race([this.#asking, new Promise<void>((resolve) => (timer = setTimeout(resolve, slotsMs)))]);
    clearTimeout(timer);
  }

  #take(slots: readonly SlotState[]): void {
    const now = performance.now();
    this.reports = slots.map(({ id, busy, task, contextSize, ...counts }) => {
      const { promptTokens, cachedTokens, evaluatedTokens, generatedTokens } = counts;
      const state = !busy ? "idle" : evaluatedTokens < promptTokens ? "prompt" : "generating";
      const done = state === "prompt" ? evaluatedTokens - cachedTokens : generatedTokens;
      return {
        id,
        state,
        context_size: contextSize,
        context_used: evaluatedTokens + generatedTokens,
        prompt_tokens: promptTokens,
        cached_tokens: cachedTokens,
        processed_tokens: evaluatedTokens,
        generated_tokens: generatedTokens,
        ...(busy && optional("tokens_per_second", this.#rates.of(`${id} ${task} ${state}`, done, now))),
      };
    });
    this.#rates.forgetBefore(now - keptMs);
  }
}

/** The time over which rates are measured, in milliseconds. */
const windowMs = 2000;
/** Counts that were not reported for this time are forgotten, in milliseconds. */
const keptMs = 10_000;

/** Rates of counts, over the last seconds. */
export class Rates {
  readonly #counts = new Map<string, { readonly at: number; readonly count: number }[]>();

  /** The increase per second of the count of this name, rounded to a tenth; undefined for a new one. `now` in milliseconds. */
  of(name: string, count: number, now: number): number | undefined {
    const known = this.#counts.get(name) ?? [];
    const isReset = (known.at(-1)?.count ?? 0) > count;
    const points = [...(isReset ? [] : known), { at: now, count }];
    // One point that is older than the window is kept, to measure from.
    while ((points[1]?.at ?? Infinity) <= now - windowMs) points.shift();
    this.#counts.set(name, points);
    const [first] = points;
    const seconds = first ? (now - first.at) / 1000 : 0;
    return first && seconds > 0 ? Math.round(((count - first.count) / seconds) * 10) / 10 : undefined;
  }

  forgetBefore(time: number): void {
    for (const [name, points] of this.#counts) if ((points.at(-1)?.at ?? 0) < time) this.#counts.delete(name);
  }
}
