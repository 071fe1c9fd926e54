import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { EjectionsOfWorkers, SharedEjections } from "../../src/workers/shared-ejections.ts";
import { openTransport } from "../../src/engines/upstream/undici-transport.ts";
import { openUpstreamEngine } from "../../src/engines/upstream/upstream-engine.ts";
import type { Engine } from "../../src/core/engine.ts";
import { runSync } from "../../src/core/steps.ts";
import { chatPort } from "../../src/apis/chat/port.ts";
import { lean } from "../../src/apis/profile.ts";
import { peerPair } from "../support/peer-pair.ts";
import type { PeerPair } from "../support/peer-pair.ts";
import { until } from "../support/scripted-engine.ts";
import { say } from "../upstream/scripted-server.ts";
import { closeAfterTest } from "../support/close-after-test.ts";

/** A server that fails until it is mended, and counts who asks. */
async function fragile(): Promise<{
  url: string;
  asked: { listsAt: number[]; answers: number };
  state: { works: boolean };
}> {
  const asked = { listsAt: [] as number[], answers: 0 };
  const state = { works: false };
  const server = createServer((request, response) => {
    if (request.method === "GET") asked.listsAt.push(performance.now());
    else asked.answers++;
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    request.on("end", () => {
      if (!state.works) response.writeHead(500).end("{}");
      else if (request.method === "GET") response.end('{"object":"list","data":[]}');
      else say(response, JSON.parse(text) as Record<string, unknown>, "fragile");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closeAfterTest(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked, state };
}

interface Worker {
  readonly engine: Engine;
  readonly pair: PeerPair;
}

async function newWorker(together: EjectionsOfWorkers, urls: readonly string[]): Promise<Worker> {
  const pair = peerPair();
  const ejections = new SharedEjections(pair.worker).of("up");
  together.join(pair.primary);
  // What is out of service already is told before the engine is opened.
  await new Promise(setImmediate);
  const engine = await openUpstreamEngine(
    { urls, name: "up", models: { m: "m" }, retries: 1, ejections },
    openTransport,
  );
  closeAfterTest(() => engine.close(0));
  return { engine, pair };
}

async function ask({ engine }: Worker): Promise<string> {
  let text = "";
  const body = { model: "m", stream: true, messages: [{ role: "user", content: "Hi" }] };
  const { request } = runSync(
    chatPort.readRequest(body, "r", { profile: lean, forwards: false, header: () => undefined }),
  );
  for await (const batch of engine.generate(request))
    for (const event of batch) if (event.type === "text-delta") text += event.text;
  return text;
}

/** If each worker looked for itself, they would do so at about the same time. A single one waits two seconds. */
function expectOneProbing(times: readonly number[]): void {
  for (const [at, time] of times.slice(1).entries()) expect(time - (times[at] ?? 0)).toBeGreaterThan(1500);
}

function inService({ engine }: Worker | { readonly engine: Engine }): number | undefined {
  return engine.health().counters?.["targetsInService"];
}

test("a URL that one worker puts out of service is out in all, one of them probes it, and it is back in all", async () => {
  const good = await fragile();
  good.state.works = true;
  const bad = await fragile();
  const together = new EjectionsOfWorkers();
  const workers: Worker[] = [];
  for (let number = 0; number < 3; number++) workers.push(await newWorker(together, [bad.url, good.url]));
  const [first, second] = workers;
  if (!first || !second) return;
  while (inService(first) === 2) await ask(first);
  expect(bad.asked.answers).toBe(3);
  await until(() => workers.every((worker) => inService(worker) === 1), "it is out of service in all workers");
  const late = await newWorker(together, [bad.url, good.url]);
  expect(inService(late)).toBe(1);
  for (const worker of [...workers, late]) expect(await ask(worker)).toBe("fragile");
  expect(bad.asked.answers).toBe(3);
  await until(() => bad.asked.listsAt.length >= 2, "it is probed");
  bad.state.works = true;
  await until(() => [...workers, late].every((worker) => inService(worker) === 2), "it is back in all workers");
  expectOneProbing(bad.asked.listsAt);
});

test("two workers that find it out at the same time leave it to one of them", async () => {
  const bad = await fragile();
  const together = new EjectionsOfWorkers();
  const workers = [await newWorker(together, [bad.url]), await newWorker(together, [bad.url])];
  await Promise.all(
    workers.map(async (worker) => {
      while (inService(worker) === 1) await ask(worker);
    }),
  );
  await until(() => bad.asked.listsAt.length >= 3, "it is probed");
  expectOneProbing(bad.asked.listsAt);
  // An answer while it is out of service brings it back, too.
  bad.state.works = true;
  for (const worker of workers) expect(await ask(worker)).toBe("fragile");
  await until(() => workers.every((worker) => inService(worker) === 1), "it is back in all workers");
});

test("where the worker dies that probes, another one does", async () => {
  const bad = await fragile();
  const together = new EjectionsOfWorkers();
  const [first, second] = [await newWorker(together, [bad.url]), await newWorker(together, [bad.url])];
  while (inService(first) === 1) await ask(first);
  await until(() => inService(second) === 0, "it is out of service in both");
  await first.engine.close(0);
  first.pair.end();
  bad.state.works = true;
  await until(() => inService(second) === 1, "the other one has probed it");
});
