import { setMaxListeners } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keyOf } from "../keys/support.ts";
import { small } from "../models/support.ts";
import { readExposition, total } from "../observe/read-metrics.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { until } from "../support/scripted-engine.ts";
import { runTruewire, startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { say } from "../upstream/scripted-server.ts";
import { askAnew, askJson } from "./ask-anew.ts";
import type { Answered } from "./ask-anew.ts";
import { after, cutAfter, idOf } from "../resume/support.ts";
import type { Part } from "../resume/support.ts";
import { closeAfterTest } from "../support/close-after-test.ts";

/** Two workers are one server: whatever a client does at one of them, the other one knows. */

/** Says how many messages there are; "wait" waits until it is cancelled, "count" counts slowly, "say x" says x. */
const program = `export default async function* ({ messages, signal }) {
  const asked = String(messages.at(-1).content);
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  if (asked === "wait") {
    yield "Waiting. ";
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return;
  }
  if (asked === "count") for (let number = 0; number < 20; number++) {
    yield number + " ";
    await sleep(100);
  }
  else if (asked.startsWith("say ")) yield asked.slice(4);
  else yield "Messages: " + messages.length;
}
`;

interface Serving {
  readonly url: string;
  readonly server: RunningTruewire;
  /** Writes these models into the configuration, after the program. */
  configure(models: readonly string[]): void;
  /** The primary process reads its configuration again. */
  reload(): void;
}

/** Two workers with the program `p`, and these lines of YAML. */
async function serveTwo(settings: readonly string[] = [], models: readonly string[] = []): Promise<Serving> {
  const folder = mkdtempSync(join(tmpdir(), "truewire-workers-"));
  closeAfterTest(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "p.mjs"), program);
  const own = `{ kind: program, program: ${JSON.stringify(join(folder, "p.mjs"))}, name: p }`;
  const file = join(folder, "truewire.yaml");
  const configure = (more: readonly string[]): void => {
    const entries = [own, ...more].map((model) => `  - ${model}`);
    writeFileSync(file, ["port: 0", "workers: 2", ...settings, "models:", ...entries, ""].join("\n"));
  };
  configure(models);
  const server = await startTruewire(["--config", file]);
  closeAfterTest(() => server.stop());
  return { url: server.url, server, configure, reload: () => void server.process.kill("SIGHUP") };
}

const chat = (content: string, model = "p"): object => ({ model, messages: [{ role: "user", content }] });

/** The workers that wrote lines about requests. */
function workersIn({ server }: Serving): Set<unknown> {
  const lines = server
    .stderr()
    .split("\n")
    .filter((line) => line.startsWith("{"));
  return new Set(lines.map((line) => (JSON.parse(line) as { worker?: unknown }).worker));
}

/** Resolves when another one has taken its place. */
async function killWorker({ server: { process: primary, stderr } }: Serving): Promise<void> {
  const children = readFileSync(`/proc/${primary.pid}/task/${primary.pid}/children`, "utf8");
  const [worker = 0] = children.trim().split(" ").map(Number);
  process.kill(worker, "SIGKILL");
  await until(() => stderr().includes("has taken the place"), "another worker serves");
}

const isLinux = process.platform === "linux";
if (!isLinux) console.log("skipped: workers are found through /proc, on Linux");

function countOf(answers: readonly Answered[], status: number): number {
  return answers.filter((each) => each.status === status).length;
}

