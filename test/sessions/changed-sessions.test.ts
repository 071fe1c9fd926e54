import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { smallestPrefix } from "./cells.ts";
import { post, problemOf } from "./clients/client.ts";
import type { ClientSession, NextRequest, SessionClient } from "./clients/client.ts";
import { rawChat } from "./clients/raw-chat.ts";
import { rawMessages } from "./clients/raw-messages.ts";
import { rawResponses } from "./clients/raw-responses.ts";
import { listOf, objectOf } from "../doubles/chat-server.ts";
import type { Double, Json } from "../doubles/chat-server.ts";
import { userText } from "../doubles/task.ts";
import { changingSources } from "./known-failures.ts";
import { dailyPart } from "../support/runs.ts";
import { serveSources, sources } from "./sources.ts";
import type { Running } from "./sources.ts";

/*
 * Sessions whose clients change what was said: they compact it, cut it, ask again, or write it in another form. Every other test has clients
 * that only add to their history, so nobody saw what becomes of states whose place is another one than that where they were made.
 */

const clients: readonly SessionClient[] = [
  rawChat("everything"),
  rawChat("nothing"),
  rawResponses("include"),
  rawResponses("nothing"),
  rawMessages("everything"),
  rawMessages("nothing"),
];

const chosen = sources.filter(({ name }) =>
  ["Gemini 3", "Anthropic, account A", "OpenAI, account A", "DeepSeek"].includes(name),
);

let running: Running;
beforeAll(async () => {
  running = await serveSources(chosen);
});
afterAll(() => running.close());

type Change = NonNullable<ClientSession["before"]>;

let sessions = 0;

/** A session over a source. */
class ChangedSession {
  readonly name = `changed${++sessions}`;
  readonly #session: ClientSession;

  constructor(client: SessionClient) {
    this.#session = client.open(running.server.url);
  }

  /** Runs a turn, which must be done. */
  async turn(turn: number, source: string, before?: Change): Promise<void> {
    if (before) this.#session.before = before;
    else delete this.#session.before;
    const result = await this.#session.turn(source, userText(this.name, turn));
    expect(problemOf(this.name, turn, result)).toBeUndefined();
  }

  prompts(source: string): readonly string[] {
    return doubleOf(source).prompts.get(this.name) ?? [];
  }
}

function doubleOf(source: string): Double {
  const double = running.doubles.get(source);
  if (!double) throw new Error(`no double of ${source}`);
  return double;
}

/** What became of sessions: those that were not done, and what the doubles refused, by source. */
interface Ends {
  readonly failed: readonly string[];
  readonly refusals: Readonly<Record<string, readonly string[]>>;
}

let rounds = 0;

/** Runs a session of each client over each of the sources, by day of half of the clients for each, all at the same time. */
async function everySession(
  run: (session: ChangedSession, source: string) => Promise<void>,
  names: readonly string[] = chosen.map(({ name }) => name),
): Promise<Ends> {
  const before = names.map((name) => doubleOf(name).refusals.length);
  // The next test has the other half.
  const round = rounds++;
  const runs = names.flatMap((source, at) =>
    (names.length === 1 ? clients : dailyPart(clients, 2, at + round)).map(async (client) => {
      try {
        await run(new ChangedSession(client), source);
        return [];
      } catch (error) {
        return [`${client.name} | ${source}: ${String(error)}`];
      }
    }),
  );
  const failed = (await Promise.all(runs)).flat();
  const refusals = names.map((name, at) => [name, doubleOf(name).refusals.slice(before[at])] as const);
  return { failed, refusals: Object.fromEntries(refusals.filter(([, words]) => words.length > 0)) };
}

const allDone: Ends = { failed: [], refusals: {} };

const isUser = ({ role, content }: Json): boolean =>
  role === "user" && JSON.stringify(content).includes("go on with the house");

/** The place of the user's last text. */
const lastText = (history: readonly Json[]): number => history.findLastIndex(isUser);

const isSystem = ({ role }: Json): boolean => role === "system";

