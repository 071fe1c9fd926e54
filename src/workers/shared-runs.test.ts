import fc from "fast-check";
import { expect, test } from "vitest";
import { peerPair } from "../../test/support/peer-pair.ts";
import type { PeerPair } from "../../test/support/peer-pair.ts";
import type { Engine } from "../core/engine.ts";
import type { GenerationEvent } from "../core/events.ts";
import { DetachedRuns } from "../server/detached-runs.ts";
import { silentLog } from "../server/log.ts";
import type { DetachedAnswer, DetachedRun } from "../apis/port-state.ts";
import { findRunIn, lendRuns, RunsOfWorkers } from "./shared-runs.ts";

interface Worker {
  readonly runs: DetachedRuns;
  readonly pair: PeerPair;
}

function workersOf(count: number): Worker[] {
  const together = new RunsOfWorkers();
  return Array.from({ length: count }, () => {
    const pair = peerPair();
    together.join(pair.primary);
    const runs = new DetachedRuns(findRunIn(pair.worker));
    lendRuns(pair.worker, runs);
    return { runs, pair };
  });
}

/** A run whose engine says each text when it is told to, and ends after the last one. */
async function begin({ runs }: Worker): Promise<{
  say: (text: string) => void;
  end: () => void;
  /** What was kept at the end, and whether it was cancelled. */
  kept: Promise<readonly [events: string, isCancelled: boolean]>;
}> {
  const texts: string[] = [];
  const state = { isOver: false };
  let wake = (): void => {};
  const engine: Pick<Engine, "generate"> = {
    generate: () => ({
      [Symbol.asyncIterator]: () => ({
        async next() {
          while (texts.length === 0 && !state.isOver) await new Promise<void>((resolve) => (wake = resolve));
          const text = texts.shift();
          if (text !== undefined) return { done: false, value: [{ type: "text-delta", choice: 0, text }] };
          return { done: true, value: undefined };
        },
        async return() {
          state.isOver = true;
          wake();
          return { done: true, value: undefined };
        },
      }),
    }),
  };
  let keep: (kept: readonly [string, boolean]) => void = () => {};
  const kept = new Promise<readonly [string, boolean]>((resolve) => (keep = resolve));
  const answer: DetachedAnswer = {
    id: "resp_1",
    opening: "(",
    body: "",
    writer: { open: () => "(", write: (events) => events.map(textOf).join(""), keepAlive: () => "" },
    beat: async () => false,
    end: async (events, isCancelled) => keep([events, isCancelled]),
  };
  await runs.start({ run: { engine, request: {} as never }, answer, owner: "me" }, silentLog);
  return {
    say(text) {
      texts.push(text);
      wake();
    },
    end() {
      state.isOver = true;
      wake();
    },
    kept,
  };
}

function textOf(event: GenerationEvent): string {
  return event.type === "text-delta" ? event.text : ")";
}

async function found(worker: Worker | undefined): Promise<DetachedRun> {
  const run = await worker?.runs.find("me", "resp_1");
  if (!run) throw new Error("It was not found.");
  return run;
}

async function rest(pieces: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const piece of pieces) text += piece;
  return text;
}

test("every worker follows a run from its beginning, however much was said when it comes, and when it is over", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ minLength: 1, maxLength: 5 }), { maxLength: 20 }),
      fc.nat(20),
      async (texts, at) => {
        const workers = workersOf(2);
        const [first, second] = workers;
        if (!first) return;
        const { say, end } = await begin(first);
        for (const text of texts.slice(0, at)) say(text);
        const pieces = (await found(second)).events();
        const begun = await pieces[Symbol.asyncIterator]().next();
        for (const text of texts.slice(at)) say(text);
        end();
        expect(begun.value + (await rest(pieces))).toBe(`(${texts.join("")})`);
      },
    ),
    { numRuns: 50 },
  );
});

test("a reader that takes its time has all of it, though the run is over and forgotten where it ran", async () => {
  const [first, second] = workersOf(2);
  if (!first) return;
  const { say, end, kept } = await begin(first);
  const pieces = (await found(second)).events();
  expect(await pieces[Symbol.asyncIterator]().next()).toEqual({ done: false, value: "(" });
  for (let number = 0; number < 3; number++) say("x".repeat(50_000));
  end();
  await kept;
  while (first.runs.own("me resp_1")) await new Promise(setImmediate);
  expect(await second?.runs.find("me", "resp_1")).toBeUndefined();
  expect(await rest(pieces)).toBe("x".repeat(150_000) + ")");
});

test("any worker cancels it; others' clients do not find it", async () => {
  const [first, second] = workersOf(3);
  if (!first) return;
  const { say, kept } = await begin(first);
  say("one");
  expect(await second?.runs.find("somebody else", "resp_1")).toBeUndefined();
  await (await found(second)).cancel();
  expect((await kept)[1]).toBe(true);
  expect(await second?.runs.find("me", "resp_1")).toBeUndefined();
});

test("if its worker dies, a reader receives an error, cancelling does not wait, and the run is not found", async () => {
  const [first, second] = workersOf(2);
  if (!first) return;
  await begin(first);
  const run = await found(second);
  const pieces = run.events()[Symbol.asyncIterator]();
  await pieces.next();
  const next = pieces.next();
  await new Promise(setImmediate);
  first.pair.end();
  await expect(next).rejects.toMatchObject({ failure: { status: 503 } });
  await run.cancel();
  expect(await second?.runs.find("me", "resp_1")).toBeUndefined();
});