test("a limit of requests holds for both together, exactly, and so does one of requests at once", async () => {
  const alice = keyOf("alice");
  const bob = keyOf("bob");
  const serving = await serveTwo([
    "keys:",
    `  - { name: alice, hash: "${alice.entry.hash}", requestsPerMinute: 3 }`,
    `  - { name: bob, hash: "${bob.entry.hash}", concurrency: 3 }`,
  ]);
  const url = `${serving.url}/v1/chat/completions`;
  const ofAlice = await Promise.all(
    Array.from({ length: 50 }, () => askAnew(url, { key: alice.key, body: chat("Hi") })),
  );
  // The fourth has room after twenty seconds.
  expect([countOf(ofAlice, 200), countOf(ofAlice, 429)]).toEqual([3, 47]);

  const leaving = new AbortController();
  setMaxListeners(0, leaving.signal);
  const ofBob: Answered[] = [];
  const left = Array.from({ length: 50 }, async () => {
    const answered = await askAnew(url, { key: bob.key, body: chat("wait"), signal: leaving.signal }).catch(() => {});
    if (answered) ofBob.push(answered);
  });
  await until(() => ofBob.length >= 47, "all are refused but those that are open");
  leaving.abort();
  await Promise.all(left);
  expect([ofBob.length, countOf(ofBob, 429)]).toEqual([47, 47]);
  const open = async (): Promise<number> =>
    (await askJson<{ requests: { open: number } }>(`${serving.url}/health`)).requests.open;
  // The request for the health is open itself.
  await until(async () => (await open()) === 1, "those that were left are over");
  // One after the other there is always room, at whichever worker.
  for (let number = 0; number < 20; number++)
    expect((await askAnew(url, { key: bob.key, body: chat("Hi") })).status).toBe(200);
  await expect.poll(() => workersIn(serving)).toEqual(new Set([1, 2]));
});

test.skipIf(!isLinux)(
  "a worker that dies gives back what its requests had open; the sums keep what it had told",
  async () => {
    const bob = keyOf("bob");
    const serving = await serveTwo([
      "metrics: open",
      "keys:",
      `  - { name: bob, hash: "${bob.entry.hash}", concurrency: 2 }`,
    ]);
    const url = `${serving.url}/v1/chat/completions`;
    // One after the other, so that each worker has one; a request that waits for its turn could come at any time.
    const open = [await opened(url, bob.key), await opened(url, bob.key)];
    const asked = async (): Promise<number> => (await askAnew(url, { key: bob.key, body: chat("Hi") })).status;
    expect(await asked()).toBe(429);
    const requests = async (): Promise<number> =>
      total(
        readExposition((await askAnew(`${serving.url}/metrics`)).text),
        "gen_ai_server_request_duration_seconds_count",
      );
    const before = await requests();
    expect(before).toBeGreaterThan(0);
    const children = readFileSync(
      `/proc/${serving.server.process.pid}/task/${serving.server.process.pid}/children`,
      "utf8",
    );
    const [victim = 0] = children.trim().split(" ").map(Number);
    process.kill(victim, "SIGKILL");
    await until(() => serving.server.stderr().includes("has taken the place"), "another worker serves");
    expect(await Promise.race(open.map(({ over }) => over))).toBe("lost");
    expect(await asked()).toBe(200);
    expect(await requests()).toBeGreaterThan(before);
    for (let number = 0; number < 4; number++) expect(await requests()).toBeGreaterThan(before);
    await serving.server.stop("SIGKILL");
    await Promise.all(open.map(({ over }) => over));
  },
);

interface Opened {
  readonly over: Promise<"ended" | "lost">;
}

/** A streamed answer that waits, when its first words have come. */
function opened(url: string, key: string): Promise<Opened> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const asked = request(url, { agent: false, method: "POST", headers }, (response) => {
      const over = new Promise<"ended" | "lost">((tell) => {
        response.on("end", () => tell("ended")).on("error", () => tell("lost"));
      });
      response.once("data", () => resolve({ over }));
    });
    asked.on("error", reject).end(JSON.stringify({ ...chat("wait"), stream: true }));
  });
}

interface Shown {
  readonly id: string;
  readonly status: string;
  readonly output: readonly { readonly content: readonly { readonly text: string }[] }[];
}

test("a conversation goes on at another worker", async () => {
  const serving = await serveTwo();
  const url = `${serving.url}/v1/responses`;
  let previous: string | undefined;
  for (let turn = 0; turn < 6; turn++) {
    const body = { model: "p", input: "Hi", ...(previous !== undefined && { previous_response_id: previous }) };
    const shown = await askJson<Shown>(url, { body });
    expect(shown.output[0]?.content[0]?.text).toBe(`Messages: ${2 * turn + 1}`);
    previous = shown.id;
  }
  await expect.poll(() => workersIn(serving)).toEqual(new Set([1, 2]));
  expect((await askAnew(`${url}/${previous}`, { method: "DELETE" })).status).toBe(200);
  for (const _ of [1, 2]) expect((await askAnew(`${url}/${previous}`)).status).toBe(404);
});

