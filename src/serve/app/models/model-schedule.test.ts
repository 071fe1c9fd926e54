import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ModelSchedule } from "./model-schedule.ts";
import type { Effect } from "./model-schedule.ts";

interface Setup {
  readonly size: number;
  readonly keep: boolean;
  readonly known: boolean;
}

/** Does what the schedule says, in any order and at any time, and checks each step against the rules. */
class World {
  readonly schedule: ModelSchedule;
  readonly #budget: number;
  readonly #setups: readonly Setup[];
  readonly #isKnown: boolean[];
  readonly memory = new Set<number>();
  readonly leases: number[] = [];
  /** Ticket → model and kind, in the order of arrival. */
  readonly waiting = new Map<number, { readonly model: number; readonly out: boolean }>();
  readonly answered = new Set<number>();
  /** What was begun and is not over. */
  readonly pending: { readonly what: "prepare" | "load" | "unload"; readonly model: number }[] = [];
  /** Whose unloading was asked for by name, or by the time without use. */
  readonly #mayGo = new Set<number>();
  readonly loads: number[] = [];
  #tickets = 0;

  constructor(budget: number, setups: readonly Setup[]) {
    this.#budget = budget;
    this.#setups = setups;
    this.#isKnown = setups.map(({ known }) => known);
    this.schedule = new ModelSchedule(budget);
    for (const [model, { size, keep, known }] of setups.entries())
      this.schedule.add(String(model), { keep, ...(known && { size }) });
  }

  ask(model: number, evicts = true): number {
    const ticket = ++this.#tickets;
    this.waiting.set(ticket, { model, out: false });
    this.#run(this.schedule.ask(ticket, String(model), { evicts }));
    return ticket;
  }

  askOut(model: number): number {
    const ticket = ++this.#tickets;
    this.waiting.set(ticket, { model, out: true });
    this.#mayGo.add(model);
    this.#run(this.schedule.askOut(ticket, String(model)));
    return ticket;
  }

  leave(ticket: number): void {
    this.waiting.delete(ticket);
    this.answered.add(ticket);
    this.#run(this.schedule.forget(ticket));
  }

  finish(at: number): void {
    const [model] = this.leases.splice(at, 1);
    if (model !== undefined) this.#run(this.schedule.done(String(model)));
  }

  idle(model: number): void {
    this.#mayGo.add(model);
    this.#run(this.schedule.idle(String(model)));
    if (![...this.waiting.values()].some((each) => each.out && each.model === model)) this.#mayGo.delete(model);
  }

  complete(at: number, works: boolean): void {
    const [step] = this.pending.splice(at, 1);
    if (!step) return;
    const { what, model } = step;
    const name = String(model);
    if (what === "unload") {
      this.memory.delete(model);
      this.#run(this.schedule.unloaded(name));
    } else if (!works) {
      this.memory.delete(model);
      this.#isKnown[model] = false;
      this.#run(this.schedule.failed(name));
    } else if (what === "prepare") {
      this.#isKnown[model] = true;
      this.#run(this.schedule.prepared(name, this.#sizeOf(model)));
    } else this.#run(this.schedule.loaded(name));
  }

  /** Everything that was begun ends, until nothing is left to do. */
  settle(): void {
    while (this.pending.length > 0 || this.leases.length > 0) {
      this.complete(0, true);
      this.finish(0);
    }
  }

