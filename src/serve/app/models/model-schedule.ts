/** Something to do. The caller reports the outcome to the schedule. */
export type Effect =
  /** Measure the model: then `prepared` or `failed`. */
  | { readonly do: "prepare"; readonly model: string }
  /** Then `loaded`, `resized` or `failed`. */
  | { readonly do: "load"; readonly model: string }
  /** Then `unloaded`. */
  | { readonly do: "unload"; readonly model: string }
  /** The ticket may use its model until `done`; or, for a ticket of `askOut`, its model is unloaded. */
  | { readonly do: "grant"; readonly ticket: number }
  | { readonly do: "refuse"; readonly ticket: number; readonly why: RefusalReason };

/**
 * `too-large`: it never fits next to the models that stay. `no-memory`: it fits only if another model is unloaded. `gone`: it was removed.
 */
export type RefusalReason = "too-large" | "no-memory" | "failed" | "gone";

export type ModelLoadState = "out" | "preparing" | "loading" | "in" | "leaving";

interface Slot {
  readonly model: string;
  /** Never unloaded in favor of another model. */
  keep: boolean;
  /** In bytes; `undefined` until the model is measured. */
  size: number | undefined;
  state: ModelLoadState;
  /** Answers that are being generated. */
  busy: number;
  /** Counts up with every use of any model. */
  usedAt: number;
  /** Requests that wait for the model, in the order of arrival. */
  readonly waiting: Map<number, Ticket>;
  /** Tickets of `askOut`. */
  readonly unloads: Set<number>;
  removed: boolean;
}

interface Ticket {
  readonly id: number;
  readonly slot: Slot;
  readonly evicts: boolean;
  /** Counts up with every request for any model. */
  readonly arrival: number;
}

/**
 * Decides which models are in memory: which requests wait, which models are unloaded, which requests are refused. It has no side effects
 * and no clock: every method returns the effects that the caller runs.
 *
 * - The models that are loaded, loading or unloading never exceed the budget, if their measured sizes are right.
 * - A busy model is never unloaded. A model with `keep` is unloaded only by `askOut`, `idle` and `remove`.
 * - Requests wait in order: the model of the first one that is not loaded is loaded next. For it, idle models are unloaded, least recently
 *   used first, then busy ones when they become idle. Those take no further requests before the waiting one, so it waits at most for the
 *   answers in progress.
 * - Models load one at a time.
 *
 * A step takes time for the models and for the requests that it grants or refuses, not for those that wait.
 */
export class ModelSchedule {
  #budget: number;
  readonly #slots = new Map<string, Slot>();
  /** Models that are unloaded as soon as they are idle, since another one needs their memory. */
  #victims: ReadonlySet<Slot> = new Set();
  #clock = 0;
  #arrivals = 0;
  #effects: Effect[] = [];

  /** @param budget Memory for all models, in bytes. */
  constructor(budget: number = Infinity) {
    this.#budget = budget;
  }

  setBudget(budget: number): Effect[] {
    this.#budget = budget;
    return this.#advance();
  }