test.each([true, false])(
  "an answer in the background is followed and cancelled at any worker (store: %s)",
  async (store) => {
    const serving = await serveTwo();
    const url = `${serving.url}/v1/responses`;
    const begin = (input: string): Promise<Shown> =>
      askJson(url, { body: { model: "p", input, background: true, store } });

    const counting = await begin("count");
    const whole = await Promise.all([1, 2].map(() => askAnew(`${url}/${counting.id}?stream=true`)));
    const later = await askAnew(`${url}/${counting.id}?stream=true&starting_after=3`);
    expect(whole[0]?.text).toBe(whole[1]?.text);
    const events = whole[0]?.text.split("\n\n") ?? [];
    expect(events.filter((event) => event.includes("output_text.delta"))).toHaveLength(20);
    expect(later.text.split("\n\n")).toEqual(events.slice(4));

    for (const _ of [1, 2, 3]) {
      const waiting = await begin("wait");
      const cancelled = await askJson<Shown>(`${url}/${waiting.id}/cancel`, { method: "POST" });
      expect([cancelled.id, cancelled.status]).toEqual([waiting.id, "cancelled"]);
      for (const __ of [1, 2]) expect((await askJson<Shown>(`${url}/${waiting.id}`)).status).toBe("cancelled");
    }
    await expect.poll(() => workersIn(serving)).toEqual(new Set([1, 2]));
  },
);

test("a lost stream is resumed and stopped at any worker, and ends when no worker has a reader of it", async () => {
  const serving = await serveTwo();
  const lost = async (content: string, time: string): Promise<{ place: string; events: readonly string[] }> => {
    const headers = { "content-type": "application/json", "x-truewire-resume": time };
    const body = JSON.stringify({ ...chat(content), stream: true });
    const part = await cutAfter(serving.url, "/v1/chat/completions", { method: "POST", headers, body }, 300);
    return { place: `/v1/streams/${part.headers["x-request-id"]}`, events: part.events };
  };
  const counting = await lost("count", "60s");
  // Each is a connection of its own: workers get connections in turn.
  const read = (): Promise<Part> =>
    cutAfter(serving.url, counting.place, { headers: after(counting.events) }, Number.POSITIVE_INFINITY);
  const rests = await Promise.all([read(), read(), read(), read()]);
  for (const { events } of rests) {
    const all = [...counting.events, ...events];
    expect(all.map(idOf)).toEqual([...all.keys()]);
    const text = all.map((event) => /"content":"([^"]*)"/.exec(event)?.[1] ?? "").join("");
    expect(text).toBe(Array.from({ length: 20 }, (_, number) => `${number} `).join(""));
  }
  const statuses = async (place: string, method: string): Promise<number[]> => {
    const all: number[] = [];
    for (let times = 0; times < 4; times++)
      all.push((await cutAfter(serving.url, place, { method, headers: {} }, 1)).status);
    return all;
  };
  const ended = { headers: { "last-event-id": String(idOf(rests[0]?.events.at(-1))) } };
  for (const _ of [1, 2]) expect((await cutAfter(serving.url, counting.place, ended, 1)).status).toBe(204);
  for (const _ of [1, 2]) {
    const { place } = await lost("wait", "60s");
    expect(await statuses(place, "DELETE")).toEqual([204, 404, 404, 404]);
  }
  const left = await lost("wait", "3s");
  expect(await statuses(left.place, "GET")).toEqual([200, 200, 200, 200]);
  await until(async () => (await statuses(left.place, "HEAD")).every((status) => status === 404), "it has ended");
  await expect.poll(() => workersIn(serving)).toEqual(new Set([1, 2]));
});

