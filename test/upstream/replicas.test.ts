import { expect, test } from "vitest";
import { startCachingServer } from "../support/caching-server.ts";
import type { CachingServer } from "../support/caching-server.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { ask, startGateway } from "./gateway.ts";
import { openTransport } from "../../src/engines/upstream/undici-transport.ts";
import { openUpstreamEngine } from "../../src/engines/upstream/upstream-engine.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { until } from "../support/scripted-engine.ts";

async function replicas(count: number): Promise<CachingServer[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => startCachingServer()));
  closeAfterTest(() => Promise.all(servers.map((server) => server.close())));
  return servers;
}

async function gateway(servers: readonly CachingServer[], balance?: "prefix" | "least-busy") {
  const started = await startGateway(
    servers.map(({ url }) => url),
    { models: { m: "m" }, retries: 3, ...(balance && { balance }) },
  );
  closeAfterTest(() => started.close(0));
  return started;
}

const words = (name: string): string => Array.from({ length: 200 }, (_, at) => `${name}${at}`).join(" ");

interface Turn {
  readonly role: string;
  readonly content: string;
}

/** Asks the next question of each conversation, in turn. */
async function talk(truewire: Awaited<ReturnType<typeof gateway>>, conversations: Turn[][]): Promise<void> {
  for (const messages of conversations) {
    const { status, text } = await ask(truewire, { messages });
    expect(status, text).toBe(200);
    const { choices } = JSON.parse(text) as { choices: { message: { content: string } }[] };
    messages.push(
      { role: "assistant", content: choices[0]?.message.content ?? "" },
      { role: "user", content: "Go on." },
    );
  }
}

const newConversations = (count: number): Turn[][] =>
  Array.from({ length: count }, (_, at) => [
    { role: "system", content: words("rule") },
    { role: "user", content: words(`c${at}-`) },
  ]);

const cachedShare = (servers: readonly CachingServer[]): number => {
  const answered = servers.flatMap(({ answered }) => answered);
  const sum = (member: "promptTokens" | "cachedTokens"): number => answered.reduce((all, one) => all + one[member], 0);
  return sum("cachedTokens") / sum("promptTokens");
};

test("with balance: prefix, each turn of a conversation finds its prompt in the cache", async () => {
  const servers = await replicas(4);
  const truewire = await gateway(servers, "prefix");
  const conversations = newConversations(7);
  await talk(truewire, conversations);
  const first = servers.map(({ answered }) => answered.length);
  for (let turn = 0; turn < 3; turn++) await talk(truewire, conversations);
  expect(servers.map(({ answered }) => answered.length)).toEqual(first.map((count) => count * 4));
  for (const { answered } of servers) {
    for (const { promptTokens, cachedTokens } of answered.slice(answered.length / 4))
      expect(promptTokens - cachedTokens).toBeLessThan(20);
  }
  // The same conversations without it go from URL to URL.
  const others = await replicas(4);
  const plain = await gateway(others);
  const again = newConversations(7);
  for (let turn = 0; turn < 4; turn++) await talk(plain, again);
  expect(cachedShare(others)).toBeLessThan(cachedShare(servers) - 0.2);
});

test("a conversation moves when its URL is out of service, and back when the URL returns", async () => {
  const servers = await replicas(3);
  const truewire = await gateway(servers, "prefix");
  const conversation = newConversations(1);
  await talk(truewire, conversation);
  const home = servers.find(({ answered }) => answered.length === 1);
  if (!home) throw new Error("no server was asked");
  home.broken = true;
  // Three failures in a row put it out of service; each request is answered elsewhere.
  for (let turn = 0; turn < 4; turn++) await talk(truewire, conversation);
  expect(home.answered).toHaveLength(1);
  const away = servers.filter(({ answered }) => answered.length === 4);
  expect(away).toHaveLength(1);
  home.broken = false;
  await until(async () => {
    const text = await (await fetch(`${truewire.url}/health`)).text();
    return text.includes('"targetsInService":3');
  }, "the URL is in service again");
  await talk(truewire, conversation);
  expect(home.answered).toHaveLength(2);
});

// Processes have no state in common: each computes the URL.
test("several processes choose the same URL", async () => {
  const servers = await replicas(4);
  const engines = await Promise.all(
    [1, 2, 3].map(() =>
      openUpstreamEngine(
        { urls: servers.map(({ url }) => url), name: "up", models: { m: "m" }, balance: "prefix" },
        openTransport,
      ),
    ),
  );
  closeAfterTest(() => Promise.all(engines.map((engine) => engine.close(0))));
  for (let at = 0; at < 12; at++) {
    const before = servers.map(({ answered }) => answered.length);
    const request: GenerationRequest = {
      id: `req-${at}`,
      model: "m",
      prompt: { kind: "chat", messages: [{ role: "user", content: `Question ${at}` }], template: {} },
      sampling: {},
      limits: {},
      wantsUsage: true,
      stream: false,
      extra: {},
    };
    for (const engine of engines) for await (const batch of engine.generate(request)) expect(batch).not.toEqual([]);
    const more = servers.map(({ answered }, index) => answered.length - (before[index] ?? 0));
    expect(more.toSorted()).toEqual([0, 0, 0, 3]);
  }
});
