import type { ChildProcess } from "node:child_process";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { answer, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { builtMain } from "../support/serve.ts";
import { chat, serving } from "../support/transports.ts";
import { keyOf, recordingLog, withKey } from "./support.ts";

const run = promisify(execFile);
const adminKey = "admin-of-keys-0123456789";
const admin = { authorization: `Bearer ${adminKey}`, "content-type": "application/json" };

interface Created {
  readonly key: string;
  readonly id: string;
  readonly name: string;
}

async function ask(url: string, method: string, path: string, body?: object): Promise<Response> {
  return fetch(`${url}/admin/${path}`, { method, headers: admin, ...(body && { body: JSON.stringify(body) }) });
}

async function create(url: string, settings: object): Promise<Created> {
  const response = await ask(url, "POST", "keys", settings);
  expect(response.status).toBe(200);
  expect(response.headers.get("cache-control")).toBe("no-store");
  return (await response.json()) as Created;
}

async function opened(config: TruewireConfig = {}) {
  const engine = new ScriptedEngine(() => answer(["Hi"], { usage: { promptTokens: 10, completionTokens: 20 } }));
  const log = recordingLog();
  const whole = { ...serving(engine, { adminKey, managedKeys: true, ...config }), port: 0 };
  const server = await createServer(whole, { log: log.log });
  closeAfterTest(() => server.close(0));
  return { server, log, engine };
}

async function statusOf(url: string, key: string, more: Readonly<Record<string, unknown>> = {}): Promise<number> {
  const response = await fetch(`${url}/v1/chat/completions`, withKey(key, chat("Hello", more)));
  await response.text();
  return response.status;
}

async function folderForTest(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "truewire-keys-"));
  closeAfterTest(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

describe("keys that are created while the server runs", () => {
  test("a server with managed keys needs a key before there is one; a created one works, within what it may use", async () => {
    const { server } = await opened();
    expect(await statusOf(server.url, "")).toBe(401);
    const { key, id, ...entry } = await create(server.url, {
      name: "alice",
      owner: "search-team",
      note: "CI",
      models: ["scripted"],
      tokensPerDay: 60,
      answerTokens: 1,
      expires: "2099-12-31",
    });
    expect(key).toMatch(/^tw-[\w-]{43}$/);
    expect(entry).toMatchObject({ name: "alice", owner: "search-team", note: "CI", tokensPerDay: 60 });
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: key, maxRetries: 0 });
    const body = { model: "scripted", messages: [{ role: "user" as const, content: "Hello" }] };
    for (let i = 0; i < 2; i++) expect((await client.chat.completions.create(body)).choices).toHaveLength(1);
    await expect(client.chat.completions.create(body)).rejects.toThrow(/429/);
    expect(await statusOf(server.url, key, { model: "other" })).toBe(404);
    const { keys } = (await (await ask(server.url, "GET", "keys")).json()) as { keys: readonly object[] };
    expect(keys).toMatchObject([
      { id, name: "alice", source: "store", tokensPerDay: 60, used: { tokensPerDay: 60, concurrency: 0 } },
    ]);
    expect(JSON.stringify(keys)).not.toContain(key);
  });

  test("settings are checked as those of the configuration, with their place", async () => {
    const { server } = await opened();
    for (const [settings, param, words] of [
      [{}, "name", "is missing"],
      [{ name: "a", budget: { week: 1 } }, "budget.week", "there is no such setting"],
      [{ name: "a", tokensPerDay: "many" }, "tokensPerDay", "expected a whole number"],
      [{ name: "a", hash: "sha256:0" }, "hash", "is set by the server"],
      [{ name: "a", created: "now" }, "created", "is set by the server"],
    ] as const) {
      const response = await ask(server.url, "POST", "keys", settings);
      const { error } = (await response.json()) as { error: { message: string; param: string } };
      expect([response.status, error.param]).toEqual([400, param]);
      expect(error.message).toContain(words);
    }
    expect((await ask(server.url, "POST", "keys", [] as object)).status).toBe(400);
    expect((await ask(server.url, "DELETE", "keys/0000000000000000")).status).toBe(404);
  });

  test("only the admin key opens these paths, and only for programs and this server's page", async () => {
    const { server } = await opened();
    const { key, id } = await create(server.url, { name: "alice" });
    for (const authorization of ["", `Bearer ${key}`, "Bearer "])
      for (const [method, path] of [
        ["GET", "keys"],
        ["POST", "keys"],
        ["POST", `keys/${id}`],
        ["DELETE", `keys/${id}`],
        ["GET", "usage"],
      ] as const)
        expect((await fetch(`${server.url}/admin/${path}`, { method, headers: { authorization } })).status).toBe(401);
    for (const [name, value] of [
      ["origin", "https://evil.example"],
      ["sec-fetch-site", "cross-site"],
    ] as const)
      expect((await fetch(`${server.url}/admin/keys`, { headers: { ...admin, [name]: value } })).status).toBe(403);
    expect(await statusOf(server.url, key)).toBe(200);
  });

  test("without managedKeys, keys of the configuration are listed, and none is created", async () => {
    const { key, entry } = keyOf("carol", { budget: { month: 5 } });
    const { server } = await opened({
      managedKeys: false,
      keys: [entry],
      prices: { scripted: "free" },
    });
    expect((await ask(server.url, "POST", "keys", { name: "alice" })).status).toBe(404);
    const { keys, managed } = (await (await ask(server.url, "GET", "keys")).json()) as {
      keys: readonly object[];
      managed: boolean;
    };
    expect([keys, managed]).toMatchObject([[{ name: "carol", source: "configuration", budget: { month: 5 } }], false]);
    expect(await statusOf(server.url, key)).toBe(200);
  });

  test("the store has no key, only hashes; keys survive a restart, a torn line does not harm the next", async () => {
    const store = join(await folderForTest(), "store");
    const first = await opened({ store });
    const one = await create(first.server.url, { name: "alice" });
    const two = await create(first.server.url, { name: "bob" });
    await ask(first.server.url, "POST", `keys/${one.id}`, { requestsPerMinute: 1 });
    await ask(first.server.url, "DELETE", `keys/${two.id}`);
    await first.server.close(0);
    for (const name of await readdir(join(store, "keys"))) {
      const text = await readFile(join(store, "keys", name), "utf8");
      expect(text).not.toContain(one.key);
      await writeFile(join(store, "keys", name), `${text}{"key":{"na`);
    }
    const second = await opened({ store });
    expect(await statusOf(second.server.url, one.key)).toBe(200);
    expect(await statusOf(second.server.url, one.key)).toBe(429);
    expect(await statusOf(second.server.url, two.key)).toBe(401);
    const three = await create(second.server.url, { name: "dora" });
    expect(await statusOf(second.server.url, three.key)).toBe(200);
    for (const { log } of [first, second])
      for (const line of log.lines) expect(JSON.stringify(line)).not.toMatch(/tw-[\w-]{43}/);
  });

  test("a key in the configuration is as the configuration has it, whatever the store says", async () => {
    const store = join(await folderForTest(), "store");
    const first = await opened({ store });
    const { key, id } = await create(first.server.url, { name: "alice", requestsPerMinute: 1 });
    await first.server.close(0);
    const { entry } = keyOf("alice-of-the-file", {}, key);
    const { server } = await opened({ store, keys: [entry] });
    for (let i = 0; i < 3; i++) expect(await statusOf(server.url, key)).toBe(200);
    await ask(server.url, "DELETE", `keys/${id}`);
    expect(await statusOf(server.url, key)).toBe(200);
  });

  test("truewire keys create, list, usage and revoke", async () => {
    const { server } = await opened({ prices: { scripted: { input: 10, output: 50 } } });
    const truewire = (...args: string[]): Promise<{ stdout: string; stderr: string }> =>
      run(process.execPath, [builtMain, "keys", ...args, "--url", server.url, "--admin-key", adminKey]);
    const created = await truewire("create", "--name", "=alice", "--budget-month", "1", "--models", "scripted,small");
    const key = created.stdout.trim();
    expect(key).toMatch(/^tw-/);
    const [, id = ""] = /Its id is (\w{16})/.exec(created.stderr) ?? [];
    expect(await statusOf(server.url, key)).toBe(200);
    expect((await truewire("list")).stdout).toMatch(
      new RegExp(`^ID .*\\n${id} +=alice +store +30 +\\$0\\.00 +\\$0\\.00 of \\$1 +\\$0\\.00\\n$`),
    );
    const day = new Date().toISOString().slice(0, 10);
    expect((await truewire("usage")).stdout).toMatch(
      new RegExp(`^KEY .*\\n=alice +${day} +scripted +1 +10 +0 +20 +\\$0\\.001100\\n +\\$0\\.001100\\n$`),
    );
    // A spreadsheet takes a text that begins with = for a formula.
    expect((await truewire("usage", "--csv")).stdout).toBe(
      `key,day,model,requests,prompt_tokens,cached_tokens,completion_tokens,cost\r\n'=alice,${day},scripted,1,10,0,20,0.0011\n`,
    );
    expect(JSON.parse((await truewire("usage", "--json", "--key", "=alice")).stdout)).toMatchObject([{ cost: 0.0011 }]);
    expect(JSON.parse((await truewire("usage", "--json", "--key", "nobody")).stdout)).toEqual([]);
    expect((await truewire("revoke", id)).stdout).toBe(`The key ${id} of =alice is revoked.\n`);
    expect(await statusOf(server.url, key)).toBe(401);
  });

  describe.skipIf(redisCommand() === undefined)("over three instances", () => {
    let redis: ChildProcess;
    let port: number;
    beforeAll(async () => {
      port = await freePort();
      redis = await startRedis(port);
    });
    afterAll(() => void redis.kill("SIGKILL"));

    test("the life of a leaked key: created, used, limited and revoked, each at all instances", async () => {
      const at = `redis://127.0.0.1:${port}`;
      const servers: TruewireServer[] = [];
      for (let i = 0; i < 3; i++) servers.push((await opened({ store: at, sharedLimits: at })).server);
      const urls = servers.map(({ url }) => url);
      const [first = ""] = urls;
      const { key, id } = await create(first, { name: "leaked" });
      // At once: an instance that does not know a key looks for it.
      expect(await Promise.all(urls.map((url) => statusOf(url, key)))).toEqual([200, 200, 200]);
      const taken: Record<string, number> = {};
      const within = async (what: string, status: number): Promise<void> => {
        const began = performance.now();
        for (const url of urls) await until(async () => (await statusOf(url, key)) === status, what);
        taken[what] = Math.round(performance.now() - began);
      };
      await ask(first, "POST", `keys/${id}`, { requestsPerMinute: 1 });
      await within("limited", 429);
      await ask(first, "DELETE", `keys/${id}`);
      await within("revoked", 401);
      if (process.env["TRUEWIRE_TIMES"] !== undefined) console.log("ms until all three instances", taken);
    });
  });
});