test("a URL that fails is put out of service for both, and its failures are told once", async () => {
  let asked = 0;
  const [bad, good] = await Promise.all(
    [false, true].map(async (works) => {
      const server = createServer((request, response) => {
        let text = "";
        request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
        request.on("end", () => {
          if (works) return say(response, JSON.parse(text) as Record<string, unknown>, "good");
          if (request.method === "POST") asked++;
          response.writeHead(500).end("{}");
        });
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      closeAfterTest(() => server.close());
      closeAfterTest(() => server.closeAllConnections());
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    }),
  );
  const serving = await serveTwo([], [`{ kind: upstream, name: up, url: ["${bad}", "${good}"], models: { m: m } }`]);
  for (let number = 0; number < 30; number++)
    expect((await askAnew(`${serving.url}/v1/chat/completions`, { body: chat("Hi", "m") })).status).toBe(200);
  // Each worker would need three failures of its own.
  expect(asked).toBeGreaterThanOrEqual(3);
  expect(asked).toBeLessThan(6);
  for (const _ of [1, 2]) {
    const { engines } = await askJson<{ engines: { name: string; counters: unknown }[] }>(`${serving.url}/health`);
    const up = engines.find(({ name }) => name === "up");
    expect(up?.counters).toMatchObject({ targets: 2, targetsInService: 1, retries: asked });
  }
  await expect.poll(() => serving.server.stderr().match(/out of service/g)).toHaveLength(1);
});

test("the numbers of any worker are those of all", async () => {
  const serving = await serveTwo();
  for (let number = 0; number < 25; number++) await askAnew(`${serving.url}/v1/chat/completions`, { body: chat("Hi") });
  for (const _ of [1, 2]) {
    const numbers = readExposition((await askAnew(`${serving.url}/metrics`)).text);
    expect(total(numbers, "gen_ai_server_request_duration_seconds_count")).toBe(25);
    expect(total(numbers, "gen_ai_server_request_duration_seconds_bucket", { le: "+Inf" })).toBe(25);
    expect(total(numbers, "truewire_slots", { engine: "p" })).toBe(1);
    expect(total(numbers, "truewire_open_requests")).toBe(1);
    const of = (name: string): unknown[] =>
      numbers.samples
        .filter((sample) => sample.name === name)
        .map(({ labels }) => labels["worker"])
        .sort();
    expect(of("process_resident_memory_bytes")).toEqual(["1", "2", "primary"]);
    expect(of("truewire_worker_up")).toEqual(["1", "2"]);
  }
  const { requests } = await askJson<{ requests: object }>(`${serving.url}/health`);
  expect(requests).toEqual({ open: 1, total: 28, cancelled: 0, failed: 0 });
});

test("both write into one stream log, whole lines at a time", async () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-workers-"));
  closeAfterTest(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "stream.log");
  const serving = await serveTwo([`logStream: ${JSON.stringify(file)}`]);
  const long = "x".repeat(20_000);
  const body = { model: "p", stream: true, messages: [{ role: "user", content: `say ${long}` }] };
  await Promise.all(Array.from({ length: 40 }, () => askAnew(`${serving.url}/v1/chat/completions`, { body })));
  await expect.poll(() => workersIn(serving)).toEqual(new Set([1, 2]));
  await serving.server.stop();
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  const whole = lines.filter((line) => /^20\S+Z req_\w+ data: (\{.*\}|\[DONE\])$/.test(line));
  expect(whole).toHaveLength(lines.length);
  expect(lines.filter((line) => line.endsWith("data: [DONE]"))).toHaveLength(40);
  expect(lines.filter((line) => line.includes(long))).toHaveLength(40);
});

test("truewire models works with the models of both workers", async () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-workers-"));
  closeAfterTest(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "a.gguf");
  writeProgrammedModel(path);
  const serving = await serveTwo([], [`{ kind: local, path: ${JSON.stringify(path)}, load: lazy, ${small} }`]);
  const models = async (...args: string[]): Promise<string> => {
    const { stdout, stderr, code } = await runTruewire(["models", ...args, "--url", serving.url]);
    return code === 0 ? stdout : `${code} ${stderr}`;
  };
  interface States {
    readonly models: readonly { readonly name: string; readonly state: string }[];
  }
  const states = async (): Promise<unknown> => {
    const told = await Promise.all([1, 2].map(() => askJson<States>(`${serving.url}/admin/models`)));
    return told.map((each) => each.models.map(({ name, state }) => `${name} ${state}`));
  };
  const { models: listed } = JSON.parse(await models("list", "--json")) as States;
  expect(listed).toMatchObject([
    { name: "p", state: "ready" },
    { name: "a", state: "unloaded", load: "lazy" },
  ]);
  expect(await models("load", "a")).toContain("a");
  expect(await states()).toEqual([
    ["p ready", "a ready"],
    ["p ready", "a ready"],
  ]);
  expect(await models("unload", "a")).toContain("a");
  expect(await states()).toEqual([
    ["p ready", "a unloaded"],
    ["p ready", "a unloaded"],
  ]);
  expect(await models("load", "nobody")).toMatch(/^1 .*does not exist/s);
});

