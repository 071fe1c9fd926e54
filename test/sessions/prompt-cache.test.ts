import { existsSync, readFileSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { startGateway } from "../upstream/gateway.ts";
import type { Json } from "../../src/judge/between/facts.ts";
import type { PromptCharge } from "../../src/judge/between/prompt-cache.ts";
import { cachedShare, promptPrice, startAnthropic } from "../doubles/anthropic.ts";
import type { AnthropicDouble, AnthropicDoubleOptions } from "../doubles/anthropic.ts";
import { startChat } from "../doubles/chat-server.ts";
import { until } from "../support/scripted-engine.ts";

/*
 * What sessions of real clients cost over a server that charges as Anthropic does, and whether the beginning of each prompt stays the same.
 * Prints the shares: `npx vitest run --project blackbox test/sessions/prompt-cache.test.ts`.
 */

interface Captured {
  readonly url: string;
  readonly body: Json;
}

const folder = new URL("../../../shared/client-captures/", import.meta.url);

/** The requests of the longest session of a capture, with texts of the length that they had. Undefined where there is no capture. */
function sessionOf(name: string): Captured[] | undefined {
  const file = new URL(name, folder);
  if (!existsSync(file)) {
    console.log(`skipped: no ../shared/client-captures/${name} to replay`);
    return undefined;
  }
  const all = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(restored(line)) as Captured)
    .filter(({ body }) => Array.isArray(body?.["input"] ?? body?.["messages"]));
  const sessions = new Map<string, Captured[]>();
  for (const one of all) {
    const begin = JSON.stringify(beginOf(one.body));
    sessions.set(begin, [...(sessions.get(begin) ?? []), one]);
  }
  return [...sessions.values()].toSorted((one, other) => other.length - one.length)[0];
}

/** Captures have the length of what was left out of long texts. */
function restored(line: string): string {
  return line.replace(/…<(\d{1,6}) characters>/g, (_, length: string) => "word ".repeat(Number(length) / 5));
}

/** What the requests of one session have in common. */
function beginOf(body: Json): unknown {
  const list = (body["input"] ?? body["messages"]) as Json[];
  return [body["instructions"], body["tools"], list[0]];
}

const running: { close(graceMs?: number): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const server of running.splice(0).reverse()) await server.close(0);
});

async function replay(
  session: readonly Captured[],
  automaticCache: boolean,
  options: Partial<AnthropicDoubleOptions> = {},
): Promise<AnthropicDouble> {
  const double = await startAnthropic({
    accounts: { "key-a": "a" },
    answer: () => ({ text: "Yes." }),
    ...options,
  });
  running.push(double);
  const gateway: TruewireServer = await startGateway(double.url, {
    api: "messages",
    key: "key-a",
    models: { m: "claude-opus-4-6" },
    ...(automaticCache ? {} : { requests: { automaticCache: false } }),
  });
  running.push(gateway);
  for (const { url, body } of session) {
    const response = await fetch(`${gateway.url}${url}`, {
      method: "POST",
      headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
      body: JSON.stringify({ ...body, model: "m" }),
    });
    expect(await response.text()).toMatch(/"(?:end_turn|stop|completed)"/);
    expect(response.status).toBe(200);
  }
  return double;
}

/** The share of each text's characters that begins with the text before it, over all texts. */
function prefixShare(texts: readonly string[]): number {
  let same = 0;
  let all = 0;
  for (const [at, text] of texts.slice(1).entries()) {
    const before = texts[at] ?? "";
    let length = 0;
    while (length < before.length && before[length] === text[length]) length++;
    same += length;
    all += before.length;
  }
  return all === 0 ? 1 : same / all;
}