describe("the history is compacted", () => {
  const compact =
    (at: number, place: (history: readonly Json[]) => number): Change =>
    ({ history, step }) => {
      if (step !== at) return;
      const start = history.findIndex((message) => !isSystem(message));
      history.splice(start, place(history) - start, { role: "user", content: "So far: the house has doors." });
    };

  test.each([
    ["between two turns", 0],
    ["in the middle of a turn", 2],
  ])("%s", async (_, step) => {
    const run = async (session: ChangedSession, source: string): Promise<void> => {
      await session.turn(1, source);
      await session.turn(3, source, compact(step, lastText));
      await session.turn(4, source);
    };
    expect(await everySession(run)).toEqual(allDone);
  });
});

describe("the history is cut at its front", () => {
  /** Cuts all before the place. */
  const cut =
    (at: number, place: (history: readonly Json[]) => number): Change =>
    ({ history, step }) => {
      if (step !== at) return;
      const start = history.findIndex((message) => !isSystem(message));
      history.splice(start, place(history) - start);
    };

  test.each([
    ["before a turn", 0],
    ["in the middle of a turn", 2],
  ])("%s", async (_, step) => {
    const run = async (session: ChangedSession, source: string): Promise<void> => {
      await session.turn(2, source);
      await session.turn(3, source, cut(step, lastText));
    };
    expect(await everySession(run)).toEqual(allDone);
  });

  test("so that it begins with an answer", async () => {
    const run = async (session: ChangedSession, source: string): Promise<void> => {
      for (const turn of [1, 2]) await session.turn(turn, source);
      await session.turn(
        3,
        source,
        cut(0, (history) => history.findIndex(isUser) + 1),
      );
    };
    expect(await everySession(run)).toEqual(allDone);
  });

  // The servers refuse it in a request of their own API, too. A Messages client's result becomes a text for another API.
  test.each([
    ["Anthropic, account A", "unexpected `tool_use_id` found in `tool_result` blocks", clients],
    [
      "OpenAI, account A",
      "No tool call found for function call output",
      clients.filter(({ name }) => !name.startsWith("Messages")),
    ],
  ] as const)("so that it begins with a result whose call is missing: %s says so", async (source, words, told) => {
    const isResult = ({ role, type, content }: Json): boolean =>
      role === "tool" || type === "function_call_output" || listOf(content)[0]?.["type"] === "tool_result";
    const run = async (session: ChangedSession): Promise<void> => {
      await session.turn(2, source);
      await session.turn(
        3,
        source,
        cut(0, (history) => history.findIndex(isResult)),
      );
    };
    const { failed, refusals } = await everySession(run, [source]);
    expect(failed.map((text) => text.split(": ")[0])).toEqual(told.map(({ name }) => `${name} | ${source}`));
    for (const text of failed) expect(text).toContain(words);
    // Each is asked for once: no state is the reason.
    expect(refusals[source]).toHaveLength(told.length);
  });
});

/** Sends the request, and hangs up after the first bytes of the answer. */
async function cancel({ request }: NextRequest): Promise<void> {
  const [url, body, headers] = request();
  const hangUp = new AbortController();
  const response = await post(url, { ...body, stream: true }, headers, hangUp.signal);
  await response.body?.getReader().read();
  hangUp.abort();
}

test("an answer is cancelled and asked for again, at each step", async () => {
  const run = async (session: ChangedSession, source: string): Promise<void> => {
    await session.turn(1, source, cancel);
    await session.turn(2, source, cancel);
    if (!(source in changingSources)) expect(smallestPrefix(session.prompts(source))).toBeGreaterThan(0.9);
  };
  expect(await everySession(run)).toEqual(allDone);
});

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** The message or item with an image beside the text of its result. */
function withImage(message: Json): Json {
  const url = `data:image/png;base64,${png}`;
  if (message["role"] === "tool")
    return {
      ...message,
      content: [
        { type: "text", text: message["content"] },
        { type: "image_url", image_url: { url } },
      ],
    };
  if (message["type"] === "function_call_output")
    return {
      ...message,
      output: [
        { type: "input_text", text: message["output"] },
        { type: "input_image", image_url: url, detail: "auto" },
      ],
    };
  const source = { type: "base64", media_type: "image/png", data: png };
  const content = listOf(message["content"]).map((block) =>
    block["type"] === "tool_result"
      ? {
          ...block,
          content: [
            { type: "text", text: block["content"] },
            { type: "image", source },
          ],
        }
      : block,
  );
  return { ...message, content };
}