  #sizeOf(model: number): number {
    return this.#setups[model]?.size ?? 0;
  }

  #isBusy(model: number): boolean {
    return this.leases.includes(model);
  }

  #run(effects: readonly Effect[]): void {
    for (const effect of effects) this.#do(effect);
    // The budget holds after every step, not only in the end.
    let used = 0;
    for (const model of this.memory) used += this.#sizeOf(model);
    expect(used).toBeLessThanOrEqual(this.#budget);
    expect(this.schedule.used).toBe(used);
    // The same in few words: nobody waits for a model that is in, unless it is about to go.
    for (const { model, out } of this.waiting.values()) {
      if (!out && this.schedule.stateOf(String(model)) === "in")
        expect(this.schedule.isWanted(String(model)) && this.#isBusy(model)).toBe(true);
    }
  }

  #do(effect: Effect): void {
    switch (effect.do) {
      case "prepare":
      case "load":
      case "unload": {
        const model = Number(effect.model);
        expect(this.pending.some((step) => step.model === model)).toBe(false);
        if (effect.do === "prepare") expect(this.#isKnown[model]).toBe(false);
        if (effect.do === "unload") {
          expect(this.memory.has(model)).toBe(true);
          expect(this.#isBusy(model)).toBe(false);
          if (this.#setups[model]?.keep) expect(this.#mayGo.has(model)).toBe(true);
        }
        if (effect.do === "load") {
          expect(this.memory.has(model)).toBe(false);
          expect(this.pending.some(({ what }) => what === "load")).toBe(false);
          this.#checkOrder(model);
          this.memory.add(model);
          this.loads.push(model);
        }
        this.pending.push({ what: effect.do, model });
        break;
      }
      case "grant":
      case "refuse": {
        const asked = this.waiting.get(effect.ticket);
        expect(asked).toBeDefined();
        expect(this.answered.has(effect.ticket)).toBe(false);
        this.answered.add(effect.ticket);
        this.waiting.delete(effect.ticket);
        if (effect.do === "refuse" || !asked) break;
        if (asked.out) {
          this.#mayGo.delete(asked.model);
          expect(this.memory.has(asked.model)).toBe(false);
        } else {
          expect(this.memory.has(asked.model)).toBe(true);
          expect(this.pending.some(({ model }) => model === asked.model)).toBe(false);
          this.leases.push(asked.model);
        }
      }
    }
  }

  /** Nobody who waits longer waits for another model that could be loaded. */
  #checkOrder(loading: number): void {
    for (const { model, out } of this.waiting.values()) {
      if (out) continue;
      if (model === loading) return;
      const isIn = this.memory.has(model) && !this.pending.some((step) => step.model === model);
      expect(isIn || !this.#isKnown[model]).toBe(true);
    }
  }
}

const setups = fc.array(fc.record({ size: fc.integer({ min: 1, max: 6 }), keep: fc.boolean(), known: fc.boolean() }), {
  minLength: 1,
  maxLength: 5,
});
const step = fc.tuple(
  fc.constantFrom("ask", "ask", "ask", "askNicely", "askOut", "leave", "finish", "finish", "idle", "complete", "fail"),
  fc.nat(1000),
);

function play(world: World, models: number, steps: readonly (readonly [string, number])[]): void {
  for (const [what, number] of steps) {
    const model = number % models;
    if (what === "ask") world.ask(model);
    else if (what === "askNicely") world.ask(model, false);
    else if (what === "askOut") world.askOut(model);
    else if (what === "idle") world.idle(model);
    else if (what === "finish" && world.leases.length > 0) world.finish(number % world.leases.length);
    else if (what === "leave" && world.waiting.size > 0)
      world.leave([...world.waiting.keys()][number % world.waiting.size] ?? 0);
    else if (what === "complete" && world.pending.length > 0) world.complete(number % world.pending.length, true);
    else if (what === "fail" && world.pending.length > 0)
      world.complete(number % world.pending.length, world.pending[number % world.pending.length]?.what === "unload");
  }
}

describe("for every order of requests, answers, loads and failures", () => {
  test("no busy model goes, no kept one, the budget holds, one load at a time, in order, and everybody is answered once", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 }), setups, fc.array(step, { maxLength: 80 }), (budget, all, steps) => {
        const world = new World(budget, all);
        play(world, all.length, steps);
        world.settle();
        expect([...world.waiting]).toEqual([]);
      }),
      { numRuns: 2000 },
    );
  });

  test("who waits is not overtaken: a model that has to go takes no further request before", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 20 }), (steps, crowd) => {
        const world = new World(1, [
          { size: 1, keep: false, known: true },
          { size: 1, keep: false, known: true },
        ]);
        play(world, 2, steps);
        world.settle();
        world.ask(0);
        while (!world.leases.includes(0)) world.complete(0, true);
        const waits = world.ask(1);
        // A model whose load failed is looked at anew; until its size is known, it keeps nobody waiting.
        if (world.pending[0]?.what === "prepare") world.complete(0, true);
        // A crowd keeps asking for the model that is in; it ends as many answers as it asks for.
        for (let i = 0; i < crowd; i++) world.ask(0);
        expect(world.leases).toEqual([0]);
        world.finish(0);
        while (world.pending.length > 0) world.complete(0, true);
        expect(world.answered.has(waits)).toBe(true);
        world.settle();
        expect([...world.waiting]).toEqual([]);
      }),
    );
  });
});

