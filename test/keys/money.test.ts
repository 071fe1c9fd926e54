import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { ChildProcess } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import type { KeyEntry } from "../../src/serve/config/keys-schema.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { pastMidnight } from "../support/past-midnight.ts";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { answer, ScriptedEngine, until } from "../support/scripted-engine.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { startTruewire } from "../support/serve.ts";
import { chat, json, serving } from "../support/transports.ts";
import { keyOf, recordingLog, withKey } from "./support.ts";

const adminKey = "admin-of-money-0123456789";
/** 10 tokens of a prompt, 4 of them cached, and 20 of an answer: 6 × $10 + 4 × $1 + 20 × $50, for a million. */
const prices = { scripted: { input: 10, cachedInput: 1, output: 50 } };
const cost = 0.001064;
const usage = { promptTokens: 10, completionTokens: 20, promptDetails: { cached_tokens: 4 } };

interface Row {
  readonly key: string;
  readonly model: string;
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly cached_tokens: number;
  readonly completion_tokens: number;
  readonly cost: number;
}

async function usageOf(url: string): Promise<readonly Row[]> {
  const response = await fetch(`${url}/admin/usage`, { headers: { authorization: `Bearer ${adminKey}` } });
  return ((await response.json()) as { usage: readonly Row[] }).usage;
}

async function opened(
  limits: Partial<KeyEntry>,
  config: TruewireConfig = {},
): Promise<{ server: TruewireServer; key: string; log: ReturnType<typeof recordingLog>; engine: ScriptedEngine }> {
  const engine = new ScriptedEngine(() => answer(["Hi"], { usage }));
  Object.assign(engine.handlers, { embed: async () => ({ vectors: [[1]], promptTokens: 30 }) });
  const { key, entry } = keyOf("alice", limits);
  const log = recordingLog();
  const server = await createServer(
    { ...serving(engine, { keys: [entry], adminKey, prices, ...config }), port: 0 },
    { log: log.log },
  );
  closeAfterTest(() => server.close(0));
  return { server, key, log, engine };
}

const apis: readonly (readonly [path: string, body: object])[] = [
  ["/v1/chat/completions", { max_tokens: 20, messages: [{ role: "user", content: "Hello" }] }],
  ["/v1/completions", { max_tokens: 20, prompt: "Hello" }],
  ["/v1/responses", { max_output_tokens: 20, input: "Hello" }],
  ["/v1/messages", { max_tokens: 20, messages: [{ role: "user", content: "Hello" }] }],
  ["/api/chat", { stream: false, options: { num_predict: 20 }, messages: [{ role: "user", content: "Hello" }] }],
  [
    "/v1beta/models/scripted:generateContent",
    { generationConfig: { maxOutputTokens: 20 }, contents: [{ role: "user", parts: [{ text: "Hello" }] }] },
  ],
];

beforeEach(pastMidnight);

