import { afterAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { keyOfConversation, KeyState, resetMs } from "../../src/engines/upstream/key-pool.ts";
import { recordingLog } from "../keys/support.ts";
import { until } from "../support/scripted-engine.ts";
import { chat } from "../support/transports.ts";
import { startScripted } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";

const hello = JSON.stringify({ choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] });
const keys = ["sk-pool-a-0123456789", "sk-pool-b-0123456789", "sk-pool-c-0123456789"];

/** Conversations. The random port of the vendor decides which key each has: of so many, each key has some. */
const many = 80;

describe("several keys of an upstream", () => {
  const opened: { close(graceMs?: number): Promise<unknown> }[] = [];
  afterAll(() => Promise.all(opened.map((one) => one.close(0))));

  /** What the vendor answers for a key; undefined: an answer. */
  async function pool(
    refusal: (key: string) => { status: number; headers?: Record<string, string> } | undefined,
    key: readonly (string | { key: string; weight: number })[] = keys,
  ): Promise<{
    server: TruewireServer;
    vendor: ScriptedServer;
    used: () => string[];
    log: ReturnType<typeof recordingLog>;
  }> {
    const vendor = await startScripted((response) => {
      const sent = vendor.requests.at(-1)?.headers.authorization ?? "";
      const { status = 200, headers = {} } = refusal(sent.replace("Bearer ", "")) ?? {};
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(status === 200 ? hello : JSON.stringify({ error: { message: `No: ${sent}`, code: null } }));
    });
    const log = recordingLog();
    const models = [{ kind: "upstream" as const, url: vendor.url, api: "chat" as const, key, models: ["m"] }];
    const server = await createServer({ port: 0, models }, { log: log.log });
    opened.push(server, vendor);
    const used = (): string[] => vendor.requests.map(({ headers }) => headers.authorization?.slice(7) ?? "");
    return { server, vendor, used, log };
  }

  async function ask(server: TruewireServer, text: string): Promise<number> {
    const response = await fetch(`${server.url}/v1/chat/completions`, chat(text, { model: "m" }));
    await response.text();
    return response.status;
  }

  test("a conversation keeps its key over all its turns; conversations are spread over the keys", async () => {
    const { server, used } = await pool(() => undefined);
    for (let turn = 0; turn < 3; turn++)
      await Promise.all(Array.from({ length: many }, (_, at) => ask(server, `conversation ${at}`)));
    const all = used();
    expect(new Set(all)).toEqual(new Set(keys));
    const counts = keys.map((key) => all.filter((one) => one === key).length);
    // Three turns of each conversation with one key.
    expect(counts.every((count) => count % 3 === 0)).toBe(true);
  });

  test.each([
    [401, {}],
    [429, { "retry-after": "30" }],
    [429, { "retry-after": "30", "x-should-retry": "false" }],
  ])("a key that is refused with %i rests; the client sees nothing of it", async (status, headers) => {
    const refused = new Set(keys.slice(0, 2));
    const { server, used, log } = await pool((key) => (refused.has(key) ? { status, headers } : undefined));
    for (let at = 0; at < many; at++) expect(await ask(server, `conversation ${at}`)).toBe(200);
    const all = used();
    // Each refused key was asked once.
    for (const key of refused) expect(all.filter((one) => one === key)).toHaveLength(1);
    expect(all.filter((one) => one === keys[2])).toHaveLength(many);
    for (const line of log.lines) for (const key of keys) expect(JSON.stringify(line)).not.toContain(key);
  });

  test("where every key is refused, the client gets the refusal, without a key in it", async () => {
    const { server, used } = await pool(() => ({ status: 429, headers: { "retry-after": "30" } }));
    const response = await fetch(`${server.url}/v1/chat/completions`, chat("Hello", { model: "m" }));
    const text = await response.text();
    expect([response.status, new Set(used())]).toEqual([429, new Set(keys)]);
    for (const key of keys) expect(text).not.toContain(key);
  });

  test("a key whose Retry-After is over serves its conversations again", async () => {
    let refuses = true;
    const { server, used } = await pool((key) =>
      refuses && key !== keys[2]
        ? { status: 429, headers: { "retry-after-ms": "50", "retry-after": "0.05" } }
        : undefined,
    );
    expect(await ask(server, "conversation 1")).toBe(200);
    refuses = false;
    await until(async () => {
      for (let at = 0; at < many; at++) await ask(server, `conversation ${at}`);
      return new Set(used().slice(-many)).size === 3;
    }, "all keys serve");
  });

  test("the admin sees each key by its number, with what is left of its limits", async () => {
    const headers = { "x-ratelimit-remaining-requests": "41", "x-ratelimit-reset-requests": "1s" };
    const { server } = await pool(() => ({ status: 200, headers }), [keys[0] ?? "", { key: keys[1] ?? "", weight: 3 }]);
    for (let at = 0; at < many; at++) await ask(server, `conversation ${at}`);
    const live = await fetch(`${server.url}/admin/models/live`);
    const reader = live.body?.getReader();
    const text = new TextDecoder().decode((await reader?.read())?.value);
    await reader?.cancel();
    const { models } = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? "{}") as {
      models: readonly { urls: readonly object[] }[];
    };
    expect(models[0]?.urls).toMatchObject([
      { key: "key 1", remaining: { requests: 41 } },
      { key: "key 2", remaining: { requests: 41 } },
    ]);
    for (const key of keys) expect(text).not.toContain(key);
  });
});