/** Three models of one size in a budget for two: 0 was used before 1. */
function twoOfThree(): World {
  const world = new World(
    2,
    [0, 1, 2].map(() => ({ size: 1, keep: false, known: true })),
  );
  for (const model of [0, 1]) {
    world.ask(model);
    world.complete(0, true);
    world.finish(0);
  }
  return world;
}

test("the least recently used goes first", () => {
  const world = twoOfThree();
  world.ask(0);
  world.finish(0);
  world.ask(2);
  expect(world.pending).toEqual([{ what: "unload", model: 1 }]);
});

test("an idle one goes before a busy one, however recently it was used", () => {
  const world = twoOfThree();
  world.ask(0);
  world.ask(2);
  expect(world.pending).toEqual([{ what: "unload", model: 1 }]);
});

test("nothing is unloaded that need not be: a small model stays where only the large one makes room", () => {
  const world = new World(7, [
    { size: 1, keep: false, known: true },
    { size: 6, keep: false, known: true },
    { size: 6, keep: false, known: true },
  ]);
  for (const model of [0, 1]) {
    world.ask(model);
    world.complete(0, true);
    world.finish(0);
  }
  world.ask(2);
  expect(world.pending).toEqual([{ what: "unload", model: 1 }]);
});

test("a model that fits at no time is refused at once, and keeps nobody waiting", () => {
  const schedule = new ModelSchedule(5);
  schedule.add("kept", { size: 3, keep: true });
  schedule.add("large", { size: 3 });
  schedule.add("small", { size: 2 });
  expect(schedule.ask(1, "kept")).toEqual([{ do: "load", model: "kept" }]);
  expect(schedule.loaded("kept")).toEqual([{ do: "grant", ticket: 1 }]);
  expect(schedule.ask(2, "large")).toEqual([{ do: "refuse", ticket: 2, why: "too-large" }]);
  expect(schedule.ask(3, "small")).toEqual([{ do: "load", model: "small" }]);
});

test("who leaves while it waits is forgotten: the model that was to go takes requests again", () => {
  const world = twoOfThree();
  world.ask(0);
  world.ask(1);
  const leaves = world.ask(2);
  world.ask(0);
  expect(world.leases).toEqual([0, 1]);
  world.leave(leaves);
  expect(world.leases).toEqual([0, 1, 0]);
});

test("a model that turns out larger when it is about to be loaded makes room again", () => {
  const schedule = new ModelSchedule(4);
  schedule.add("a", { size: 2 });
  schedule.add("b", { size: 2 });
  schedule.ask(1, "a");
  schedule.loaded("a");
  schedule.done("a");
  expect(schedule.ask(2, "b")).toEqual([{ do: "load", model: "b" }]);
  expect(schedule.resized("b", 3)).toEqual([{ do: "unload", model: "a" }]);
  expect(schedule.unloaded("a")).toEqual([{ do: "load", model: "b" }]);
});

test("a removed model leaves, and its room counts until it has", () => {
  const schedule = new ModelSchedule(2);
  schedule.add("old", { size: 2 });
  schedule.add("new", { size: 2 });
  schedule.ask(1, "old");
  schedule.loaded("old");
  expect(schedule.remove("old")).toEqual([]);
  expect(schedule.ask(2, "new")).toEqual([]);
  expect(schedule.unloaded("old")).toEqual([{ do: "load", model: "new" }]);
  expect(schedule.done("old")).toEqual([]);
});
