import { afterEach, expect, test, vi } from "vitest";
import type { GenerationEvent } from "../../wire/core/events.ts";
import type { DetachedAnswer } from "../../wire/apis/port-state.ts";
import { generateInBackground } from "./background.ts";
import { silentLog } from "./log.ts";
import { Run } from "./run.ts";
import { Runs } from "./runs.ts";

afterEach(() => {
  vi.useRealTimers();
});

async function* start(): AsyncGenerator<readonly GenerationEvent[]> {
  yield [{ type: "start", choice: 0 }];
  yield [{ type: "end", end: { kind: "done" } }];
}

// The run rejected without a handler, which ends a Node process, its timer went on telling that the answer goes on, and whoever read the
// answer waited forever. Nothing made a writer throw.
test("a writer that throws ends the run: the answer is stored, its readers end, and no timer is left", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const stored: string[] = [];
  const errors: unknown[] = [];
  const answer: DetachedAnswer = {
    id: "resp_1",
    opening: "opening",
    body: "{}",
    writer: {
      write: () => {
        throw new Error("a defect");
      },
      open: () => "",
      keepAlive: () => "",
    },
    beat: () => Promise.resolve(false),
    end: (text) => {
      stored.push(text);
      return Promise.resolve();
    },
  };
  const runs = new Runs();
  const log = { ...silentLog, error: (fields: object) => errors.push(fields) };
  const run = await generateInBackground(runs, { generation: { start }, answer, owner: "o" }, log);
  const read: string[] = [];
  for await (const text of run.events()) read.push(text);
  await runs.stop();
  expect(read).toEqual(["opening"]);
  expect(stored).toEqual(["opening"]);
  expect(errors).toEqual([{ response: "resp_1", cause: expect.stringMatching(/^Error\n +at /) as unknown }]);
  expect(vi.getTimerCount()).toBe(0);
  expect(await runs.find("o", "resp_1")).toBeUndefined();
});

interface OpenedStream {
  readonly stream: Run;
  /** Its client leaves. */
  leave(): void;
}

function openStream(runs: Runs, id: string): OpenedStream {
  const stream = new Run({ headers: {}, aloneMs: 1_000_000 });
  runs.add("o", id, stream);
  const client = stream.events();
  const read = async (): Promise<void> => {
    for await (const _ of client);
  };
  // What it has not read may be dropped.
  read().catch(() => {});
  return { stream, leave: () => void client.return?.() };
}

test("all streams together keep little: those that ended go first, then those without a client, the oldest first", async () => {
  const runs = new Runs();
  const all = Array.from({ length: 20 }, (_, number) => openStream(runs, `req_${number}`));
  const [running, ...others] = all;
  for (const { stream, leave } of others) {
    leave();
    void stream.write(`data: ${"x".repeat(5_000_000)}\n\n`);
  }
  others.at(-1)?.stream.end();
  void running?.stream.write(`data: ${"x".repeat(5_000_000)}\n\n`);
  let size = 0;
  for (const { stream } of all) size += stream.size;
  expect(size).toBeLessThanOrEqual(64 * 1024 * 1024);
  const isKept = async (number: number): Promise<boolean> => (await runs.find("o", `req_${number}`)) !== undefined;
  expect(await Promise.all([0, 1, 2, 17, 18, 19].map(isKept))).toEqual([true, false, false, true, true, false]);
  expect(others[0]?.stream.departure.happened).toBe(true);
  await runs.stop();
  expect(await isKept(0)).toBe(false);
});

test("of the streams that have ended, those that are still read go last", async () => {
  const runs = new Runs();
  const all = Array.from({ length: 20 }, (_, number) => openStream(runs, `req_${number}`));
  for (const [number, { stream, leave }] of all.entries()) {
    if (number > 0) leave();
    void stream.write(`data: ${"x".repeat(5_000_000)}\n\n`);
    // It is read by someone who has not read anything yet.
    if (number === 0) stream.events();
    stream.end();
  }
  expect(await runs.find("o", "req_0")).toBe(all[0]?.stream);
  expect(await runs.find("o", "req_1")).toBeUndefined();
  // That a stream is dropped after its end is no cancellation.
  expect(all.some(({ stream }) => stream.departure.happened)).toBe(false);
  await runs.stop();
});

// Each write looked at every stream once too much was kept.
test("a write looks at no other stream if none can be dropped", async () => {
  const runs = new Runs();
  const all = Array.from({ length: 30 }, (_, number) => openStream(runs, `req_${number}`));
  // The client of one comes back: it is not dropped for having been lost.
  all[1]?.leave();
  all[1]?.stream.events();
  for (const { stream } of all) void stream.write(`data: ${"x".repeat(3_000_000)}\n\n`);
  const looked = vi.spyOn(Run.prototype, "hasEnded", "get");
  void all[0]?.stream.write("data: y\n\n");
  expect(looked.mock.calls.length).toBeLessThan(5);
  looked.mockRestore();
  expect(await runs.find("o", "req_1")).toBe(all[1]?.stream);
  all[2]?.leave();
  expect(await runs.find("o", "req_2")).toBeUndefined();
  for (const { stream } of all) stream.stop();
  await runs.stop();
});

test("no more than 1000 streams go on without a client", async () => {
  const runs = new Runs();
  const all = Array.from({ length: 1001 }, (_, number) => openStream(runs, `req_${number}`));
  for (const { leave } of all) leave();
  expect(all.filter(({ stream }) => stream.departure.happened)).toEqual(all.slice(1000));
  runs.close();
  expect(all.every(({ stream }) => stream.departure.happened)).toBe(true);
  await runs.stop();
});
