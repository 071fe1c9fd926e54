/** What is to be done; whoever does it tells the schedule when it is over. */
export type Effect =
  /** Find out its size: `prepared`, or `failed`. */
  | { readonly do: "prepare"; readonly model: string }
  /** `loaded`, `resized` or `failed`. */
  | { readonly do: "load"; readonly model: string }
  /** `unloaded`. */
  | { readonly do: "unload"; readonly model: string }
  /** A ticket may use its model, until `done`; or its model is out, where that was asked for. */
  | { readonly do: "grant"; readonly ticket: number }
  | { readonly do: "refuse"; readonly ticket: number; readonly why: RefusalReason };

/** `too-large`: it fits at no time beside the models that stay. `no-room`: it fits only if another model goes. `gone`: it was removed. */
export type RefusalReason = "too-large" | "no-room" | "failed" | "gone";

export type SlotState = "out" | "preparing" | "loading" | "in" | "leaving";

interface Slot {
  readonly model: string;
  /** Never unloaded to make room. */
  keep: boolean;
  /** Bytes; undefined: not known yet. */
  size: number | undefined;
  state: SlotState;
  /** Answers that are being generated. */
  busy: number;
  /** Counts up with every use of any model. */
  usedAt: number;
  /** Tickets of those who want it unloaded. */
  readonly unloads: number[];
  removed: boolean;
}

interface Ticket {
  readonly id: number;
  readonly slot: Slot;
  readonly evicts: boolean;
}

/**
 * Decides which models are in memory: who waits, who is unloaded, who is refused. It does nothing itself and knows no time: every method
 * returns what is to be done now.
 *
 * - What is loaded, being loaded or not gone yet never exceeds the budget, where the models' sizes are right.
 * - A model that is busy is never unloaded, nor one that is kept.
 * - Requests wait in order: the first whose model is out gets it loaded next. To make room, the models that go are those that are idle,
 *   least recently used first, then busy ones when they are done. They take no further request before the one that waits, so that it
 *   waits no longer than the answers that are being generated.
 * - Models load one after another.
 */
export class ModelSchedule {
  #budget: number;
  readonly #slots = new Map<string, Slot>();
  /** Who waits for a model, in the order of arrival. */
  #queue: Ticket[] = [];
  /** Models that go as soon as they are idle, since another one needs their room. */
  #victims: ReadonlySet<Slot> = new Set();
  #clock = 0;
  #effects: Effect[] = [];

  /** `budget`: bytes for all models. */
  constructor(budget: number = Infinity) {
    this.#budget = budget;
  }

  setBudget(budget: number): Effect[] {
    this.#budget = budget;
    return this.#advance();
  }

