// Attacks on what a server stores and counts for its clients: a store that hangs, long conversations, budgets, killed servers, full stores.
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AnswerContext } from "../../src/wire/apis/port.ts";
import type { Keyspaces } from "../../src/wire/apis/port-state.ts";
import { lean } from "../../src/wire/apis/profile.ts";
import { responsesPort } from "../../src/wire/apis/responses/port.ts";
import { AssembledTexts } from "../../src/serve/server/client-stores.ts";
import { inTurns } from "../../src/serve/server/turns.ts";
import { MemoryStore } from "../../src/serve/kv/memory-store.ts";
import { openStore } from "../../src/serve/kv/open.ts";
import type { Store, TextEnd } from "../../src/serve/kv/store.ts";
import { freePort, redisCommand, startRedis } from "../../test/support/redis-server.ts";
import { startTruewire } from "../../test/support/serve.ts";
import type { RunningTruewire } from "../../test/support/serve.ts";
import type { Attack, AttackOutcome } from "./attack.ts";

/** A request that is not answered within this time is never answered, in milliseconds. */
const patienceMs = 30_000;

/** What one attack starts, and stops when it has ended. */
class Stage {
  readonly failures: string[] = [];
  readonly folder: string = mkdtempSync(join(tmpdir(), "truewire-attack-"));
  readonly #closing: (() => unknown)[] = [];

  /** `target`: default the program. */
  async serve(args: readonly string[], target: string = this.program()): Promise<RunningTruewire> {
    const server = await startTruewire([target, ...args]);
    this.afterwards(() => server.stop("SIGKILL"));
    return server;
  }

  async redis(): Promise<{ url: string; send: (signal: NodeJS.Signals) => void }> {
    const port = await freePort();
    const redis = await startRedis(port);
    // SIGKILL ends a process that is stopped, too.
    this.afterwards(() => redis.kill("SIGKILL"));
    return { url: `redis://127.0.0.1:${port}`, send: (signal) => void redis.kill(signal) };
  }

  /** A program, named "program": "long" makes it say 400 tokens, "wait" makes it never end, anything else one word. */
  program(): string {
    const file = join(this.folder, "program.mjs");
    writeFileSync(
      file,
      `const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      export default async function* ({ messages }) {
        const asked = JSON.stringify(messages.at(-1).content);
        yield asked.includes("long") ? "word".repeat(400) : "word";
        if (asked.includes("long")) await pause(500);
        if (asked.includes("stream")) for (let word = 0; word < 50; word++) { await pause(20); yield " word"; }
        if (asked.includes("wait")) await pause(600_000);
      }`,
    );
    return file;
  }

  /** A file with these keys; the key of a name is `keyOf(name)`. */
  keys(limits: Readonly<Record<string, string>>): string {
    const file = join(this.folder, "keys.yaml");
    const lines = Object.entries(limits).map(([name, more]) => {
      const hash = createHash("sha256").update(keyOf(name)).digest("hex");
      return `- { name: ${name}, hash: "sha256:${hash}"${more === "" ? "" : `, ${more}`} }\n`;
    });
    writeFileSync(file, lines.join(""));
    return file;
  }

  require(holds: boolean, failure: string): void {
    if (!holds) this.failures.push(failure);
  }

  afterwards(close: () => unknown): void {
    this.#closing.push(close);
  }