/** Those whose results may have images. */
const seeing = new Set(["Anthropic, account A", "OpenAI, account A"]);

test("a result has an image", async () => {
  const image: Change = ({ history, step }) => {
    if (step === 1) history.push(withImage(history.pop() ?? {}));
  };
  const run = async (session: ChangedSession, source: string): Promise<void> => {
    for (const turn of [1, 2]) await session.turn(turn, source, image);
    if (seeing.has(source)) expect(session.prompts(source).at(-1)).toContain(png);
    if (!(source in changingSources)) expect(smallestPrefix(session.prompts(source))).toBeGreaterThan(0.9);
  };
  expect(await everySession(run)).toEqual(allDone);
});

/** The value with the members of its objects in the reverse order, also in the arguments of calls. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [
    name,
    name === "arguments" ? JSON.stringify(reversed(JSON.parse(String(member))), null, 1) : reversed(member),
  ]);
  return Object.fromEntries(members.toReversed()) as unknown;
}

/** Replaces the history by what the function makes of it. */
function rewrite(change: (message: Json) => Json): Change {
  return ({ history }) => history.splice(0, history.length, ...history.map(change)) && undefined;
}

test("the client writes members in another order", async () => {
  const run = async (session: ChangedSession, source: string): Promise<void> => {
    for (const turn of [1, 2, 3])
      await session.turn(
        turn,
        source,
        rewrite((message) => objectOf(reversed(message))),
      );
  };
  expect(await everySession(run)).toEqual(allDone);
});

test("the client gives calls other ids", async () => {
  const changeId = (name: string, value: unknown): unknown =>
    name === "call_id" || name === "tool_call_id" || name === "tool_use_id" ? newId(value) : value;
  const newId = (id: unknown): string => (String(id).startsWith("own") ? String(id) : `own${String(id)}`);
  const changed = (message: Json): Json => {
    const json = JSON.parse(JSON.stringify(message, changeId)) as Json;
    const withIds = (call: Json): Json =>
      call["type"] === "tool_use" || call["function"] !== undefined ? { ...call, id: newId(call["id"]) } : call;
    return {
      ...json,
      ...(json["tool_calls"] !== undefined && { tool_calls: listOf(json["tool_calls"]).map(withIds) }),
      ...(Array.isArray(json["content"]) && { content: listOf(json["content"]).map(withIds) }),
    };
  };
  const run = async (session: ChangedSession, source: string): Promise<void> => {
    for (const turn of [1, 2]) await session.turn(turn, source, rewrite(changed));
  };
  const { failed, refusals } = await everySession(run);
  expect(failed).toEqual([]);
  // OpenAI's encrypted reasoning names its call: it is left out.
  const { "OpenAI, account A": ofOpenAi = [], ...others } = refusals;
  expect(others).toEqual({});
  for (const words of ofOpenAi) expect(words).toContain("without its required following item");
});

/** The prompts without the ids of items, which OpenAI's models do not see. */
function withoutIds(prompt: string): string {
  return JSON.stringify(JSON.parse(prompt), (name, value: unknown) => (name === "id" ? undefined : value));
}

test.each(chosen.map(({ name }) => name))(
  "a session that comes back from %s finds nine tenths of its prompt in the cache",
  async (to) => {
    const others = chosen.map(({ name }) => name).filter((name) => name !== to);
    const run = async (session: ChangedSession, from: string): Promise<void> => {
      await session.turn(1, from);
      const before = session.prompts(from).length;
      await session.turn(2, to);
      await session.turn(4, from);
      const prompts = session.prompts(from).slice(before - 1, before + 1);
      expect(prompts).toHaveLength(2);
      expect(smallestPrefix(prompts.map(withoutIds))).toBeGreaterThanOrEqual(0.9);
    };
    expect(await everySession(run, others)).toEqual(allDone);
  },
);
