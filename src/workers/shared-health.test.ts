import { expect, test } from "vitest";
import { peerPair } from "../../test/support/peer-pair.ts";
import type { EngineReport, HealthReport } from "../server/service.ts";
import { HealthOfWorkers, mergeHealth, shareHealth } from "./shared-health.ts";

const requests = { open: 1, total: 10, cancelled: 2, failed: 3 };

function report(more: Partial<HealthReport> = {}): HealthReport {
  return { state: "ready", engines: [], requests, ...more };
}

test("requests are those of all workers; one that dies has failed what it was answering", async () => {
  const together = new HealthOfWorkers();
  const workers = [0, 1, 2].map(() => {
    const pair = peerPair();
    together.join(pair.primary);
    const own = report();
    return { pair, own, others: shareHealth(pair.worker, () => own) };
  });
  const [first, second] = workers;
  const asked = async (): Promise<unknown> => (await first?.others.health(first.own))?.requests;
  expect(await asked()).toEqual({ open: 3, total: 30, cancelled: 6, failed: 9 });
  second?.pair.end();
  expect(await asked()).toEqual({ open: 2, total: 30, cancelled: 6, failed: 10 });
  first?.pair.end();
  expect(await asked()).toEqual(requests);
});

test("a worker that does not answer in time counts as it was", async () => {
  const together = new HealthOfWorkers();
  const [first, second] = [peerPair(), peerPair()];
  together.join(first.primary);
  together.join(second.primary);
  let told = 0;
  shareHealth(second.worker, () => (told++ === 0 ? report() : (new Promise(() => {}) as never)));
  const others = shareHealth(first.worker, () => report());
  expect((await others.health(report())).requests.total).toBe(20);
  expect((await others.health(report())).requests.total).toBe(20);
});

test("an engine can answer where one worker's can; what each counts is added up, what all know of it is not", () => {
  const local: EngineReport = { name: "local", models: ["m"], state: "ready", slots: { busy: 1, total: 4 }, queued: 2 };
  const counters = { outstanding: 2, retries: 1, targets: 3, targetsInService: 3 };
  const up: EngineReport = { name: "up", models: ["a"], state: "ready", counters };
  const late: EngineReport = { name: "late", models: [], state: "failed", message: "does not answer" };
  const own = report({ engines: [local, up, up, late] });
  const other = report({
    engines: [
      { ...up, counters: { ...counters, targetsInService: 2, retries: 5 } },
      up,
      { name: "late", models: ["l"], state: "ready" },
      local,
      { name: "not here yet", models: [], state: "ready" },
    ],
  });
  expect(mergeHealth(own, [other, own]).engines).toEqual([
    local,
    { ...up, counters: { outstanding: 6, retries: 7, targets: 3, targetsInService: 2 } },
    { ...up, counters: { ...counters, outstanding: 6, retries: 3 } },
    { name: "late", models: ["l"], state: "ready" },
  ]);
});

test("a URL is as bad as one worker says, and its numbers are the sums", () => {
  const url = { url: "http://a/v1", state: "ready", open: 1, retries: 2, ejections: 0 } as const;
  const up: EngineReport = { name: "up", models: ["a"], state: "ready", urls: [url, { ...url, url: "http://b/v1" }] };
  const other: EngineReport = {
    ...up,
    urls: [
      { ...url, state: "ejected", ejections: 1, failure: "It broke." },
      // Of an older configuration.
      { ...url, url: "http://c/v1", state: "absent" },
    ],
  };
  const merged = { url: "http://a/v1", state: "ejected", open: 2, retries: 4, ejections: 1, failure: "It broke." };
  const expected = [{ ...up, urls: [merged, { ...url, url: "http://b/v1" }] }];
  expect(mergeHealth(report({ engines: [up] }), [report({ engines: [other] })]).engines).toEqual(expected);
  expect(mergeHealth(report({ engines: [up] }), [report({ engines: [{ ...up, urls: [] }] })]).engines).toEqual([up]);
});
