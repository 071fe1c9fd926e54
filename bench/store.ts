// The store of responses: what keeping one costs, what continuing one costs (`previous_response_id`), and how much memory many take.
//
//   npm run bench store [-- --count 100000] [--turns 10] [--places memory,folder,redis] [--size 256] [--json]
//
// Conversations of `turns` turns are kept until `count` responses were, each with some 2 kB of new input and output; `size` is the
// store's limit in MiB. Then responses that are still there are gone on from, one at a time, the prompt read to the end. `redis` needs
// redis-server or valkey-server on the PATH, and is left out without.
//
// `cpu` is user and system time of this process for each, on average: on a busy machine it says more than the percentiles.
//
// Targets: memory stays below twice the limit; at the 99th percentile at most 5 ms to go on from a response.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { AnswerContext } from "../src/wire/apis/port.ts";
import type { StorableRequest, PortState, Keyspaces } from "../src/wire/apis/port-state.ts";
import { lean } from "../src/wire/apis/profile.ts";
import { responsesPort } from "../src/wire/apis/responses/port.ts";
import { AssembledTexts } from "../src/serve/server/client-stores.ts";
import { inTurns } from "../src/serve/server/turns.ts";
import { MemoryStore } from "../src/serve/kv/memory-store.ts";
import { openStore } from "../src/serve/kv/open.ts";
import type { Store } from "../src/serve/kv/store.ts";
import { freePort, redisCommand, startRedis } from "../test/support/redis-server.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "100000" },
    turns: { type: "string", default: "10" },
    places: { type: "string", default: "memory,folder,redis" },
    size: { type: "string", default: "256" },
    json: { type: "boolean", default: false },
  },
});
const count = Number(values.count);
const turns = Number(values.turns);
const limits = { maxCount: count, maxBytes: Number(values.size) * 1024 ** 2, maxAgeMs: 3_600_000 };
const lookups = 2000;
/** Conversations that are kept simultaneously. */
const atOnce = 16;

const { state } = responsesPort;
if (!state) throw new Error("Responses keeps state.");
const context: AnswerContext = { profile: lean, created: 1_800_000_000, model: "m", settings: {}, random: Math.random };
const words = "The quick brown fox jumps over the lazy dog, and the dog does not mind. ";

interface Result {
  readonly place: string;
  readonly keepMicroseconds: number;
  readonly cpuMicroseconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly foundOf: string;
  readonly memoryMib: number;
}

async function measure(place: string, at: string): Promise<Result> {
  const store = await openStore(at, limits, console.error);
  const shelves = shelvesOn(store);
  global.gc?.();
  const before = process.memoryUsage().rss;
  const ids: string[] = [];
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (ids.length < count) {
        for (let turn = 0, previous: string | undefined; turn < turns && ids.length < count; turn++) {
          previous = await converse(state as PortState, shelves, previous);
          ids.push(previous);
        }
      }
    }),
  );
  const keepMicroseconds = Math.round(((performance.now() - begun) * 1000) / ids.length);
  global.gc?.();
  const memoryMib = Math.round((process.memoryUsage().rss - before) / 1024 ** 2);
  const times: number[] = [];
  let found = 0;
  const cpu = process.cpuUsage();
  for (let i = 0; i < lookups; i++) {
    const id = ids[Math.floor(Math.random() * ids.length)] ?? "";
    const start = performance.now();
    const read = await readOn(shelves, id);
    if (!read) continue;
    found++;
    times.push(performance.now() - start);
  }
  const { user, system } = process.cpuUsage(cpu);
  const cpuMicroseconds = Math.round((user + system) / lookups);
  times.sort((a, b) => a - b);
  await store.close();
  const percentile = (share: number): number => Number((times[Math.floor(times.length * share)] ?? NaN).toFixed(3));
  return {
    place,
    keepMicroseconds,
    cpuMicroseconds,
    p50: percentile(0.5),
    p99: percentile(0.99),
    foundOf: `${found}/${lookups}`,
    memoryMib,
  };
}

/** Keeps one response; its id. */
async function converse(keeper: PortState, shelves: Keyspaces, previous: string | undefined): Promise<string> {
  const read = await keeper.readRequest(bodyOf(previous), "req_1", { profile: lean }, shelves, inTurns);
  const writer = read.streamWriter(context);
  const text = writer.write([
    { type: "start", choice: 0 },
    { type: "text-delta", choice: 0, text: words.repeat(14) },
    { type: "finish", choice: 0, reason: "stop" },
    { type: "usage", usage: { promptTokens: 1, completionTokens: 1 } },
    { type: "end", end: { kind: "done" } },
  ]);
  await read.store();
  // A copy: a substring keeps the whole text in memory.
  return Buffer.from(/"id":"(resp_\w+)"/.exec(text)?.[1] ?? "").toString();
}

async function readOn(shelves: Keyspaces, id: string): Promise<StorableRequest | undefined> {
  try {
    return await state?.readRequest(bodyOf(id), "req_1", { profile: lean }, shelves, inTurns);
  } catch {
    // It has made way for others.
    return undefined;
  }
}

function bodyOf(previous: string | undefined): object {
  return { model: "m", input: words.repeat(14), ...(previous !== undefined && { previous_response_id: previous }) };
}

function shelvesOn(store: Store): Keyspaces {
  const assembled = new AssembledTexts().of("");
  return {
    stored: store,
    assembled,
    temporary: new MemoryStore({ maxCount: 0, maxBytes: 0, maxAgeMs: 0 }),
    ofConnection: false,
  };
}

async function inRedis(): Promise<Result | undefined> {
  if (redisCommand() === undefined) return undefined;
  const port = await freePort();
  const server = await startRedis(port);
  try {
    return await measure("redis", `redis://127.0.0.1:${port}`);
  } finally {
    server.kill();
  }
}

async function inFolder(): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), "truewire-bench-store-"));
  try {
    return await measure("folder", folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const results: Result[] = [];
for (const place of values.places.split(",")) {
  const result =
    place === "memory" ? await measure(place, place) : place === "folder" ? await inFolder() : await inRedis();
  if (result) results.push(result);
}
if (values.json) console.log(JSON.stringify(results));
else {
  console.log(
    `${count} responses, ${turns} turns a conversation, limit ${values.size} MiB; milliseconds to go on from one`,
  );
  console.table(results);
}