  async end(): Promise<void> {
    for (const close of this.#closing.reverse()) await close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** What one attack reports in addition to its failures. */
type Report = Pick<AttackOutcome, "answered" | "others" | "memoryMiB">;

function attack(name: string, run: (stage: Stage) => Promise<Report>, slow = false): Attack {
  return {
    name,
    ...(slow && { slow }),
    async run() {
      const stage = new Stage();
      const begun = performance.now();
      let report: Report = { answered: "nothing", others: "not measured" };
      try {
        report = await run(stage);
      } catch (error) {
        stage.failures.push(`The attack ended with ${String(error)}.`);
      } finally {
        await stage.end();
      }
      return { ...report, tookMs: Math.round(performance.now() - begun), failures: stage.failures };
    },
  };
}

function keyOf(name: string): string {
  return `tw-key-of-${name}-0123456789`;
}

/** The status of an answer that has come whole, and its text; status 0: it has not. */
interface Answer {
  readonly status: number;
  readonly text: string;
}

async function ask(url: string, body?: object, key?: string, method = body ? "POST" : "GET"): Promise<Answer> {
  const headers = {
    ...(body && { "content-type": "application/json" }),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  };
  try {
    const signal = AbortSignal.timeout(patienceMs);
    const response = await fetch(url, { method, headers, signal, ...(body && { body: JSON.stringify(body) }) });
    return { status: response.status, text: await response.text() };
  } catch {
    return { status: 0, text: "" };
  }
}

const respond = ({ url }: RunningTruewire, more: object = {}, key?: string): Promise<Answer> =>
  ask(`${url}/v1/responses`, { model: "program", input: "Hello", ...more }, key);

function memberOf({ text }: Answer, member: string): string {
  const value = text === "" ? undefined : (JSON.parse(text) as Readonly<Record<string, unknown>>)[member];
  return typeof value === "string" ? value : "";
}

/** "200 ×12, 503 ×98"; a request that was not answered is "none". */
function statuses(answers: readonly Answer[]): string {
  const counts = new Map<number, number>();
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts]
    .toSorted(([one], [other]) => one - other)
    .map(([status, count]) => `${status === 0 ? "none" : status} ×${count}`)
    .join(", ");
}

/** Streams a chat as another client, and requires that it is complete. */
async function others(stage: Stage, { url }: RunningTruewire, key?: string): Promise<string> {
  const body = { model: "program", stream: true, messages: [{ role: "user", content: "stream" }] };
  const { text } = await ask(`${url}/v1/chat/completions`, body, key);
  const isWhole = text.endsWith("data: [DONE]\n\n") && text.split('"content":').length >= 51;
  stage.require(isWhole, "Another client's stream was not complete.");
  return isWhole ? "a stream of 51 words, complete" : "a stream, cut off";
}

async function storeThatHangs(stage: Stage): Promise<Report> {
  const redis = await stage.redis();
  const server = await stage.serve(["--store", redis.url]);
  const id = memberOf(await respond(server), "id");
  redis.send("SIGSTOP");
  const asking = Array.from({ length: 10 }, () => [
    respond(server),
    respond(server, { previous_response_id: id }),
    respond(server, { background: true }),
    ask(`${server.url}/v1/responses/${id}`),
    ask(`${server.url}/v1/responses/${id}`, undefined, undefined, "DELETE"),
  ]).flat();
  const [seen, ...first] = await Promise.all([others(stage, server), ...asking]);
  // The kernel accepts the new connection, and Redis does not answer on it.
  const second = await Promise.all([respond(server), respond(server, { previous_response_id: id })]);
  const answers = [...first, ...second];
  stage.require(!answers.some(({ status }) => status === 0), "Requests were not answered while the store hung.");
  redis.send("SIGCONT");
  let again: Answer = { status: 0, text: "" };
  for (let tries = 0; tries < 100 && again.status !== 200; tries++) {
    const kept = memberOf(await respond(server), "id");
    again = await respond(server, { previous_response_id: kept });
  }
  stage.require(again.status === 200, "What is stored is not found after the store has come back.");
  return { answered: statuses(answers), others: seen };
}

/** A store that counts what is read and kept. */
class CountingStore implements Store {
  reads = 0;
  bytesRead = 0;
  bytesKept = 0;
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async get(key: string): Promise<string | undefined> {
    const text = await this.#store.get(key);
    this.reads++;
    this.bytesRead += text?.length ?? 0;
    return text;
  }

  async readFrom(key: string, from: number): Promise<TextEnd | undefined> {
    const end = await this.#store.readFrom(key, from);
    this.reads++;
    this.bytesRead += end?.text.length ?? 0;
    return end;
  }

  append(key: string, text: string): Promise<boolean> {
    this.bytesKept += text.length;
    return this.#store.append(key, text);
  }

  set(key: string, text: string): Promise<void> {
    this.bytesKept += text.length;
    return this.#store.set(key, text);
  }

  delete(key: string): Promise<boolean> {
    return this.#store.delete(key);
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}

/** Continues a conversation `links` times, and compares what a link costs at its beginning and at its end. */
async function longChain(stage: Stage, place: string, links: number): Promise<Report> {
  const limits = { maxCount: 1e6, maxBytes: 1024 ** 3, maxAgeMs: 3_600_000 };
  const store = new CountingStore(await openStore(place, limits, () => {}));
  stage.afterwards(() => store.close());
  const brief = new MemoryStore({ maxCount: 0, maxBytes: 0, maxAgeMs: 0 });
  const shelves: Keyspaces = {
    stored: store,
    temporary: brief,
    assembled: new AssembledTexts().of(""),
    ofConnection: false,
  };
  const context: AnswerContext = {
    profile: lean,
    created: 1_800_000_000,
    model: "m",
    settings: {},
    random: Math.random,
  };
  const costs: { reads: number; bytesRead: number; bytesKept: number }[] = [];
  const times: number[] = [];
  let previous: string | undefined;
  for (let link = 0; link < links; link++) {
    const { reads, bytesRead, bytesKept } = store;
    const begun = performance.now();
    const body = { model: "m", input: "Hello", ...(previous !== undefined && { previous_response_id: previous }) };
    const read = await responsesPort.state?.readRequest(body, "req_1", { profile: lean }, shelves, inTurns);
    const text = read?.streamWriter(context).write([
      { type: "start", choice: 0 },
      { type: "text-delta", choice: 0, text: "word" },
      { type: "finish", choice: 0, reason: "stop" },
      { type: "end", end: { kind: "done" } },
    ]);
    await read?.store();
    previous = /"id":"(resp_\w+)"/.exec(text ?? "")?.[1];
    times.push(performance.now() - begun);
    costs.push({
      reads: store.reads - reads,
      bytesRead: store.bytesRead - bytesRead,
      bytesKept: store.bytesKept - bytesKept,
    });
  }
  const last = costs.slice(-10);
  const early = costs.slice(10, 20);
  for (const cost of ["reads", "bytesRead", "bytesKept"] as const) {
    const [most, before] = [last, early].map((some) => Math.max(...some.map((one) => one[cost]))) as [number, number];
    // The fingerprint for cache diagnostics grows with the logarithm of the number of messages.
    stage.require(most <= before * 1.25 + 1, `Link ${links} costs ${most} ${cost}, and link 20 costs ${before}.`);
  }
  const [end] = last;
  const tenth = Math.round(links / 10);
  const [before, after] = [times.slice(tenth / 2, 1.5 * tenth), times.slice(-tenth)].map(
    (some) => some.reduce((sum, time) => sum + time, 0) / some.length,
  );
  return {
    answered: `${links} links; the last ones: ${end?.reads} reads of ${end?.bytesRead} bytes, ${end?.bytesKept} bytes kept; ${before?.toFixed(2)} ms at link ${tenth}, ${after?.toFixed(2)} ms at link ${links}`,
    others: "counted in the store itself",
  };
}

/** Sends 200 requests in parallel, each of which costs 400 tokens, with a key whose budget is 1,000. `target`: default the program. */
async function spentBudget(stage: Stage, args: readonly string[], target?: string): Promise<Report> {
  const keys = stage.keys({ alice: "tokensPerDay: 1000", bob: "" });
  const server = await stage.serve(["--keys-file", keys, ...args], target);
  const body = { model: "program", max_tokens: 400, messages: [{ role: "user", content: "long" }] };
  const asking = Array.from({ length: 200 }, () => ask(`${server.url}/v1/chat/completions`, body, keyOf("alice")));
  const [seen, ...answers] = await Promise.all([others(stage, server, keyOf("bob")), ...asking]);
  const passed = answers.filter(({ status }) => status === 200).length;
  stage.require(passed <= 2, `${passed * 400} tokens passed a limit of 1,000.`);
  stage.require(passed > 0, "Nothing passed.");
  stage.require(
    answers.every(({ status }) => status === 200 || status === 429),
    "A request was answered neither 200 nor 429.",
  );
  return { answered: `${statuses(answers)}: ${passed * 400} tokens of 1,000`, others: seen };
}

async function killedInBackground(stage: Stage): Promise<Report> {
  const args = ["--store", join(stage.folder, "store")];
  const first = await stage.serve(args);
  const begun = await Promise.all([1, 2].map(() => respond(first, { input: "wait", background: true })));
  await first.stop("SIGKILL");
  const server = await stage.serve(args);
  const [one = "", other = ""] = begun.map((answer) => `${server.url}/v1/responses/${memberOf(answer, "id")}`);
  const shown = await ask(one);
  const [seen, cancelled, stream] = await Promise.all([
    others(stage, server),
    ask(`${one}/cancel`, undefined, undefined, "POST"),
    ask(`${other}?stream=true`),
  ]);
  stage.require(memberOf(shown, "status") === "failed", `It is shown as "${memberOf(shown, "status")}", not "failed".`);
  stage.require(cancelled.status === 200, "It was not cancelled.");
  stage.require(stream.text.includes("response.failed"), "Its stream did not end with response.failed.");
  return {
    answered: `GET "${memberOf(shown, "status")}", cancel and stream ${statuses([cancelled, stream])}`,
    others: seen,
  };
}

/** One key stores 20 large responses, of which the store holds some; another key has stored a small one before. */
async function fullStore(stage: Stage, at: string, megabytes: number): Promise<Report> {
  const config = join(stage.folder, "truewire.yaml");
  const keys = stage.keys({ alice: "", bob: "" });
  const store = `store: { at: ${at}, maxSize: ${megabytes * 12}MiB }`;
  writeFileSync(
    config,
    `port: 0\n${store}\nkeys:\n${readFileSync(keys, "utf8")}models:\n  - ${JSON.stringify(stage.program())}\n`,
  );
  const server = await startTruewire(["--config", config]);
  stage.afterwards(() => server.stop("SIGKILL"));
  const before = residentMiB(server);
  const id = memberOf(await respond(server, {}, keyOf("alice")), "id");
  const large: Answer[] = [];
  let worst = before;
  for (let at = 0; at < 20; at++) {
    large.push(await respond(server, { input: "x".repeat(megabytes * 1_000_000) }, keyOf("bob")));
    worst = Math.max(worst, residentMiB(server));
  }
  const next = await respond(server, { previous_response_id: id }, keyOf("alice"));
  stage.require(next.status === 200, `Another key's response was gone: ${next.status}.`);
  const latest = await respond(server, { previous_response_id: memberOf(large.at(-1) ?? next, "id") }, keyOf("bob"));
  stage.require(latest.status === 200, `The key's own latest response was gone: ${latest.status}.`);
  const seen = await others(stage, server, keyOf("alice"));
  return {
    answered: statuses(large),
    others: `its response from before ${next.status}; ${seen}`,
    memoryMiB: [before, worst, residentMiB(server)],
  };
}

function residentMiB({ process: { pid = 0 } }: RunningTruewire): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]);
  return Math.round((pages * 4096) / 1024 ** 2);
}

