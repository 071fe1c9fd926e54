import { afterAll, beforeAll, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { RequestSummary } from "../../src/judge/inspect/inspected-request.ts";
import { ScriptedEngine } from "../support/scripted-engine.ts";
import { json } from "../support/transports.ts";
import { listed } from "./support.ts";

const end: GenerationEvent = { type: "end", end: { kind: "done" } };
const usage: GenerationEvent = { type: "usage", usage: { promptTokens: 3, completionTokens: 5 } };

/** Calls the tool `look` where there are tools; else says "Hi". */
const engine = new ScriptedEngine(({ tools }) => {
  const said: GenerationEvent[] = tools
    ? [
        { type: "tool-call-start", choice: 0, index: 0, id: "call_1", name: "look" },
        { type: "tool-call-delta", choice: 0, index: 0, arguments: "{}" },
        { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
        { type: "finish", choice: 0, reason: "tool-calls" },
      ]
    : [
        { type: "text-delta", choice: 0, text: "Hi" },
        { type: "finish", choice: 0, reason: "stop" },
      ];
  return [[{ type: "start", choice: 0 }, ...said, usage, end]];
});

let server: TruewireServer;
beforeAll(async () => {
  server = await createServer({ port: 0, logLevel: "silent", models: [{ kind: "engine", engine }] });
});
afterAll(() => server.close(0));

/** Sends the requests in this order; returns their lines in the list. */
async function lines(
  ...bodies: readonly (readonly [path: string, body: object, headers?: object])[]
): Promise<RequestSummary[]> {
  const ids: string[] = [];
  for (const [path, body, headers = {}] of bodies) {
    const init = json({ model: "scripted", ...body });
    const response = await fetch(`${server.url}/v1/${path}`, { ...init, headers: { ...init.headers, ...headers } });
    expect(response.status, await response.text()).toBe(200);
    ids.push(response.headers.get("x-request-id") ?? "");
  }
  const { requests } = await listed(server.url);
  return ids.map((id) => requests.find((request) => request.id === id) ?? expect.fail(`${id} is not listed`));
}

const user = (content: unknown): object => ({ role: "user", content });
const assistant = (content: string): object => ({ role: "assistant", content });
const system = (content: string): object => ({ role: "system", content });

test("a line has the last text of the user, or the last result of a tool, and the tools that are called", async () => {
  const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
  const call = { id: "call_1", type: "function", function: { name: "look", arguments: "{}" } };
  const called = [user("Look!"), { role: "assistant", content: null, tool_calls: [call] }];
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  const [first, result, long, parts, text] = await lines(
    ["chat/completions", { messages: [system("Be brief."), user("  Look\n at   this!")], tools }],
    ["chat/completions", { messages: [...called, { role: "tool", tool_call_id: "call_1", content: "A fox." }] }],
    ["chat/completions", { messages: [user("x".repeat(10_000))] }],
    [
      "chat/completions",
      {
        messages: [
          user([
            { type: "text", text: "See." },
            image,
            { type: "text", text: "<system-reminder>No.</system-reminder>" },
          ]),
        ],
      },
    ],
    ["completions", { prompt: "Once upon a time" }],
  );
  expect(first).toMatchObject({ snippet: "Look at this!", snippet_of: "user", calls: ["look"], turn: 1 });
  expect(result).toMatchObject({ snippet: "A fox.", snippet_of: "tool" });
  expect(result?.calls).toBeUndefined();
  expect(long?.snippet).toBe(`${"x".repeat(160)}…`);
  expect(parts?.snippet).toBe("See.");
  expect(text).toMatchObject({ snippet: "Once upon a time", prompt_tokens: 3, completion_tokens: 5 });
});

test("messages that grow are one thread; the same question again, and another system prompt, are others", async () => {
  const begins = [system("You plan."), user("Plan a trip.")];
  const grows = [...begins, assistant("Where?"), user("To Lisbon.")];
  const found = await lines(
    ["chat/completions", { messages: begins }],
    ["chat/completions", { messages: begins }],
    ["chat/completions", { messages: [system("You draw."), user("Plan a trip.")] }],
    ["chat/completions", { messages: grows }],
    ["chat/completions", { messages: [...grows, assistant("When?"), user("In May.")] }],
    [
      "messages",
      { max_tokens: 9, system: "You draw.", messages: [user("Plan a trip."), assistant("I drew."), user("More.")] },
    ],
  );
  const [one, again, other, second, third, drawn] = found;
  expect(new Set([one?.thread, again?.thread, other?.thread]).size).toBe(3);
  // It continues both; the newest of the two is as good as the other.
  expect([one?.thread, again?.thread]).toContain(second?.thread);
  expect(third?.thread).toBe(second?.thread);
  expect([second?.turn, third?.turn]).toEqual([2, 3]);
  expect(drawn).toMatchObject({ thread: other?.thread, turn: 2 });
  const { requests } = await listed(server.url, `?thread=${second?.thread}`);
  expect(requests.map(({ turn }) => turn)).toEqual([1, 2, 3]);
});

test("the session of Claude Code and of Codex is one thread, whatever its messages", async () => {
  for (const header of ["x-claude-code-session-id", "session-id", "session_id"]) {
    const [one, two, foreign] = await lines(
      ["chat/completions", { messages: [user("Hello")] }, { [header]: `${header} A` }],
      ["chat/completions", { messages: [user("Something else")] }, { [header]: `${header} A` }],
      ["chat/completions", { messages: [user("Something else")] }, { [header]: `${header} B` }],
    );
    expect(two).toMatchObject({ thread: one?.id, turn: 2 });
    expect(foreign).toMatchObject({ thread: foreign?.id, turn: 1 });
  }
});

test("a response that continues another one is in its thread", async () => {
  const init = json({ model: "scripted", input: "First.", store: true });
  const first = (await (await fetch(`${server.url}/v1/responses`, init)).json()) as { id: string };
  const [next] = await lines(["responses", { input: "Second.", previous_response_id: first.id }]);
  expect(next).toMatchObject({ turn: 2, snippet: "Second." });
  const { requests } = await listed(server.url, `?thread=${next?.thread}`);
  expect(requests.map(({ snippet }) => snippet)).toEqual(["First.", "Second."]);
});

// An unknown filter was ignored: the answer was the whole list, as if everything matched.
test("unknown filters, and values that no request can have, are refused", async () => {
  const refusal = async (query: string): Promise<unknown> => {
    const response = await fetch(`${server.url}/admin/requests${query}`);
    return [response.status, ((await response.json()) as { error: object }).error];
  };
  const known =
    "The filters are model, engine, engine_model, api, key, thread, repair, repaired, cache_missed, status, since, after, before, min_ms, outcome.";
  expect(await refusal("?modle=x&model=x")).toEqual([
    400,
    {
      message: `Unknown filter: 'modle'. ${known}`,
      type: "invalid_request_error",
      param: "modle",
      code: "unknown_parameter",
    },
  ]);
  expect(await refusal("?a=1&__proto__=1")).toMatchObject([
    400,
    { message: `Unknown filters: 'a', '__proto__'. ${known}` },
  ]);
  expect(await refusal("?outcome=done")).toMatchObject([400, { param: "outcome" }]);
  expect(await refusal("?since=yesterday")).toMatchObject([400, { param: "since" }]);
  expect((await listed(server.url, "?status=404&api=chat")).requests).toEqual([]);
});
