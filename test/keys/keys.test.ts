import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { stringify } from "yaml";
import { createServer } from "../../src/serve/app/create-server.ts";
import { ConfigError } from "../../src/serve/config/config-error.ts";
import type { KeyEntry } from "../../src/serve/config/keys-schema.ts";
import { answer, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { chat, json, serving, transports } from "../support/transports.ts";
import type { Api } from "../support/transports.ts";
import { keyOf, recordingLog, withKey } from "./support.ts";

const message = { max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };

describe.each(transports)("keys by their hashes through $name", ({ open }) => {
  const alice = keyOf("alice", { models: ["small", "gpt-*"] });
  const gone = keyOf("carol", { expires: "2020-02-02T00:00:00Z" });
  const lasting = keyOf("dora", { expires: "2999-01-01" });
  const engine = new ScriptedEngine(() => answer(["Hi"]), "small", "gpt-4o", "secret-model");
  let api: Api;
  beforeAll(async () => {
    api = await open(
      serving(engine, { apiKey: "sk-plain-0123456789", keys: [alice.entry, gone.entry, lasting.entry] }),
    );
  });
  afterAll(() => api.close());

  const ask = (key: string, path: string, init?: RequestInit): Promise<Response> => api.fetch(path, withKey(key, init));

  test("each may enter, with those that are plain", async () => {
    for (const key of [alice.key, lasting.key, "sk-plain-0123456789"])
      expect((await ask(key, "/v1/chat/completions", chat("Hello", { model: "small" }))).status).toBe(200);
    expect((await ask(alice.entry.hash, "/v1/models")).status).toBe(401);
    expect((await ask(alice.entry.hash.slice("sha256:".length), "/v1/models")).status).toBe(401);
    expect(engine.requests.slice(-3).map(({ owner }) => owner)).toEqual([
      "alice",
      "dora",
      expect.stringMatching(/^key [0-9a-f]{32}$/),
    ]);
  });

  // A key in both lists lost its limits, its models and its expiry date: the entry without limits replaced the other.
  test("a key that is plain, too, keeps its limits", async () => {
    const both = { apiKey: [alice.key, gone.key], keys: [alice.entry, gone.entry] };
    const mixed = await open(serving(new ScriptedEngine(() => answer(["Hi"]), "small", "secret-model"), both));
    const list = (await (await mixed.fetch("/v1/models", withKey(alice.key))).json()) as { data: { id: string }[] };
    expect(list.data.map(({ id }) => id)).toEqual(["small"]);
    expect((await mixed.fetch("/v1/models", withKey(gone.key))).status).toBe(401);
    await mixed.close();
  });

  test("one that has expired is a 401 that says whose it was; in the exact form it is a wrong one", async () => {
    const refused = await ask(gone.key, "/v1/models");
    expect([refused.status, await refused.json()]).toMatchObject([
      401,
      { error: { message: "The API key of 'carol' has expired.", code: "invalid_api_key" } },
    ]);
    const exact = await ask(gone.key, "/v1/models", { headers: { "x-truewire-wire": "exact" } });
    expect(await exact.json()).toMatchObject({
      error: { message: expect.stringMatching(/^Incorrect API key provided: /) as string },
    });
  });

  test("a model that a key may not use is to it as one that does not exist, on every path", async () => {
    const list = (await (await ask(alice.key, "/v1/models")).json()) as { data: { id: string }[] };
    expect(list.data.map(({ id }) => id)).toEqual(["small", "gpt-4o"]);
    expect((await ask(alice.key, "/v1/models/gpt-4o")).status).toBe(200);
    const before = engine.requests.length;
    const askAll = async (model: string): Promise<(readonly [number, string])[]> =>
      Promise.all(
        (
          [
            [`/v1/models/${model}`, undefined],
            ["/v1/chat/completions", chat("Hello", { model })],
            ["/v1/completions", json({ model, prompt: "Hello" })],
            ["/v1/responses", json({ model, input: "Hello" })],
            ["/v1/responses/input_tokens", json({ model, input: "Hello" })],
            ["/v1/messages", json({ model, ...message })],
            ["/v1/messages/count_tokens", json({ model, ...message })],
            ["/v1/embeddings", json({ model, input: "Hello" })],
            ["/v1/rerank", json({ model, query: "Hello", documents: ["Hi"] })],
            ["/apply-template", json({ model, messages: [{ role: "user", content: "Hello" }] })],
          ] as const
        ).map(async ([path, init]) => {
          const response = await ask(alice.key, path, init);
          const text = (await response.text()).replaceAll(model, "MODEL").replace(/req_\w+/, "ID");
          return [response.status, text] as const;
        }),
      );
    expect(await askAll("secret-model")).toEqual(await askAll("no-such-model"));
    expect(JSON.stringify(await askAll("secret-model"))).not.toContain("secret-model");
    expect((await askAll("secret-model")).map(([status]) => status)).toEqual([
      404, 404, 404, 400, 400, 404, 404, 404, 404, 404,
    ]);
    for (const path of ["/health", "/"])
      expect(await (await ask(alice.key, path)).text()).not.toContain("secret-model");
    expect(engine.requests.length).toBe(before);
  });
});

describe("keys of a server", () => {
  const engine = new ScriptedEngine(() => answer(["Hi"]));
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "truewire-keys-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  test("the log shows whose key it was, and no log, answer or error the key or its hash", async () => {
    const { log, lines } = recordingLog();
    const { key, entry } = keyOf("alice", { requestsPerMinute: 2 });
    const server = await createServer({ ...serving(engine, { keys: [entry] }), port: 0 }, { log });
    const said: string[] = [];
    for (let i = 0; i < 3; i++)
      said.push(await (await fetch(`${server.url}/v1/chat/completions`, withKey(key, chat("Hello")))).text());
    said.push(await (await fetch(`${server.url}/health`, withKey(key))).text());
    await (await fetch(`${server.url}/v1/models`, withKey("sk-wrong-0123456789"))).text();
    await server.close(0);
    expect(lines.map(({ key: name, status }) => [name, status])).toEqual([
      ["alice", 200],
      ["alice", 200],
      ["alice", 429],
      [undefined, 401],
    ]);
    const all = JSON.stringify([lines, said]);
    expect(all).not.toContain(key);
    expect(all).not.toContain(entry.hash.slice(7, 27));
    expect(all).not.toContain("sk-wrong-0123456789");
  });

  test("keys of one name come and go with their file; they count together, and what one has kept the next one finds", async () => {
    const file = join(folder, "keys.yaml");
    const write = (...keys: KeyEntry[]): Promise<void> => writeFile(file, stringify(keys));
    const limits = { requestsPerMinute: 4 };
    const old = keyOf("alice", limits, "tw-the-old-key-0123456789");
    const young = keyOf("alice", limits, "tw-the-young-key-0123456789");
    const bob = keyOf("bob");
    await write(old.entry, bob.entry);
    const config = { ...serving(engine, { keysFile: file }), port: 0, logLevel: "silent" } as const;
    const server = await createServer(config);
    const ask = (key: string, body: object): Promise<Response> =>
      fetch(`${server.url}/v1/responses`, withKey(key, json({ model: "scripted", input: "x", ...body })));
    const { id } = (await (await ask(old.key, {})).json()) as { id: string };
    expect((await ask(young.key, {})).status).toBe(401);
    await write(old.entry, young.entry, bob.entry);
    await server.reload(config);
    const next = await ask(young.key, { previous_response_id: id });
    expect([next.status, next.headers.get("x-ratelimit-remaining-requests")]).toEqual([200, "2"]);
    const other = await ask(bob.key, { previous_response_id: id });
    expect([other.status, other.headers.get("x-ratelimit-remaining-requests")]).toEqual([400, null]);
    await write(young.entry, bob.entry);
    await server.reload(config);
    expect((await ask(old.key, {})).status).toBe(401);
    expect((await ask(young.key, {})).headers.get("x-ratelimit-remaining-requests")).toBe("1");

    // A file that is wrong changes nothing, and says where.
    await writeFile(file, "- name: alice\n  hash: md5:x\n");
    const error = await server.reload(config).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(ConfigError);
    expect(String(error)).toContain(`${file}:2: [0].hash: expected the hash of a key`);
    expect((await ask(young.key, {})).status).toBe(200);

    // Nobody has a key any more: that lets nobody in, not everybody.
    await write();
    await server.reload(config);
    expect([(await ask(young.key, {})).status, (await fetch(`${server.url}/v1/models`)).status]).toEqual([401, 401]);
    await server.close(0);
  });

  test("requests by WebSocket are counted one by one, and refused in an event", async () => {
    const { key, entry } = keyOf("alice", { requestsPerMinute: 2 });
    const server = await createServer({ ...serving(engine, { keys: [entry] }), port: 0, logLevel: "silent" });
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const events: { type: string; status?: number; error?: { code: string; message: string } }[] = [];
    socket.on("message", (data: Buffer) => events.push(JSON.parse(data.toString()) as (typeof events)[number]));
    await once(socket, "open");
    for (const end of ["response.completed", "response.completed", "error"]) {
      events.length = 0;
      socket.send(JSON.stringify({ type: "response.create", model: "scripted", input: "x" }));
      await until(() => events.at(-1)?.type === end, `it ends with ${end}`);
    }
    expect(events).toMatchObject([{ status: 429, error: { code: "rate_limit_exceeded" } }]);
    socket.terminate();
    await server.close(0);
  });
});