describe("money", () => {
  test.each(apis)("%s: a request has its cost, and beyond the budget a 429 in the API's words", async (path, body) => {
    const { server, key, log, engine } = await opened({ budget: { day: 0.003 } });
    const post = (): Promise<Response> => fetch(server.url + path, withKey(key, json({ model: "scripted", ...body })));
    for (let i = 0; i < 2; i++) {
      const response = await post();
      expect([response.status, response.headers.get("x-truewire-cost")]).toEqual([200, "0.001064"]);
      await response.text();
    }
    const before = engine.requests.length;
    const refused = await post();
    expect(refused.status).toBe(429);
    expect(engine.requests.length).toBe(before);
    expect(refused.headers.get("x-should-retry")).toBe("false");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(refused.headers.get("x-truewire-budget-remaining")).toBe("0.000872");
    const message = expect.stringMatching(
      /^You exceeded your current quota: the budget of the key 'alice' for a day\. Limit \$0\.003, Used \$0\.002128, Requested \$0\.001\d+ \(with max_tokens\)\. It is there again on \d{4}-\d\d-\d\d at 00:00 UTC\.$/,
    ) as string;
    const error =
      path === "/v1/messages"
        ? { type: "error", error: { type: "rate_limit_error", message } }
        : path.startsWith("/api")
          ? { error: message }
          : path.startsWith("/v1beta")
            ? { error: { code: 429, status: "RESOURCE_EXHAUSTED", message } }
            : { error: { type: "insufficient_quota", code: "insufficient_quota", param: null, message } };
    expect(await refused.json()).toMatchObject(error);
    expect(log.lines.filter(({ cost: logged }) => logged === cost)).toHaveLength(2);
    expect(await usageOf(server.url)).toMatchObject([
      { key: "alice", model: "scripted", requests: 2, prompt_tokens: 20, cached_tokens: 8, completion_tokens: 40 },
    ]);
  });

  test("streams, embeddings, background responses and batches are counted as well", async () => {
    const { server, key } = await opened({ budget: { total: 1 } });
    const post = async (path: string, body: object): Promise<{ id: string }> => {
      const response = await fetch(server.url + path, withKey(key, json({ model: "scripted", ...body })));
      expect(response.status).toBe(200);
      const text = await response.text();
      return text.startsWith("{") ? (JSON.parse(text) as { id: string }) : { id: "" };
    };
    const spent = async (): Promise<number> => {
      const rows = await usageOf(server.url);
      return Math.round(rows.reduce((sum, row) => sum + row.cost, 0) * 1e9) / 1e9;
    };
    await post("/v1/chat/completions", { stream: true, messages: [{ role: "user", content: "Hello" }] });
    expect(await spent()).toBe(cost);
    await post("/v1/embeddings", { input: "Hello" });
    expect(await spent()).toBe(0.001364);
    await post("/v1/responses", { input: "Hello", background: true });
    await until(async () => (await spent()) === 0.002428, "the response in the background has ended");
    const client = new Anthropic({ baseURL: server.url, apiKey: key });
    await client.messages.batches.create({
      requests: ["a", "b"].map((id) => ({
        custom_id: id,
        params: { model: "scripted", max_tokens: 20, messages: [{ role: "user", content: "Hello" }] },
      })),
    });
    await until(async () => (await spent()) === 0.004556, "the batch has ended");
  });

  test("a client that leaves pays for what was written", async () => {
    const engine = new ScriptedEngine(async function* (_, signal) {
      yield [
        { type: "start", choice: 0 },
        { type: "text-delta", choice: 0, text: "x".repeat(400) },
      ];
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    });
    const { key, entry } = keyOf("alice", { budget: { total: 1 } });
    const server = await createServer({ ...serving(engine, { keys: [entry], adminKey, prices }), port: 0 });
    closeAfterTest(() => server.close(0));
    const left = new AbortController();
    const response = await fetch(
      `${server.url}/v1/chat/completions`,
      withKey(key, { ...chat("Hello", { stream: true }), signal: left.signal }),
    );
    await response.body?.getReader().read();
    left.abort();
    await until(async () => (await usageOf(server.url)).length > 0, "it is counted");
    const [row] = await usageOf(server.url);
    expect(row).toMatchObject({ completion_tokens: 100 });
    expect(row?.cost).toBeGreaterThan(0.005);
  });

  test("from the soft limit on, answers have a warning, and the log says it once", async () => {
    const { server, key, log } = await opened({ budget: { month: 0.01, warnAt: 0.2 } });
    const warnings: (string | null)[] = [];
    for (let i = 0; i < 4; i++) {
      const response = await fetch(
        `${server.url}/v1/chat/completions`,
        withKey(key, chat("Hello", { max_tokens: 20 })),
      );
      warnings.push(response.headers.get("x-truewire-warning"));
      await response.text();
    }
    expect(warnings[0]).toBeNull();
    expect(warnings[3]).toMatch(/^the key 'alice' has spent \$0\.004\d* of its budget of \$0\.01 for this month$/);
    expect(log.lines.filter(({ message }) => message === "a budget is nearly spent")).toHaveLength(1);
  });

  test("a key with a budget cannot use a model without a price; others can", async () => {
    const { server, key } = await opened({ budget: { total: 1 } }, { prices: {} });
    const refused = await fetch(`${server.url}/v1/chat/completions`, withKey(key, chat("Hello")));
    expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([
      403,
      "model_without_price",
    ]);
  });

  test("the official SDKs do not ask again where a budget is spent", async () => {
    const { server, key, engine } = await opened({ budget: { total: 0.002 } });
    const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: key });
    const body = { model: "scripted", max_tokens: 20, messages: [{ role: "user" as const, content: "Hello" }] };
    await openai.chat.completions.create(body);
    await expect(openai.chat.completions.create(body)).rejects.toThrow(/429 You exceeded your current quota/);
    const anthropic = new Anthropic({ baseURL: server.url, apiKey: key });
    await expect(anthropic.messages.create(body)).rejects.toThrow(/rate_limit_error/);
    expect(engine.requests).toHaveLength(1);
  });
});

