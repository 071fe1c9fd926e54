import { type ChildProcess } from "node:child_process";
import { EventEmitter } from "node:events";
import { afterEach, expect, test, vi } from "vitest";
import { LimitedJobs } from "./limited-jobs.ts";

/** In place of a process: notes the jobs that it gets, and does them when the test says so. */
class FakeProcess extends EventEmitter {
  readonly jobs: unknown[] = [];
  killed = false;
  channel = { ref: () => {}, unref: () => {} };
  ref(): void {}
  unref(): void {}
  send(job: unknown): void {
    this.jobs.push(job);
    begun.push(job);
  }
  kill(): void {
    this.killed = true;
  }
  begin(): this {
    this.emit("message", { type: "begun" });
    return this;
  }
  done(value: unknown, isLarge = false): void {
    this.emit("message", { type: "done", value, isLarge });
  }
}

let started: FakeProcess[] = [];
let begun: unknown[] = [];

function openJobs(processes = 2): LimitedJobs {
  started = [];
  begun = [];
  const start = (): ChildProcess => {
    const child = new FakeProcess();
    started.push(child);
    return child as unknown as ChildProcess;
  };
  return new LimitedJobs({
    module: new URL("file:///none.js"),
    limits: { heapMiB: 64, memoryMiB: 128 },
    processes,
    start,
  });
}

const limitMs = 60_000;
const settled = (results: readonly Promise<unknown>[]) => Promise.allSettled(results);
afterEach(() => void vi.useRealTimers());

// All files of all clients passed one thread, first in, first out: six slow PDFs of one key delayed another key's page by 89 seconds. No test
// had two owners.
test("an owner has one process at a time, so another owner's file begins at once", () => {
  const jobs = openJobs();
  for (let at = 0; at < 6; at++) void jobs.run(`slow ${at}`, limitMs, { owner: "a" });
  void jobs.run("page", limitMs, { owner: "b" });
  expect(begun).toEqual(["slow 0", "page"]);
});

test("owners take turns: none waits for all files of another one", async () => {
  const jobs = openJobs(1);
  const results = [
    ...[0, 1, 2].map((at) => jobs.run(`a${at}`, limitMs, { owner: "a" })),
    ...[0, 1].map((at) => jobs.run(`b${at}`, limitMs, { owner: "b" })),
    jobs.run("c0", limitMs, { owner: "c" }),
  ];
  for (const value of results.keys()) started[0]?.done(value);
  await settled(results);
  expect(begun).toEqual(["a0", "b0", "a1", "c0", "b1", "a2"]);
  expect(started).toHaveLength(1);
});

test("a client that has left is taken out of the queue, and its running job is ended", async () => {
  const jobs = openJobs(1);
  const [running, waiting] = [new AbortController(), new AbortController()];
  const results = [
    jobs.run("running", limitMs, { signal: running.signal }),
    jobs.run("waiting", limitMs, { signal: waiting.signal }),
    jobs.run("last", limitMs),
  ];
  started[0]?.begin();
  waiting.abort(new Error("left"));
  running.abort(new Error("left"));
  expect(started[0]?.killed).toBe(true);
  started[1]?.begin().done("text");
  expect(await settled(results)).toMatchObject([
    { reason: { message: "left" } },
    { reason: { message: "left" } },
    { value: "text" },
  ]);
  expect(begun).toEqual(["running", "last"]);
  await expect(jobs.run("late", limitMs, { signal: running.signal })).rejects.toThrow("left");
});

test("a process that ends costs its own job, and the next job gets another one", async () => {
  const jobs = openJobs(1);
  const results = [jobs.run("bomb", limitMs), jobs.run("page", limitMs)];
  started[0]?.begin().emit("exit", null, "SIGABRT");
  started[1]?.begin().done("text");
  expect(await settled(results)).toMatchObject([
    { reason: { message: "it needs more than 128 MiB of memory, or breaks its reader" } },
    { value: "text" },
  ]);
});

test("a process is used again, unless it has grown large", async () => {
  const jobs = openJobs(1);
  const one = jobs.run("one", limitMs);
  started[0]?.begin().done(1);
  await one;
  const two = jobs.run("two", limitMs);
  started[0]?.done(2, true);
  await two;
  expect(started[0]?.killed).toBe(true);
  const three = jobs.run("three", limitMs);
  expect(started).toHaveLength(2);
  started[1]?.begin().done(3);
  expect(await three).toBe(3);
});

test("a job that takes too long is ended with its process; the time to start does not count", async () => {
  vi.useFakeTimers();
  const jobs = openJobs(1);
  const slow = jobs.run("slow", 1000);
  vi.advanceTimersByTime(5000);
  started[0]?.begin();
  vi.advanceTimersByTime(999);
  expect(started[0]?.killed).toBe(false);
  vi.advanceTimersByTime(1);
  await expect(slow).rejects.toThrow("it took longer than 1 seconds");
  expect(started[0]?.killed).toBe(true);
});

test("an idle process ends after half a minute", async () => {
  vi.useFakeTimers();
  const jobs = openJobs(1);
  const job = jobs.run("one", limitMs);
  started[0]?.begin().done(1);
  await job;
  vi.advanceTimersByTime(29_999);
  expect(started[0]?.killed).toBe(false);
  vi.advanceTimersByTime(1);
  expect(started[0]?.killed).toBe(true);
});

test("an owner with too many waiting files is refused, and another owner is not", async () => {
  const jobs = openJobs(1);
  const closed = new AbortController();
  const run = (job: unknown, owner: string): Promise<unknown> =>
    jobs.run(job, limitMs, { owner, signal: AbortSignal.any([closed.signal]) });
  const results = Array.from({ length: 17 }, (_, at) => run(at, "a"));
  await expect(jobs.run("more", limitMs, { owner: "a" })).rejects.toMatchObject({ failure: { status: 429 } });
  const other = run("page", "b");
  closed.abort(new Error("the server is stopping"));
  const all = await settled([...results, other]);
  expect(all.filter(({ status }) => status === "rejected")).toHaveLength(18);
  expect(all.at(-1)).toMatchObject({ reason: { message: "the server is stopping" } });
});
