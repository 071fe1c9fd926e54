import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { dailyPart, times } from "../support/runs.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { expectDone } from "./cells.ts";
import { problemOf } from "./clients/client.ts";
import type { SessionClient } from "./clients/client.ts";
import { rawChat } from "./clients/raw-chat.ts";
import { rawMessages } from "./clients/raw-messages.ts";
import { rawOllama } from "./clients/raw-ollama.ts";
import { rawResponses } from "./clients/raw-responses.ts";
import type { Double, Json } from "../doubles/chat-server.ts";
import { userText } from "../doubles/task.ts";
import { startAnthropicSession } from "../doubles/sessions.ts";
import { knownFailures } from "./known-failures.ts";
import type { Outcome } from "./session.ts";
import { serveConfig, sources, upstreamEntry } from "./sources.ts";
import type { Source } from "./sources.ts";

/*
 * Sessions in which Truewire itself changes something between two requests: the server, the URL, the process. Before, each of these was tested
 * with answers that have no state, so nobody saw that a fallback never answers a session that thinks.
 */

const clients: readonly SessionClient[] = [
  rawChat("everything"),
  rawChat("nothing"),
  rawResponses("include"),
  rawResponses("previous_response_id"),
  rawMessages("everything"),
  rawOllama("everything"),
];

function sourceNamed(name: string): Source {
  const source = sources.find((each) => each.name === name);
  if (!source) throw new Error(`no source ${name}`);
  return source;
}

async function started(name: string): Promise<Double> {
  const double = await sourceNamed(name).start();
  closeAfterTest(() => double.close());
  return double;
}

async function serving(config: Json): Promise<RunningTruewire> {
  const server = await serveConfig(config);
  closeAfterTest(() => server.stop("SIGKILL"));
  return server;
}

let named = 0;

/** A session whose turns a test runs one by one; each must be done. */
function sessionOf(client: SessionClient, model: string) {
  const name = `w${++named}`;
  let history: ReturnType<SessionClient["open"]> | undefined;
  return {
    /** `url`: of the instance of Truewire that gets the requests. */
    async turn(turn: number, url: string): Promise<void> {
      history ??= client.open(url);
      const result = await history.turn(model, userText(name, turn), url);
      expect(problemOf(name, turn, result)).toBeUndefined();
    },
  };
}

const thinking = [
  "Gemini 3",
  "OpenRouter, Claude",
  "DeepSeek",
  "LiteLLM, Claude",
  "Anthropic, account A",
  "OpenAI, account A",
];

/** Starts a double of each of these sources; the servers are their upstreams. */
async function startedThinking(): Promise<Json[]> {
  const doubles = await Promise.all(thinking.map(started));
  return thinking.map((name, at) => upstreamEntry(sourceNamed(name), doubles[at]?.url ?? ""));
}

/** A session of each client over each of these sources, by day over half of them. */
function everySession(modelsOf = (at: number): readonly string[] => dailyPart(thinking, 2, at)) {
  return clients.flatMap((client, at) =>
    modelsOf(at).map((model) => ({ name: `${client.name} | ${model}`, ...sessionOf(client, model) })),
  );
}

/** The sessions whose turn is not done, with the reason. */
async function failing(
  sessions: ReturnType<typeof everySession>,
  turn: number,
  urlOf: (at: number) => string,
): Promise<string[]> {
  const ends = await Promise.allSettled(sessions.map((session, at) => session.turn(turn, urlOf(at))));
  return ends.flatMap((end, at) =>
    end.status === "rejected" ? [`${sessions[at]?.name}, turn ${turn}: ${String(end.reason)}`] : [],
  );
}

test("a session goes on with a fallback when its server dies in the middle of a turn, and returns to it", async () => {
  const chain = ["OpenRouter, Gemini 3", "Anthropic, account A", "Gemini 3"];
  const doubles = await Promise.all(chain.map(started));
  const models = chain.map((name, at) => ({
    ...upstreamEntry(sourceNamed(name), doubles[at]?.url ?? ""),
    retries: 0,
    ...(at + 1 < chain.length && { fallbacks: [chain[at + 1]] }),
  }));
  const server = await serving({ models });
  const [first, second] = doubles;
  if (!first || !second) throw new Error("no doubles");
  const outcomes = new Map<string, Outcome>();
  for (const client of clients) {
    const session = sessionOf(client, chain[0] ?? "");
    let done = 0;
    const run = async (): Promise<void> => {
      await session.turn(++done, server.url);
      first.downAt = first.turns + 1;
      const before = second.turns;
      await session.turn(++done, server.url);
      await session.turn(++done, server.url);
      expect(second.turns).toBe(before + 5);
      first.downAt = Number.POSITIVE_INFINITY;
      await session.turn(++done, server.url);
    };
    const problem = await run().then(
      () => undefined,
      (error: unknown) => String(error),
    );
    first.downAt = Number.POSITIVE_INFINITY;
    const turnsDone = problem === undefined ? done : done - 1;
    outcomes.set(`${client.name} | fallback`, { turnsDone, turnsTried: 4, ...(problem !== undefined && { problem }) });
  }
  expectDone(outcomes, knownFailures);
});

test("two URLs of one model, whose accounts do not read each other's signatures", async () => {
  const doubles = await Promise.all(["one", "two"].map((account) => startAnthropicSession("sk-ant-A", account)));
  for (const double of doubles) closeAfterTest(() => double.close());
  const source = sourceNamed("Anthropic, account A");
  const urls = doubles.map(({ url }) => url);
  const server = await serving({ models: [upstreamEntry(source, urls)] });
  const sessions = clients.map((client) => sessionOf(client, source.name));
  for (let turn = 1; turn <= 4; turn++) await Promise.all(sessions.map((session) => session.turn(turn, server.url)));
  expect(doubles.flatMap((double) => double.refusals)).toEqual([]);
  expect(Math.min(...doubles.map((double) => double.turns))).toBeGreaterThan(0);
});

test("a restart between turns, with a folder as the store", async () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-session-store-"));
  closeAfterTest(() => rmSync(folder, { recursive: true, force: true }));
  const models = await startedThinking();
  const sessions = everySession();
  for (const turn of [1, 2, 3]) {
    const server = await serveConfig({ models, store: folder });
    try {
      expect(await failing(sessions, turn, () => server.url)).toEqual([]);
    } finally {
      await server.stop();
    }
  }
});

test("many turns", async () => {
  const models = await startedThinking();
  const server = await serving({ models });
  const sessions = everySession((at) => thinking.slice(at, at + 1));
  for (let turn = 1; turn <= times(12); turn++) expect(await failing(sessions, turn, () => server.url)).toEqual([]);
});

describe.skipIf(redisCommand() === undefined)("two instances with one Redis", () => {
  test("each turn by another instance than the turn before", async () => {
    const port = await freePort();
    const redis = await startRedis(port);
    closeAfterTest(() => void redis.kill("SIGKILL"));
    const models = await startedThinking();
    const instances = await Promise.all([0, 1].map(() => serving({ models, store: `redis://127.0.0.1:${port}` })));
    const sessions = everySession();
    for (let turn = 1; turn <= 4; turn++)
      expect(await failing(sessions, turn, (at) => instances[(at + turn) % 2]?.url ?? "")).toEqual([]);
  });
});