async function sharedBudget(stage: Stage): Promise<Report> {
  return spentBudget(stage, ["--shared-limits", (await stage.redis()).url]);
}

/** Several workers serve the program of another server. */
async function budgetOfWorkers(stage: Stage): Promise<Report> {
  const { url } = await stage.redis();
  const source = await stage.serve([]);
  return spentBudget(stage, ["--workers", "2", "--store", url, "--shared-limits", url], `${source.url}/v1`);
}

async function chainInRedis(stage: Stage, links: number): Promise<Report> {
  return longChain(stage, (await stage.redis()).url, links);
}

const inRedis: readonly Attack[] = [
  attack("a Redis store hangs under 50 requests", storeThatHangs),
  attack("300 links of previous_response_id, in Redis", (stage) => chainInRedis(stage, 300)),
  attack("10,000 links of previous_response_id, in Redis", (stage) => chainInRedis(stage, 10_000), true),
  attack("200 parallel requests against tokensPerDay, in Redis", sharedBudget),
  attack("200 parallel requests against tokensPerDay, with 2 workers over Redis", budgetOfWorkers),
];

/** Attacks on Redis are skipped if it is not installed. */
export const attacks: readonly Attack[] = [
  ...(redisCommand() === undefined ? [] : inRedis),
  attack("300 links of previous_response_id, in memory", (stage) => longChain(stage, "memory", 300)),
  attack("300 links of previous_response_id, in a folder", (stage) =>
    longChain(stage, join(stage.folder, "store"), 300),
  ),
  attack("10,000 links of previous_response_id, in memory", (stage) => longChain(stage, "memory", 10_000), true),
  attack(
    "10,000 links of previous_response_id, in a folder",
    (stage) => longChain(stage, join(stage.folder, "store"), 10_000),
    true,
  ),
  attack("200 parallel requests against tokensPerDay", (stage) => spentBudget(stage, [])),
  attack("a server is killed in the middle of background responses", killedInBackground),
  attack("one key fills the store, in memory", (stage) => fullStore(stage, "memory", 1)),
  attack("one key fills the store, in a folder", (stage) => fullStore(stage, join(stage.folder, "store"), 1)),
  attack("one key fills the store with 20 responses of 20 MB", (stage) => fullStore(stage, "memory", 20), true),
];