test("keys are rotated, and the configuration is read again, in both", async () => {
  const [old, fresh] = [keyOf("old"), keyOf("fresh")];
  const folder = mkdtempSync(join(tmpdir(), "truewire-keys-"));
  closeAfterTest(() => rmSync(folder, { recursive: true, force: true }));
  const keysFile = join(folder, "keys.yaml");
  const writeKey = ({ entry }: typeof old): void =>
    writeFileSync(keysFile, `- { name: ${entry.name}, hash: "${entry.hash}" }\n`);
  writeKey(old);
  const serving = await serveTwo([`keysFile: ${JSON.stringify(keysFile)}`, "adminKey: admin-key-0123456789"]);
  const letsIn = async ({ key }: typeof old): Promise<number[]> => {
    const answers = [];
    for (let number = 0; number < 4; number++)
      answers.push((await askAnew(`${serving.url}/v1/models`, { key })).status);
    return answers;
  };
  expect(await letsIn(old)).toEqual([200, 200, 200, 200]);
  writeKey(fresh);
  serving.reload();
  await until(async () => (await letsIn(fresh)).every((status) => status === 200), "both let the new key in");
  expect(await letsIn(old)).toEqual([401, 401, 401, 401]);
  // The same by the admin API, which answers when it is done.
  writeKey(old);
  const told = await askAnew(`${serving.url}/admin/reload`, { method: "POST", key: "admin-key-0123456789" });
  expect(told.text).toContain('"models":["p"]');
  expect(await letsIn(old)).toEqual([200, 200, 200, 200]);
});

test.skipIf(!isLinux)(
  "a worker that takes another one's place has the keys that were read, not those that stand in the file by now",
  async () => {
    const { key, entry } = keyOf("old");
    const folder = mkdtempSync(join(tmpdir(), "truewire-keys-"));
    closeAfterTest(() => rmSync(folder, { recursive: true, force: true }));
    const keysFile = join(folder, "keys.yaml");
    writeFileSync(keysFile, `- { name: old, hash: "${entry.hash}" }\n`);
    const serving = await serveTwo([`keysFile: ${JSON.stringify(keysFile)}`]);
    writeFileSync(keysFile, "- { name: half a li");
    await killWorker(serving);
    for (let number = 0; number < 4; number++)
      expect((await askAnew(`${serving.url}/v1/models`, { key })).status).toBe(200);
  },
);

