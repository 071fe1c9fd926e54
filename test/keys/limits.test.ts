import { describe, expect, test } from "vitest";
import type { KeyEntry } from "../../src/serve/config/keys-schema.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { answer, asked, done, failed, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { chat, json, serving, transports } from "../support/transports.ts";
import { keyOf, withKey } from "./support.ts";

const messages = { model: "scripted", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };

/** Every way to ask for an answer. */
const asking: readonly (readonly [path: string, init: RequestInit])[] = [
  ["/v1/chat/completions", chat("Hello")],
  ["/v1/chat/completions", chat("Hello", { stream: true })],
  ["/v1/completions", json({ model: "scripted", prompt: "Hello" })],
  ["/v1/responses", json({ model: "scripted", input: "Hello" })],
  ["/v1/responses", json({ model: "scripted", input: "Hello", background: true })],
  ["/v1/messages", json(messages)],
];

/** An engine that says hello, waits where it is told to, fails where it is told to, counts, embeds and ranks. */
class Speaker extends ScriptedEngine {
  #go: () => void = () => {};
  readonly #waiting = new Promise<void>((resolve) => (this.#go = resolve));

  constructor() {
    super(async function* (this: void, request, signal) {
      const what = asked(request);
      if (what === "fail") yield [failed("upstream-error", { status: 502 })];
      else if (what.startsWith("wait")) {
        const prompt: GenerationEvent = { type: "usage", usage: { promptTokens: 7, completionTokens: 0 } };
        const said: GenerationEvent = { type: "text-delta", choice: 0, text: "x".repeat(400) };
        if (what === "wait: told") yield [{ type: "start", choice: 0 }, prompt, said];
        else yield [{ type: "start", choice: 0 }, said];
        await Promise.race([gate.open, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
        yield [{ type: "finish", choice: 0, reason: "stop" }, done];
      } else {
        const source = { headers: { "x-ratelimit-limit-requests": "of the source" } };
        yield [{ type: "start", choice: 0, source }];
        yield* answer(["Hi"], { usage: { promptTokens: 10, completionTokens: 20 } });
      }
    });
    const gate = { open: this.#waiting };
  }

  goOn(): void {
    this.#go();
  }

  override readonly handlers = {
    "count-tokens": async () => 5,
    rerank: async () => ({ scores: [0.5], promptTokens: 12 }),
    embed: async () => ({ vectors: [[1]], promptTokens: 30 }),
  };
}

describe.each(transports)("limits through $name", ({ open }) => {
  async function opened(limits: Partial<KeyEntry>, config: TruewireConfig = {}) {
    const engine = new Speaker();
    const { key, entry } = keyOf("alice", limits);
    const other = keyOf("bob");
    const api = await open(serving(engine, { keys: [entry, other.entry], ...config }));
    const ask = (path: string, init: RequestInit, more: RequestInit = {}): Promise<Response> =>
      api.fetch(path, withKey(key, { ...init, ...more }));
    return { api, engine, ask, other: other.key };
  }

  test.each(asking)(
    "%s %#: is counted, told in headers, and refused in the words of its API before anything runs",
    async (path, init) => {
      const { api, engine, ask, other } = await opened({ requestsPerMinute: 2, tokensPerMinute: 1000 });
      const anthropic = path === "/v1/messages";
      for (const remaining of ["1", "0"]) {
        const response = await ask(path, init);
        expect(response.status).toBe(200);
        const { headers } = response;
        if (anthropic) {
          expect(headers.get("anthropic-ratelimit-requests-limit")).toBe("2");
          expect(headers.get("anthropic-ratelimit-requests-remaining")).toBe(remaining);
          expect(headers.get("anthropic-ratelimit-requests-reset")).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
          expect(headers.get("anthropic-ratelimit-tokens-limit")).toBe("1000");
          expect(headers.get("x-ratelimit-limit-requests")).toBeNull();
        } else {
          // Not the source's, which are for the server.
          expect(headers.get("x-ratelimit-limit-requests")).toBe("2");
          expect(headers.get("x-ratelimit-remaining-requests")).toBe(remaining);
          expect(headers.get("x-ratelimit-reset-requests")).toMatch(/^([1-5]?\d(\.\d+)?|1m0)s$/);
          expect(Number(headers.get("x-ratelimit-remaining-tokens"))).toBeGreaterThan(700);
        }
        await response.text();
      }
      const before = engine.requests.length;
      const refused = await ask(path, init);
      expect(refused.status).toBe(429);
      expect(engine.requests.length).toBe(before);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(20);
      const message =
        /^Rate limit reached for the key 'alice' on requests per min \(RPM\): Limit 2, Used 2, Requested 1\. Please try again in (\d+(\.\d+)?)s\.$/;
      const error = {
        message: expect.stringMatching(message) as string,
        type: "requests",
        param: null,
        code: "rate_limit_exceeded",
      };
      expect(await refused.json()).toMatchObject(
        anthropic
          ? { type: "error", error: { type: "rate_limit_error", message: expect.stringMatching(message) as string } }
          : { error },
      );
      expect((await api.fetch(path, withKey(other, init))).status).toBe(200);
      await api.close();
    },
  );

  /** The tokens that are counted for today, as the refusal of a large request tells them. */
  const used = async (ask: (path: string, init: RequestInit) => Promise<Response>): Promise<number> => {
    const refused = await ask("/v1/chat/completions", chat("x".repeat(7000)));
    const { error } = (await refused.json()) as { error: { message: string; code: string; type: string } };
    expect([refused.status, error.code, error.type]).toEqual([429, "insufficient_quota", "insufficient_quota"]);
    return Number(/Used (\d+)/.exec(error.message)?.[1]);
  };

  test("tokens: what the prompt is estimated to have is taken at once, what it cost is counted at the end", async () => {
    const { api, engine, ask } = await opened({ tokensPerDay: 1700 });
    const answered = async (path: string, init: RequestInit): Promise<void> => {
      await (await ask(path, init)).text();
      await until(() => engine.running === 0, "it is over");
    };
    expect(await used(ask)).toBe(0);
    await answered("/v1/chat/completions", chat("Hello"));
    expect(await used(ask)).toBe(30);
    await answered("/v1/chat/completions", chat("fail"));
    await answered("/v1/messages/count_tokens", json(messages));
    await answered("/v1/responses/input_tokens", json({ model: "scripted", input: "Hello" }));
    expect(await used(ask)).toBe(30);
    await answered("/v1/embeddings", json({ model: "scripted", input: "Hello" }));
    expect(await used(ask)).toBe(60);
    await answered("/v1/rerank", json({ model: "scripted", query: "Hello", documents: ["Hi"] }));
    expect(await used(ask)).toBe(72);
    const waiting = await ask("/v1/chat/completions", chat(`wait${"x".repeat(1589)}`, { stream: true }));
    // The prompt's 402 tokens, and a tenth of the limit for an answer without `max_tokens`.
    expect(await used(ask)).toBe(472 + 170);
    engine.goOn();
    await waiting.text();
    await until(async () => (await used(ask)) === 572, "what it said is counted, too");
    await api.close();
  });

  // What answers would cost was counted when they ended: 200 requests at once with `max_tokens: 400` passed a limit of 1,000 by 79,000.
  test.each([
    ["tokensPerDay", { tokensPerDay: 1000 }],
    ["tokensPerMinute", { tokensPerMinute: 1000 }],
  ])("200 requests at once that may cost 490 tokens each: two pass %s of 1,000", async (_, limits) => {
    const { api, engine, ask } = await opened(limits);
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => ask("/v1/chat/completions", chat("wait", { stream: true, max_tokens: 490 }))),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(198);
    const running = answers.filter(({ status }) => status === 200);
    engine.goOn();
    await Promise.all(running.map((response) => response.text()));
    // Each has cost 101 tokens, and reserves nothing any more.
    const next = (): Promise<Response> =>
      ask("/v1/chat/completions", chat("Hello", { max_completion_tokens: 780, max_tokens: undefined }));
    await until(async () => (await next()).status === 200, "what was not used is given back");
    await api.close();
  });

  test.each([
    ["/v1/chat/completions", chat("Hello", { n: 3, max_tokens: 400 }), 1201],
    ["/v1/completions", json({ model: "scripted", prompt: ["a", "b"], best_of: 3, n: 1, max_tokens: 200 }), 1202],
    ["/v1/responses", json({ model: "scripted", input: "Hello", max_output_tokens: 1200 }), 1202],
    ["/v1/messages", json({ ...messages, max_tokens: 1200 }), 1202],
  ])("%s: a request that may cost more than its limit is told so", async (path, init, asked) => {
    const { api, ask } = await opened({ tokensPerDay: 1000 });
    const refused = await ask(path, init);
    const { error } = (await refused.json()) as { error: { message: string } };
    expect(refused.status).toBe(429);
    const requested = Number(
      /Limit 1000, Used 0, Requested (\d+)\. The request must be smaller/.exec(error.message)?.[1],
    );
    expect(Math.abs(requested - asked)).toBeLessThan(5);
    await api.close();
  });

  test("a key may say what an answer without max_tokens reserves", async () => {
    const { api, ask } = await opened({ tokensPerMinute: 1000, answerTokens: 400 });
    const response = await ask("/v1/chat/completions", chat("wait", { stream: true }));
    const remaining = Number(response.headers.get("x-ratelimit-remaining-tokens"));
    expect(remaining).toBeGreaterThanOrEqual(597);
    expect(remaining).toBeLessThan(600);
    expect((await ask("/v1/chat/completions", chat("wait", { stream: true }))).status).toBe(200);
    expect((await ask("/v1/chat/completions", chat("wait", { stream: true }))).status).toBe(429);
    await api.close();
  });

  test("a request that is larger than a minute's tokens is told so, and that it need not come again", async () => {
    const { api, ask } = await opened({ tokensPerMinute: 1000 });
    const tooLarge = await ask("/v1/chat/completions", chat("x".repeat(8000)));
    expect([tooLarge.status, tooLarge.headers.get("x-should-retry"), tooLarge.headers.get("retry-after")]).toEqual([
      429,
      "false",
      null,
    ]);
    expect(await tooLarge.json()).toMatchObject({
      error: {
        message: expect.stringMatching(/^Request too large for the key 'alice' on tokens per min/) as string,
        type: "tokens",
      },
    });
    await api.close();
  });

  test.each([
    // The prompt's 7 as told, or 5 as estimated; and a token for each four characters that came.
    ["wait: told", 107],
    ["wait: untold", 105],
  ])("a client that leaves pays for what was said until then (%s)", async (what, cost) => {
    const { api, engine, ask } = await opened({ tokensPerDay: 2000 }, { keepAlive: "20ms" });
    for (let i = 0; i < 3; i++) {
      const leaving = new AbortController();
      const response = await ask("/v1/chat/completions", chat(what, { stream: true }), { signal: leaving.signal });
      const reader = response.body?.getReader();
      await reader?.read();
      leaving.abort();
      await until(() => engine.running === 0, "it is over");
    }
    expect(await used(ask)).toBe(3 * cost);
    await api.close();
  });

  test("a budget that is spent is told as a quota, with the time until it is there again", async () => {
    const { api, ask } = await opened({ tokensPerDay: 40 });
    await (await ask("/v1/chat/completions", chat("Hello"))).text();
    await until(async () => (await ask("/v1/chat/completions", chat("Hello"))).status === 429, "it is spent");
    const before = Date.now();
    const refused = await ask("/v1/chat/completions", chat("Hello"));
    const after = Date.now();
    expect(refused.headers.get("x-should-retry")).toBe("false");
    const ms = Number(refused.headers.get("retry-after")) * 1000;
    const midnight = (Math.floor(before / 86_400_000) + 1) * 86_400_000;
    expect(before + ms).toBeLessThanOrEqual(midnight + 1000);
    expect(after + ms).toBeGreaterThanOrEqual(midnight);
    const told = (await (await ask("/v1/messages", json(messages))).json()) as object;
    expect(told).toMatchObject({
      error: {
        type: "rate_limit_error",
        message: expect.stringContaining("tokens per day of the key 'alice'") as string,
      },
    });
    // Requests that cost no tokens go on.
    expect((await ask("/v1/messages/count_tokens", json(messages))).status).toBe(200);
    await api.close();
  });

  test("no more requests at once than it may have, and one that has ended, or whose client left, makes room", async () => {
    const { api, engine, ask } = await opened({ concurrency: 2 }, { keepAlive: "20ms" });
    const leaving = new AbortController();
    const streams = [
      await ask("/v1/chat/completions", chat("wait", { stream: true })),
      await ask("/v1/chat/completions", chat("wait", { stream: true }), { signal: leaving.signal }),
    ];
    const refused = await ask("/v1/chat/completions", chat("Hello"));
    expect([refused.status, await refused.json()]).toMatchObject([
      429,
      { error: { message: expect.stringContaining("concurrent requests: Limit 2, Open 2, Requested 1.") as string } },
    ]);
    const second = streams[1]?.body?.getReader();
    await second?.read();
    leaving.abort();
    await until(async () => (await ask("/v1/chat/completions", chat("Hello"))).status === 200, "there is room again");
    engine.goOn();
    await streams[0]?.text();
    const both = await Promise.all([1, 2].map(() => ask("/v1/chat/completions", chat("Hello"))));
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    await api.close();
  });

  test("pages may read the headers", async () => {
    const { api, ask } = await opened({ requestsPerMinute: 5 }, { corsOrigin: "https://app.example.com" });
    const init = chat("Hello");
    const response = await ask("/v1/chat/completions", {
      ...init,
      headers: { ...(init.headers as Record<string, string>), origin: "https://app.example.com" },
    });
    expect(response.headers.get("access-control-expose-headers")).toContain("x-ratelimit-remaining-requests");
    await api.close();
  });
});