describe("what was spent", () => {
  /** Serves a program that says "Hi", or never says anything, with a budget for $0.01. */
  async function served(config: object): Promise<{ start: () => Promise<RunningTruewire>; key: string }> {
    const folder = await mkdtemp(join(tmpdir(), "truewire-money-"));
    closeAfterTest(() => rm(folder, { recursive: true, force: true }));
    await writeFile(
      join(folder, "p.mjs"),
      `export default async function* ({ messages }) {
  if (messages.at(-1).content === "wait") await new Promise(() => setTimeout(() => {}, 1e9));
  yield "x".repeat(80);
}`,
    );
    const { key, entry } = keyOf("alice", { budget: { total: 0.01 } });
    const whole = {
      port: 0,
      adminKey,
      prices: { p: { input: 10, output: 50 } },
      keys: [entry],
      models: ["./p.mjs"],
      ...config,
    };
    const file = join(folder, "truewire.json");
    await writeFile(file, JSON.stringify(whole));
    const start = async (): Promise<RunningTruewire> => {
      const running = await startTruewire(["--config", file], { cwd: folder });
      closeAfterTest(() => running.stop("SIGKILL"));
      return running;
    };
    return { start, key };
  }

  async function survivesKills(config: object): Promise<void> {
    const { start, key } = await served(config);
    const post = async (url: string, text: string): Promise<number> => {
      const init = withKey(key, json({ model: "p", max_tokens: 20, messages: [{ role: "user", content: text }] }));
      const response = await fetch(`${url}/v1/chat/completions`, init);
      await response.text();
      return response.status;
    };
    const totals = async (url: string): Promise<{ requests: number; cost: number }> => {
      const rows = await usageOf(url);
      return {
        requests: rows.reduce((sum, { requests }) => sum + requests, 0),
        cost: rows.reduce((sum, row) => sum + row.cost, 0),
      };
    };
    let answered = 0;
    let before = 0;
    for (let kill = 0; kill < 3; kill++) {
      const { url, stop } = await start();
      const open = post(url, "wait").catch(() => 0);
      expect(await post(url, "Hello")).toBe(200);
      answered++;
      await until(async () => (await spentOf(url)) > before + 0.002, "what the open request may cost is taken");
      before = await spentOf(url);
      await stop("SIGKILL");
      await open;
    }
    const { url } = await start();
    expect(await spentOf(url)).toBeGreaterThanOrEqual(before);
    expect((await totals(url)).requests).toBeGreaterThanOrEqual(answered);
    // Until it is spent: no request more than the rest allows.
    const statuses: number[] = [];
    while (statuses.at(-1) !== 429) statuses.push(await post(url, "Hello"));
    expect(await spentOf(url)).toBeLessThanOrEqual(0.01);
    expect(statuses.length).toBeLessThan(8);
  }

  /** What the admin API shows as spent of the budget, with what is reserved. */
  async function spentOf(url: string): Promise<number> {
    const response = await fetch(`${url}/admin/keys`, { headers: { authorization: `Bearer ${adminKey}` } });
    const { keys } = (await response.json()) as { keys: readonly { used: { budget: { total: number } } }[] };
    return keys[0]?.used.budget.total ?? 0;
  }

  test("before a kill is spent after it, in a folder; an open request costs what it reserved", async () => {
    await survivesKills({ store: "./kept" });
  });

  describe.skipIf(redisCommand() === undefined)("in Redis", () => {
    let redis: ChildProcess;
    let port: number;
    beforeAll(async () => {
      port = await freePort();
      redis = await startRedis(port);
    });
    afterAll(() => void redis.kill("SIGKILL"));

    test("before a kill is spent after it", async () => {
      await survivesKills({ sharedLimits: `redis://127.0.0.1:${port}` });
    });

    async function three(budget: NonNullable<KeyEntry["budget"]>, name: string) {
      const engine = new ScriptedEngine(() => answer(["Hi"], { usage }));
      const { key, entry } = keyOf(name, { budget });
      const sharedLimits = `redis://127.0.0.1:${port}`;
      const config = serving(engine, { keys: [entry], adminKey, prices, sharedLimits });
      const servers = await Promise.all(
        [1, 2, 3].map(() => createServer({ ...config, port: 0 }, { log: recordingLog().log })),
      );
      closeAfterTest(() => Promise.all(servers.map((server) => server.close(0))));
      const post = async (at: number): Promise<number> => {
        const url = `${servers[at % 3]?.url}/v1/chat/completions`;
        const response = await fetch(url, withKey(key, chat("Hello", { max_tokens: 20 })));
        await response.text();
        return response.status;
      };
      return { servers, post, engine };
    }

    test("200 requests at once over three instances spend no more than the budget, and nearly all of it", async () => {
      const { servers, post, engine } = await three({ day: 0.02 }, "racer");
      const statuses = await Promise.all(Array.from({ length: 200 }, (_, at) => post(at)));
      const passed = statuses.filter((status) => status === 200).length;
      expect(engine.requests).toHaveLength(passed);
      expect(statuses.every((status) => status === 200 || status === 429)).toBe(true);
      expect(passed * cost).toBeLessThanOrEqual(0.02);
      // What was reserved and not needed is there again: the rest is spent one by one.
      let more = 0;
      while ((await post(more)) === 200) more++;
      expect((passed + more) * cost).toBeLessThanOrEqual(0.02);
      expect((passed + more + 2) * cost).toBeGreaterThan(0.02);
      const rows = (await usageOf(servers[1]?.url ?? "")).filter((row) => row.key === "racer");
      expect(rows).toMatchObject([{ requests: passed + more, prompt_tokens: 10 * (passed + more) }]);
      expect(rows[0]?.cost).toBeCloseTo((passed + more) * cost, 9);
    });

    test("what is spent while Redis is away is spent when it is back", async () => {
      const { servers, post } = await three({ total: 1 }, "away");
      expect(await post(0)).toBe(200);
      redis.kill("SIGSTOP");
      for (let i = 0; i < 3; i++) expect(await post(0)).toBe(200);
      redis.kill("SIGCONT");
      await until(async () => {
        await post(0);
        const row = (await usageOf(servers[2]?.url ?? "")).find(({ key }) => key === "away");
        return (row?.requests ?? 0) >= 5;
      }, "Redis knows of all");
    });
  });
});

test("the price file is named in an error at the start", async () => {
  const folder = await mkdtemp(join(tmpdir(), "truewire-prices-"));
  closeAfterTest(() => rm(folder, { recursive: true, force: true }));
  const pricesFile = join(folder, "prices.json");
  await writeFile(pricesFile, '{"m": {"input_cost_per_token": "much"}}');
  await expect(createServer({ port: 0, pricesFile })).rejects.toThrow(
    `${pricesFile}: m.input_cost_per_token: expected US dollars for one`,
  );
  await expect(createServer({ port: 0, pricesFile: join(folder, "none") })).rejects.toThrow(
    /none: cannot be read: ENOENT/,
  );
});