/** The part of a body that is the prompt, in the order in which it is cached. */
function promptText({ tools, system, instructions, messages, input }: Json): string {
  const list = JSON.stringify(messages ?? input ?? []);
  return JSON.stringify([tools, system ?? instructions]) + list.slice(0, -1);
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

function report(name: string, usages: readonly PromptCharge[]): void {
  const tokens = usages.reduce((sum, { total }) => sum + total, 0);
  const price = promptPrice(usages);
  console.log(
    `${name}: ${usages.length} requests, ${tokens} tokens, ${percent(cachedShare(usages))} from the cache, ${percent(price / tokens)} of the full price`,
  );
}

const codex = sessionOf("codex-0.171.0.jsonl");
const qwen = sessionOf("qwen-code-0.24.4.jsonl");
const claude = sessionOf("claude-code-2.1.332.jsonl");

describe("a session over a server that charges as Anthropic does", () => {
  test.skipIf(!codex).each([
    ["Codex", codex, 0.9],
    // It changed its first message once.
    ["Qwen Code", qwen, 0.7],
  ] as const)("%s is cached by the automatic mark", async (name, session = [], share) => {
    const without = await replay(session, false);
    const marked = await replay(session, true);
    report(`${name} without the mark`, without.usages);
    report(`${name} with the mark`, marked.usages);
    expect(without.refusals).toEqual([]);
    expect(marked.refusals).toEqual([]);
    expect(cachedShare(without.usages)).toBe(0);
    // All but the first prompt, and what each later one adds.
    expect(cachedShare(marked.usages.slice(1))).toBeGreaterThan(share);
    expect(promptPrice(marked.usages)).toBeLessThan(promptPrice(without.usages) / 2);
  });

  test.skipIf(!claude)("Claude Code's own marks are left as they are", async () => {
    // Its thinking is of another server, so that the first request with it is refused, and sent again without it.
    const { usages, requests } = await replay(claude ?? [], true);
    report("Claude Code", usages);
    for (const body of requests) expect(body).not.toHaveProperty("cache_control");
    expect(cachedShare(usages.slice(1))).toBeGreaterThan(0.8);
  });
});

describe("the beginning of a prompt", () => {
  test.skipIf(!codex || !qwen || !claude).each([
    ["Codex", codex],
    ["Qwen Code", qwen],
    ["Claude Code", claude],
  ])("of %s stays at least as long as the client's own, over Messages and chat", async (name, session = []) => {
    const own = prefixShare(session.map(({ body }) => promptText(body)));
    const { requests } = await replay(session, true);
    const share = prefixShare(requests.map(promptText));
    console.log(
      `${name}: ${percent(own)} of a prompt is the beginning of the next one, ${percent(share)} over Messages`,
    );
    expect(share).toBeGreaterThanOrEqual(own - 0.001);
    for (const requestsOf of [{}, { cacheMarks: true }]) {
      const chat = await startChat({}, "Yes.");
      running.push(chat);
      const gateway = await startGateway(chat.url, { requests: requestsOf });
      running.push(gateway);
      for (const { url, body } of session) {
        const response = await fetch(`${gateway.url}${url}`, {
          method: "POST",
          headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
          body: JSON.stringify({ ...body, model: "m" }),
        });
        expect(await response.text()).toContain("Yes.");
      }
      expect(prefixShare(chat.requests.map(promptText))).toBeGreaterThanOrEqual(own - 0.001);
    }
  });
});

describe("a platform without automatic caching", () => {
  // Amazon Bedrock and Vertex AI refuse the mark of a request.
  test("teaches that with its first refusal", async () => {
    const double = await startAnthropic({
      accounts: { "key-a": "a" },
      answer: () => ({ text: "Yes." }),
      refusedMembers: ["cache_control"],
    });
    running.push(double);
    const gateway = await startGateway(double.url, { api: "messages", key: "key-a", models: { m: "claude-opus-4-6" } });
    running.push(gateway);
    const ask = async () => {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }] }),
      });
      return response.status;
    };
    expect(await ask()).toBe(200);
    await until(() => double.requests.length === 1, "the request is accepted");
    expect(await ask()).toBe(200);
    expect(double.refusals).toEqual(["cache_control: Extra inputs are not permitted"]);
    expect(double.requests).toHaveLength(2);
  });
});