test("weights are shares of the conversations; without a key, only its conversations move", () => {
  const targets = [1, 1, 2].map((weight, at) => ({ rankName: `key ${at}`, keyState: new KeyState(weight, "") }));
  const conversations = Array.from({ length: 4000 }, (_, at) => `conversation ${at}`);
  const before = conversations.map((one) => keyOfConversation(targets, one));
  const shares = targets.map((target) => before.filter((one) => one === target).length / 4000);
  expect(shares[0]).toBeCloseTo(0.25, 1);
  expect(shares[2]).toBeCloseTo(0.5, 1);
  const rest = targets.slice(1);
  for (const [at, one] of conversations.entries())
    if (before[at] !== targets[0]) expect(keyOfConversation(rest, one)).toBe(before[at]);
});

test.each([
  ["12ms", 12],
  ["1.5s", 1500],
  ["6m0s", 360_000],
  ["1h0m1s", 3_601_000],
  ["2026-11-30T00:00:10Z", 10_000],
  ["", undefined],
  ["soon", undefined],
  ["9".repeat(100), undefined],
])("the reset %j", (text, ms) => {
  expect(resetMs(text, Date.UTC(2026, 10, 30))).toBe(ms);
});

// The rest became NaN, and the key never rested again.
test.each(["1.2.3s", ".s", "1..5s"])("a reset that is no time (%s) is ignored, and later rests hold", (reset) => {
  const state = new KeyState(1, "key 1");
  state.received({ "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": reset }, 0);
  expect(state.rests(0)).toBe(false);
  state.failed({ kind: "rate-limited", status: 429, message: "" }, 0);
  expect([state.rests(4999), state.rests(5001)]).toEqual([true, false]);
});

test("a key without a rest of its limit is left alone for a moment, not until all of it is there again", () => {
  const state = new KeyState(1, "key 1");
  state.received(
    { "anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2999-01-01T00:00:00Z" },
    0,
  );
  expect([state.rests(0), state.rests(4999), state.rests(5001)]).toEqual([true, true, false]);
  expect(state.failed({ kind: "authentication", status: 401, message: "" }, 6000)).toBe(true);
  expect([state.rests(65_999), state.rests(66_001)]).toEqual([true, false]);
  expect(state.failed({ kind: "internal", status: 500, message: "" }, 70_000)).toBe(false);
  // A Retry-After of a year costs an hour.
  state.failed({ kind: "rate-limited", status: 429, message: "", retryAfterSeconds: 3e7 }, 70_000);
  expect(state.rests(70_000 + 3_600_001)).toBe(false);
});