  /** Adds a model. `size` in bytes, if it is known already. */
  add(model: string, { size, keep = false }: { readonly size?: number; readonly keep?: boolean } = {}): void {
    this.#slots.set(model, {
      model,
      keep,
      size,
      state: "out",
      busy: 0,
      usedAt: 0,
      waiting: new Map(),
      unloads: new Set(),
      removed: false,
    });
  }

  setKeep(model: string, keep: boolean): Effect[] {
    this.#slot(model).keep = keep;
    return this.#advance();
  }

  /** Removes a model. If it is in memory, the caller unloads it and calls `unloaded`. */
  remove(model: string): Effect[] {
    const slot = this.#slot(model);
    slot.removed = true;
    for (const ticket of slot.waiting.values()) this.#refuse(ticket, "gone");
    if (slot.state === "in") slot.state = "leaving";
    if (slot.state === "out") this.#slots.delete(model);
    return this.#advance();
  }

  /** Requests the use of a model. `evicts: false`: only if no other model has to be unloaded. */
  ask(ticket: number, model: string, { evicts = true }: { readonly evicts?: boolean } = {}): Effect[] {
    const slot = this.#slot(model);
    slot.waiting.set(ticket, { id: ticket, slot, evicts, arrival: ++this.#arrivals });
    return this.#advance();
  }

  /** Requests that a model is unloaded, even one with `keep`. The ticket is granted when the model is unloaded. */
  askOut(ticket: number, model: string): Effect[] {
    const slot = this.#slot(model);
    if (slot.state === "out") this.#effects.push({ do: "grant", ticket });
    else slot.unloads.add(ticket);
    return this.#advance();
  }

  /** Cancels a ticket that was neither granted nor refused. */
  forget(ticket: number): Effect[] {
    for (const { waiting, unloads } of this.#slots.values()) {
      waiting.delete(ticket);
      unloads.delete(ticket);
    }
    return this.#advance();
  }

  /** Ends a granted use of the model. The model may have been removed meanwhile. */
  done(model: string): Effect[] {
    const slot = this.#slots.get(model);
    if (slot) {
      slot.busy--;
      if (slot.busy === 0) slot.usedAt = ++this.#clock;
    }
    return this.#advance();
  }

  /** The idle time of the model is over: it is unloaded unless it is busy. */
  idle(model: string): Effect[] {
    const slot = this.#slot(model);
    if (slot.state === "in" && slot.busy === 0) this.#unload(slot);
    return this.#advance();
  }

  prepared(model: string, size: number): Effect[] {
    const slot = this.#slot(model);
    slot.size = size;
    return this.#nowOut(slot);
  }

  /** The model turned out to have another size when it was about to be loaded. */
  resized(model: string, size: number): Effect[] {
    return this.prepared(model, size);
  }

  loaded(model: string): Effect[] {
    const slot = this.#slot(model);
    slot.state = "in";
    slot.usedAt = ++this.#clock;
    if (slot.removed) this.#unload(slot);
    // All that wait for the model, at any position: it was loaded for the first of them.
    else for (const ticket of slot.waiting.values()) this.#grant(ticket);
    return this.#advance();
  }

  unloaded(model: string): Effect[] {
    return this.#nowOut(this.#slot(model));
  }

  /** The model could not be measured or loaded: waiting requests are refused; the next request tries again. */
  failed(model: string): Effect[] {
    const slot = this.#slot(model);
    slot.size = undefined;
    for (const ticket of slot.waiting.values()) this.#refuse(ticket, "failed");
    return this.#nowOut(slot);
  }

  stateOf(model: string): ModelLoadState {
    return this.#slots.get(model)?.state ?? "out";
  }

  sizeOf(model: string): number | undefined {
    return this.#slots.get(model)?.size;
  }

  busyOf(model: string): number {
    return this.#slots.get(model)?.busy ?? 0;
  }

  /** Number of requests that wait for the model. */
  waitingFor(model: string): number {
    return this.#slots.get(model)?.waiting.size ?? 0;
  }

  /** True if the model is unloaded as soon as it is idle. */
  isWanted(model: string): boolean {
    const slot = this.#slots.get(model);
    return slot !== undefined && (this.#victims.has(slot) || slot.unloads.size > 0);
  }

  /** Memory of the models that are loaded, loading or unloading, in bytes. */
  get used(): number {
    let used = 0;
    for (const slot of this.#slots.values()) if (usesMemory(slot)) used += slot.size ?? 0;
    return used;
  }

  get budget(): number {
    return this.#budget;
  }

  #slot(model: string): Slot {
    const slot = this.#slots.get(model);
    if (!slot) throw new Error(`There is no model ${model}.`);
    return slot;
  }

  /** Advances the waiting requests and returns the effects to run. */
  #advance(): Effect[] {
    for (const slot of this.#slots.values()) {
      if (slot.unloads.size > 0 && slot.state === "in" && slot.busy === 0) this.#unload(slot);
    }
    this.#victims = new Set();
    // Models are loaded and unloaded only for the first request whose model is not loaded.
    for (let first = this.#firstNotLoaded(); first; first = this.#firstNotLoaded()) {
      this.#grantUntil(first.arrival);
      const { slot } = first;
      if (slot.state === "out" && slot.size === undefined) {
        slot.state = "preparing";
        this.#effects.push({ do: "prepare", model: slot.model });
      } else if (this.#loadFor(first)) break;
    }
    this.#grantUntil(Infinity);
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  /** The first request whose model is neither loaded nor being measured. */
  #firstNotLoaded(): Ticket | undefined {
    let first: Ticket | undefined;
    for (const { state, waiting } of this.#slots.values()) {
      if (state === "in" || state === "preparing" || waiting.size === 0) continue;
      const [ticket] = waiting.values();
      if (ticket && ticket.arrival < (first?.arrival ?? Infinity)) first = ticket;
    }
    return first;
  }

  /** Grants the requests for loaded models that arrived before `arrival`. */
  #grantUntil(arrival: number): void {
    const granted: Ticket[] = [];
    for (const { model, state, waiting } of this.#slots.values()) {
      if (state !== "in" || waiting.size === 0 || this.isWanted(model)) continue;
      for (const ticket of waiting.values()) {
        if (ticket.arrival >= arrival) break;
        granted.push(ticket);
      }
    }
    for (const ticket of granted.sort((a, b) => a.arrival - b.arrival)) this.#grant(ticket);
  }

  /** Loads the model of the first ticket, or unloads others for it. Returns false if the ticket was refused. */
  #loadFor(ticket: Ticket): boolean {
    const { slot, evicts } = ticket;
    const all = [...this.#slots.values()];
    if (slot.state !== "out" || all.some(({ state }) => state === "loading")) return true;
    let missing = (slot.size ?? 0) - (this.#budget - this.used);
    if (missing <= 0) {
      slot.state = "loading";
      this.#effects.push({ do: "load", model: slot.model });
      return true;
    }
    for (const other of all) if (other.state === "leaving") missing -= other.size ?? 0;
    if (missing <= 0) return true;
    const candidates = all.filter(({ state, keep }) => state === "in" && !keep);
    if (missing > sizesOf(candidates)) return this.#refuse(ticket, "too-large");
    if (!evicts) return this.#refuse(ticket, "no-memory");
    const victims = victimsAmong(candidates, missing);
    if (victims.some(({ busy }) => busy > 0)) this.#victims = new Set(victims);
    else for (const victim of victims) this.#unload(victim);
    return true;
  }

  #grant(ticket: Ticket): void {
    const { slot } = ticket;
    slot.waiting.delete(ticket.id);
    slot.busy++;
    slot.usedAt = ++this.#clock;
    this.#effects.push({ do: "grant", ticket: ticket.id });
  }

  #refuse(ticket: Ticket, why: RefusalReason): false {
    ticket.slot.waiting.delete(ticket.id);
    this.#effects.push({ do: "refuse", ticket: ticket.id, why });
    return false;
  }

  #unload(slot: Slot): void {
    slot.state = "leaving";
    this.#effects.push({ do: "unload", model: slot.model });
  }

  #nowOut(slot: Slot): Effect[] {
    slot.state = "out";
    for (const ticket of slot.unloads) this.#effects.push({ do: "grant", ticket });
    slot.unloads.clear();
    if (slot.removed) this.#slots.delete(slot.model);
    return this.#advance();
  }
}

function usesMemory({ state }: Slot): boolean {
  return state === "loading" || state === "in" || state === "leaving";
}

function sizesOf(slots: readonly Slot[]): number {
  return slots.reduce((sum, { size }) => sum + (size ?? 0), 0);
}

/** Selects the models to unload: idle ones first, then by last use, without any that is not needed. */
function victimsAmong(candidates: readonly Slot[], missing: number): Slot[] {
  const inTurn = candidates.toSorted((a, b) => Number(a.busy > 0) - Number(b.busy > 0) || a.usedAt - b.usedAt);
  const victims: Slot[] = [];
  for (const slot of inTurn) if (sizesOf(victims) < missing) victims.push(slot);
  return victims.reduce<Slot[]>((needed, slot) => {
    const others = needed.filter((other) => other !== slot);
    return sizesOf(others) >= missing ? others : needed;
  }, victims);
}