test("a configuration that a worker cannot use changes nothing in any; one that it can changes both", async () => {
  const refusing = createServer((_request, response) => response.writeHead(404).end("{}"));
  await new Promise<void>((resolve) => refusing.listen(0, "127.0.0.1", resolve));
  closeAfterTest(() => refusing.close());
  const url = `http://127.0.0.1:${(refusing.address() as AddressInfo).port}/v1`;
  const serving = await serveTwo();
  const reload = async (models: readonly string[]): Promise<Answered> => {
    serving.configure(models);
    return askAnew(`${serving.url}/admin/reload`, { method: "POST" });
  };
  const served = async (): Promise<string[][]> =>
    Promise.all(
      [1, 2].map(async () => {
        const { data } = await askJson<{ data: { id: string }[] }>(`${serving.url}/v1/models`);
        return data.map(({ id }) => id);
      }),
    );
  // On a busy machine it takes so long that the server has begun to answer: then the status is 200, and the refusal an event. The test expected 400.
  const refused = await reload([`{ kind: upstream, name: up, url: "${url}" }`]);
  expect(refused.text).toContain('"type":"invalid_request_error"');
  if (refused.status !== 400) expect(refused.text).toMatch(/^(?:data: |:)/);
  expect(refused.text).toMatch(/The configuration was not reloaded, and nothing has changed\. .*cannot be listed/);
  expect(await served()).toEqual([["p"], ["p"]]);
  const changed = await reload([`{ kind: upstream, name: up, url: "${url}", models: { m: m } }`]);
  expect(changed.text).toContain('"type":"done"');
  expect(await served()).toEqual([
    ["p", "m"],
    ["p", "m"],
  ]);
});

interface ListedRequests {
  readonly requests: readonly {
    readonly id: string;
    readonly number: number;
    readonly thread?: string;
    readonly turn?: number;
    readonly snippet?: string;
  }[];
}

// With several workers there was no Inspect at all.
test("Inspect shows the requests of all workers, whichever one is asked", async () => {
  const serving = await serveTwo();
  const { url } = serving;
  const live = new AbortController();
  closeAfterTest(() => live.abort());
  const changes: string[] = [];
  const stream = await fetch(`${url}/admin/requests/live`, { signal: live.signal });
  void (async () => {
    for await (const chunk of stream.body ?? []) changes.push(Buffer.from(chunk as Uint8Array).toString());
  })().catch(() => {});
  await until(() => changes.join("").includes("listening"), "the stream of changes");

  const messages = [{ role: "user", content: "one" }];
  for (let turn = 1; turn <= 4; turn++) {
    await askAnew(`${url}/v1/chat/completions`, { body: { model: "p", messages } });
    // Each worker reports every 100 ms. A turn that was reported before the one that it continues would begin another conversation.
    await until(() => changes.join("").includes(`"turn":${turn}`), `turn ${turn} is reported`);
    messages.push(
      { role: "assistant", content: `Messages: ${messages.length}` },
      { role: "user", content: `more ${turn}` },
    );
  }
  const listed = async (): Promise<ListedRequests["requests"]> =>
    (await askJson<ListedRequests>(`${url}/admin/requests`)).requests;
  // Both workers are asked.
  for (let at = 0; at < 2; at++) {
    const requests = await listed();
    expect(requests.map(({ snippet, turn }) => [snippet, turn])).toEqual([
      ["one", 1],
      ["more 1", 2],
      ["more 2", 3],
      ["more 3", 4],
    ]);
    expect(new Set(requests.map(({ thread }) => thread)).size).toBe(1);
    expect(new Set(requests.map(({ number }) => number)).size).toBe(4);
  }
  const [first] = await listed();
  for (let at = 0; at < 2; at++) {
    const found = await askJson<{ request: { body: { text: string } }; turn: number }>(
      `${url}/admin/requests/${first?.id}`,
    );
    expect(found.turn).toBe(1);
    expect(found.request.body.text).toContain('"one"');
    const results = (await askAnew(`${url}/admin/requests/search?q=more`)).text;
    expect(results.match(/"hits"/g)).toHaveLength(3);
    const exported = (await askAnew(`${url}/admin/requests/export`)).text;
    expect(exported.trim().split("\n")).toHaveLength(4);
  }
  expect(JSON.parse((await askAnew(`${url}/admin/requests`, { method: "DELETE" })).text)).toEqual({ cleared: 4 });
  expect(await listed()).toEqual([]);
  await until(() => changes.join("").includes(`"cleared"`), "that all were dropped");
  await expect.poll(() => workersIn(serving).size).toBe(2);
});