  /** A model that may be asked for. `size`: where it is known already. */
  add(model: string, { size, keep = false }: { readonly size?: number; readonly keep?: boolean } = {}): void {
    this.#slots.set(model, {
      model,
      keep,
      size,
      state: "out",
      busy: 0,
      usedAt: 0,
      unloads: [],
      removed: false,
    });
  }

  setKeep(model: string, keep: boolean): Effect[] {
    this.#slot(model).keep = keep;
    return this.#advance();
  }

  /** The model may be asked for no more. Where it is in memory, it leaves: whoever removes it unloads it, and tells `unloaded`. */
  remove(model: string): Effect[] {
    const slot = this.#slot(model);
    slot.removed = true;
    for (const ticket of this.#queue.filter((waiting) => waiting.slot === slot)) this.#refuse(ticket, "gone");
    if (slot.state === "in") slot.state = "leaving";
    if (slot.state === "out") this.#slots.delete(model);
    return this.#advance();
  }

  /** Somebody wants to use a model. `evicts: false`: only if no other model has to go for it. */
  ask(ticket: number, model: string, { evicts = true }: { readonly evicts?: boolean } = {}): Effect[] {
    this.#queue.push({ id: ticket, slot: this.#slot(model), evicts });
    return this.#advance();
  }

  /** Somebody wants a model unloaded, kept or not. A ticket is granted when the model is out. */
  askOut(ticket: number, model: string): Effect[] {
    const slot = this.#slot(model);
    if (slot.state === "out") this.#effects.push({ do: "grant", ticket });
    else slot.unloads.push(ticket);
    return this.#advance();
  }

  /** Whoever holds a ticket that was neither granted nor refused has left. */
  forget(ticket: number): Effect[] {
    this.#queue = this.#queue.filter(({ id }) => id !== ticket);
    for (const { unloads } of this.#slots.values()) {
      const at = unloads.indexOf(ticket);
      if (at !== -1) unloads.splice(at, 1);
    }
    return this.#advance();
  }

  /** A granted use of the model is over. The model may be gone already, where it was removed. */
  done(model: string): Effect[] {
    const slot = this.#slots.get(model);
    if (slot) {
      slot.busy--;
      if (slot.busy === 0) slot.usedAt = ++this.#clock;
    }
    return this.#advance();
  }

  /** The model was not used for long: it goes, kept or not, unless it is busy by now. */
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
    // All that wait for it, wherever they stand: it was loaded for the first of them.
    else for (const ticket of this.#queue.filter((waiting) => waiting.slot === slot)) this.#grant(ticket);
    return this.#advance();
  }

  unloaded(model: string): Effect[] {
    return this.#nowOut(this.#slot(model));
  }

  /** It could not be prepared, or not be loaded: those who wait for it are told; the next one who asks has it tried again. */
  failed(model: string): Effect[] {
    const slot = this.#slot(model);
    slot.size = undefined;
    for (const ticket of this.#queue.filter((waiting) => waiting.slot === slot)) this.#refuse(ticket, "failed");
    return this.#nowOut(slot);
  }

  stateOf(model: string): SlotState {
    return this.#slots.get(model)?.state ?? "out";
  }

  sizeOf(model: string): number | undefined {
    return this.#slots.get(model)?.size;
  }

  busyOf(model: string): number {
    return this.#slots.get(model)?.busy ?? 0;
  }

  /** How many wait for the model. */
  waitingFor(model: string): number {
    return this.#queue.filter(({ slot }) => slot.model === model).length;
  }

  /** Whether the model goes as soon as it is idle. */
  isWanted(model: string): boolean {
    const slot = this.#slots.get(model);
    return slot !== undefined && (this.#victims.has(slot) || slot.unloads.length > 0);
  }

  /** Bytes that loaded models take, with those that come and go. */
  get used(): number {
    let used = 0;
    for (const slot of this.#slots.values()) if (takesRoom(slot)) used += slot.size ?? 0;
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

  /** Does what can be done now, in the order of the queue, and returns all that is to be done. */
  #advance(): Effect[] {
    for (const slot of this.#slots.values()) {
      if (slot.unloads.length > 0 && slot.state === "in" && slot.busy === 0) this.#unload(slot);
    }
    this.#victims = new Set();
    // Only the first whose model is out moves anything.
    let someoneIsFirst = false;
    for (const ticket of this.#queue) {
      const { slot } = ticket;
      if (slot.state === "in") {
        if (!this.isWanted(slot.model)) this.#grant(ticket);
      } else if (someoneIsFirst || slot.state === "preparing") continue;
      else if (slot.state === "out" && slot.size === undefined) {
        slot.state = "preparing";
        this.#effects.push({ do: "prepare", model: slot.model });
      } else someoneIsFirst = this.#bringIn(ticket);
    }
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  /** Loads the model of the first ticket, or makes room for it. Returns false when it was refused. */
  #bringIn(ticket: Ticket): boolean {
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
    if (!evicts) return this.#refuse(ticket, "no-room");
    const victims = victimsAmong(candidates, missing);
    if (victims.some(({ busy }) => busy > 0)) this.#victims = new Set(victims);
    else for (const victim of victims) this.#unload(victim);
    return true;
  }

  #grant(ticket: Ticket): void {
    const { slot } = ticket;
    this.#queue = this.#queue.filter((other) => other !== ticket);
    slot.busy++;
    slot.usedAt = ++this.#clock;
    this.#effects.push({ do: "grant", ticket: ticket.id });
  }

  #refuse(ticket: Ticket, why: RefusalReason): false {
    this.#queue = this.#queue.filter((other) => other !== ticket);
    this.#effects.push({ do: "refuse", ticket: ticket.id, why });
    return false;
  }

  #unload(slot: Slot): void {
    slot.state = "leaving";
    this.#effects.push({ do: "unload", model: slot.model });
  }

  #nowOut(slot: Slot): Effect[] {
    slot.state = "out";
    for (const ticket of slot.unloads.splice(0)) this.#effects.push({ do: "grant", ticket });
    if (slot.removed) this.#slots.delete(slot.model);
    return this.#advance();
  }
}

function takesRoom({ state }: Slot): boolean {
  return state === "loading" || state === "in" || state === "leaving";
}

function sizesOf(slots: readonly Slot[]): number {
  return slots.reduce((sum, { size }) => sum + (size ?? 0), 0);
}

/** Those that go: idle ones first, and of these, and of the busy ones, the least recently used; none whose going would not be needed. */
function victimsAmong(candidates: readonly Slot[], missing: number): Slot[] {
  const inTurn = candidates.toSorted((a, b) => Number(a.busy > 0) - Number(b.busy > 0) || a.usedAt - b.usedAt);
  const victims: Slot[] = [];
  for (const slot of inTurn) if (sizesOf(victims) < missing) victims.push(slot);
  return victims.reduce<Slot[]>((needed, slot) => {
    const others = needed.filter((other) => other !== slot);
    return sizesOf(others) >= missing ? others : needed;
  }, victims);
}
