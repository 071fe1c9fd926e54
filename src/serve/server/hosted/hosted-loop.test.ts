import { describe, expect, test } from "vitest";
import { accumulate } from "../../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../../wire/core/events.ts";
import type {
  HostedFunction,
  HostedResult,
  HostedTool,
  HostedToolExecutor,
  HostedToolKind,
} from "../../../wire/core/hosted-tool.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";
import { planHostedTools, runsHere } from "./hosted-calls.ts";
import type { HostedLimits } from "./hosted-calls.ts";
import { withHostedTools } from "./hosted-loop.ts";

/** What the model says in each round, as events of its answer. */
type Script = readonly (readonly GenerationEvent[])[];

const found: HostedResult = {
  kind: "search",
  results: [{ url: "https://a.example/", title: "A", text: "It rains.", age: "1 day ago" }],
};

function tool(kind: HostedToolKind = "web_search", more: Partial<HostedTool> = {}): HostedTool {
  return { type: kind, kind, name: kind, options: {}, path: "tools[0]", declaration: { type: kind }, ...more };
}

function executor(
  run: HostedToolExecutor["run"] = async () => found,
  more: Partial<HostedToolExecutor> = {},
): HostedToolExecutor {
  const functions: readonly HostedFunction[] = [{ name: "web_search", parameters: { type: "object" } }];
  const limits = { timeoutMs: 60_000, maxCalls: 20 };
  return { name: "web_search", kind: "web_search", ...limits, functions: async () => functions, run, ...more };
}

function request(more: Partial<GenerationRequest> = {}): GenerationRequest {
  return {
    id: "r",
    model: "m",
    prompt: { kind: "chat", messages: [{ role: "user", content: "Weather?" }], template: {} },
    sampling: {},
    limits: {},
    hostedTools: [tool()],
    wantsUsage: true,
    stream: true,
    extra: {},
    ...more,
  };
}

/** A call of the model, with the events of a function call. */
function call(id: string, name = "web_search", text = '{"query":"weather"}', index = 0): GenerationEvent[] {
  return [
    { type: "tool-call-start", choice: 0, index, id, name },
    { type: "tool-call-delta", choice: 0, index, arguments: text },
    { type: "tool-call-end", choice: 0, index, status: "succeeded" },
  ];
}

function says(text: string): GenerationEvent[] {
  return [{ type: "text-delta", choice: 0, text }];
}

const used: GenerationEvent = {
  type: "usage",
  usage: { promptTokens: 10, completionTokens: 5, promptDetails: { cached_tokens: 4 } },
};

async function run(
  script: Script,
  asked: GenerationRequest = request(),
  own: HostedToolExecutor = executor(),
  pauses = false,
  limits: Partial<HostedLimits> = {},
) {
  const requests: GenerationRequest[] = [];
  async function* source(round: GenerationRequest) {
    const events = script[requests.push(round) - 1] ?? says("end");
    const calls = events.some(({ type }) => type === "tool-call-start");
    yield [{ type: "start", choice: 0 } as const];
    for (const event of events) yield [event];
    yield [
      used,
      { type: "finish", choice: 0, reason: calls ? "tool-calls" : "stop" } as const,
      { type: "end", end: { kind: "done" } } as const,
    ];
  }
  const plan = planHostedTools(asked, { names: [own.name], find: ({ kind }) => (kind === own.kind ? own : undefined) });
  const events: GenerationEvent[] = [];
  if (!plan) throw new Error("nothing is planned");
  for await (const batch of withHostedTools(source, {
    ...plan,
    limits: { ...plan.limits, ...limits },
    pauses,
  })(asked))
    events.push(...batch);
  return { events, requests, types: events.map(({ type }) => type), generation: accumulate(events) };
}

describe("an answer with hosted calls", () => {
  test("has the call, its result, and the text that follows: one start, one finish, one end", async () => {
    const { types, requests, generation } = await run([[...says("Let me look. "), ...call("c1")], says("It rains.")]);
    expect(types).toEqual([
      "start",
      "text-delta",
      "hosted-call-start",
      "hosted-call-delta",
      "hosted-call-end",
      "usage",
      "hosted-result",
      "text-delta",
      "usage",
      "finish",
      "end",
    ]);
    expect(generation.choices[0]?.finish).toEqual({ reason: "stop" });
    expect(generation.choices[0]?.parts).toMatchObject([
      { type: "text", text: "Let me look. " },
      {
        type: "hosted-call",
        id: "c1",
        kind: "web_search",
        arguments: '{"query":"weather"}',
        result: { result: found },
      },
      { type: "hosted-result", id: "c1" },
      { type: "text", text: "It rains." },
    ]);
    expect(requests).toHaveLength(2);
  });

  test("each round only appends to the prompt, and offers the same functions", async () => {
    const { requests } = await run([call("c1"), call("c1"), says("So.")]);
    const [first, second, third] = requests.map(({ prompt, tools }) => ({ prompt, tools }));
    const messages = [first, second, third].map((one) => (one?.prompt.kind === "chat" ? one.prompt.messages : []));
    expect(messages[1]?.slice(0, 1)).toEqual(messages[0]);
    expect(messages[2]?.slice(0, 3)).toEqual(messages[1]);
    expect(messages[2]?.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "tool"]);
    // Two calls with the id of a server that gives the same one to the first call of every answer.
    expect(messages[2]?.map((one) => (one.role === "tool" ? one.toolCallId : ""))).toEqual(["", "", "c1", "", "c1_1"]);
    expect(first?.tools?.map(({ name }) => name)).toEqual(["web_search"]);
    expect(third?.tools).toEqual(first?.tools);
  });

  test("usage is the sum of the rounds", async () => {
    const { generation } = await run([call("c1"), says("So.")]);
    expect(generation.usage).toEqual({
      promptTokens: 20,
      completionTokens: 10,
      promptDetails: { cached_tokens: 8 },
    });
  });

  test("parallel calls run concurrently, and their results come in the order of the calls", async () => {
    const open: (() => void)[] = [];
    const own = executor(
      ({ arguments: { query } }) =>
        new Promise((resolve) => {
          open.push(() => resolve({ kind: "search", results: [{ url: "u", title: String(query), text: "" }] }));
          // The second call ends first.
          if (open.length === 2) for (const end of open.toReversed()) end();
        }),
    );
    const two = [...call("a", "web_search", '{"query":"a"}'), ...call("b", "web_search", '{"query":"b"}', 1)];
    const { events } = await run([two, says("So.")], request(), own);
    const results = events.flatMap((event) => (event.type === "hosted-result" ? [event] : []));
    expect(results).toMatchObject([
      { id: "a", result: { results: [{ title: "a" }] } },
      { id: "b", result: { results: [{ title: "b" }] } },
    ]);
  });

  test("hosted calls run, and then the client's calls of the same round end the answer", async () => {
    const tools = [{ name: "save" }];
    const round = [...call("a"), ...call("b", "save", "{}", 1)];
    const { requests, generation } = await run([round], request({ tools }));
    expect(requests).toHaveLength(1);
    const [choice] = generation.choices;
    expect(choice?.finish).toEqual({ reason: "tool-calls" });
    expect(choice?.toolCalls).toMatchObject([{ id: "b", name: "save" }]);
    expect(choice?.parts.map(({ type }) => type)).toEqual(["hosted-call", "tool-call", "hosted-result"]);
  });

  test("the client's calls of later rounds are numbered from 0", async () => {
    const { events } = await run([call("a"), call("b", "save", "{}")], request({ tools: [{ name: "save" }] }));
    const start = events.find(({ type }) => type === "tool-call-start");
    expect(start).toMatchObject({ index: 0, id: "b" });
  });

  test("a forced call is forced once", async () => {
    const { requests } = await run(
      [call("a"), says("So.")],
      request({ toolChoice: { type: "named", name: "web_search" } }),
    );
    expect(requests.map(({ toolChoice }) => toolChoice?.type)).toEqual(["named", "auto"]);
  });

  test("the tokens of the answer are limited as a whole", async () => {
    const { requests, generation } = await run(
      [call("a"), call("b"), says("So.")],
      request({ limits: { maxTokens: 10 } }),
    );
    expect(requests.map(({ limits }) => limits.maxTokens)).toEqual([10, 5]);
    expect(generation.choices[0]?.finish).toEqual({ reason: "length", limit: "max-tokens" });
  });

  test("the addresses of results that the model writes are annotations", async () => {
    const { events } = await run([call("a"), says("See [A](https://a.example/).")]);
    expect(events.find(({ type }) => type === "annotation")).toMatchObject({
      annotation: { url: "https://a.example/", title: "A", start: 4, end: 27 },
    });
  });
});

// Without the client's API, `extra` looked like a chat client's own members: Codex' client_metadata went to strict chat servers.
test("the requests of rounds keep the client's API, but no upstream finds its JSON", async () => {
  const passthrough = { dialect: "responses", body: { client_metadata: {} } };
  const { requests } = await run([call("c1"), says("So.")], request({ passthrough }));
  expect(requests.map((round) => round.passthrough)).toEqual([
    { ...passthrough, dialect: "hosted-tools" },
    { ...passthrough, dialect: "hosted-tools" },
  ]);
  const chat = await run([says("So.")], request({ passthrough: { dialect: "chat", body: {} } }));
  expect(chat.requests[0]).not.toHaveProperty("passthrough");
});

describe("limits", () => {
  const many = Array.from({ length: 40 }, (_, index) => call(`c${index}`));
  const outcomes = (events: readonly GenerationEvent[]): string[] =>
    events.flatMap((event) =>
      event.type === "hosted-result" ? [event.result.kind === "failure" ? event.result.code : event.result.kind] : [],
    );

  test("max_uses of the tool and the executor's own answer further calls with a failure", async () => {
    const limited = request({ hostedTools: [tool("web_search", { options: { maxUses: 1 } })] });
    const three = [call("a"), call("b"), says("So.")];
    expect(outcomes((await run(three, limited)).events)).toEqual(["search", "max-uses-exceeded"]);
    const own = executor(undefined, { maxCalls: 1 });
    expect(outcomes((await run(three, request(), own)).events)).toEqual(["search", "max-uses-exceeded"]);
  });

  // They were failed items of the answer. OpenAI: "Any further attempts to call a tool by the model will be ignored."
  test("max_tool_calls hides further calls, which the model is told", async () => {
    const asked = request({ limits: { maxToolCalls: 1 } });
    const { events, requests } = await run([call("a"), call("b"), says("So.")], asked);
    expect(outcomes(events)).toEqual(["search"]);
    expect(events.filter(({ type }) => type === "hosted-call-start")).toHaveLength(1);
    expect(requests).toHaveLength(3);
    const { prompt } = requests[2] ?? expect.fail();
    const last = prompt.kind === "chat" ? prompt.messages.at(-1) : undefined;
    expect(last).toMatchObject({ role: "tool", toolCallId: "b", isError: true });
  });

  test("an answer that can be paused is paused after ten rounds", async () => {
    const { requests, generation, events } = await run(many, request(), executor(), true);
    expect(requests).toHaveLength(10);
    expect(generation.choices[0]?.finish).toEqual({ reason: "stop", paused: true });
    expect(outcomes(events)).toHaveLength(10);
  });

  test("another one ends soon after the model was told that no further call runs", async () => {
    const { requests, generation, events } = await run(many);
    expect(requests).toHaveLength(12);
    expect(outcomes(events).slice(9)).toEqual(["search", "max-uses-exceeded", "max-uses-exceeded"]);
    expect(generation.choices[0]?.finish).toEqual({ reason: "length" });
  });

  test("the calls of an answer are limited, also those of one round", async () => {
    const round = Array.from({ length: 5 }, (_, index) => call(`c${index}`, "web_search", "{}", index)).flat();
    const { events } = await run([round, says("So.")], request(), executor(), false, { maxCalls: 3 });
    expect(outcomes(events)).toEqual(["search", "search", "search", "max-uses-exceeded", "max-uses-exceeded"]);
  });

  test("after its cost is reached no call runs, and the model is not asked again: it is paused, or ends", async () => {
    let asked = 0;
    const isSpent = (): boolean => asked >= 3;
    const counting = executor(async () => {
      asked++;
      return found;
    });
    const paused = await run(many, request(), counting, true, { isSpent });
    expect(outcomes(paused.events)).toEqual(["search", "search", "search"]);
    expect(paused.generation.choices[0]?.finish).toEqual({ reason: "stop", paused: true });
    const { events, requests, generation } = await run(many, request(), counting, false, { isSpent });
    // The calls of the round that reached it fail, and are told as failed.
    expect(outcomes(events)).toEqual(["max-uses-exceeded"]);
    expect(requests).toHaveLength(1);
    expect(generation.choices[0]?.finish).toEqual({ reason: "length" });
  });

  test("after the time of an answer no call runs: it is paused, or ends", async () => {
    const late = { maxMs: -1 };
    const paused = await run(many, request(), executor(), true, late);
    expect(outcomes(paused.events)).toEqual(["max-uses-exceeded"]);
    expect(paused.generation.choices[0]?.finish).toEqual({ reason: "stop", paused: true });
    const { events, requests } = await run(many, request(), executor(), false, late);
    expect(new Set(outcomes(events))).toEqual(new Set(["max-uses-exceeded"]));
    expect(requests.length).toBeLessThanOrEqual(12);
  });

  test("a call has the owner of the client's key, or else its request", async () => {
    const owners: string[] = [];
    const own = executor(async ({ owner }) => {
      owners.push(owner);
      return found;
    });
    await run([call("a"), says("So.")], request(), own);
    await run([call("a"), says("So.")], request({ owner: "alice" }), own);
    expect(owners).toEqual(["r", "alice"]);
  });

  test("an executor that hangs ends in its time, and the answer goes on with an error", async () => {
    const own = executor(() => new Promise(() => {}), { timeoutMs: 1 });
    const { events, generation } = await run([call("a"), says("It is not known.")], request(), own);
    expect(outcomes(events)).toEqual(["timeout"]);
    expect(generation.choices[0]?.text).toBe("It is not known.");
  });

  test("an executor that throws, and arguments that are no object, are failures", async () => {
    const own = executor(() => Promise.reject(new Error("secret")));
    const { events } = await run([call("a"), says("So.")], request(), own);
    expect(outcomes(events)).toEqual(["unavailable"]);
    expect(JSON.stringify(events)).not.toContain("secret");
    expect(outcomes((await run([call("a", "web_search", "[1"), says("So.")])).events)).toEqual(["invalid-input"]);
  });

  test("returning from the answer aborts a call that runs", async () => {
    let begin: ((signal: AbortSignal) => void) | undefined;
    const began = new Promise<AbortSignal>((resolve) => (begin = resolve));
    const own = executor((_, signal) => {
      begin?.(signal);
      return new Promise(() => {});
    });
    let asked = 0;
    async function* source() {
      asked++;
      yield [{ type: "start", choice: 0 } as const, ...call("a")];
      yield [
        { type: "finish", choice: 0, reason: "tool-calls" } as const,
        { type: "end", end: { kind: "done" } } as const,
      ];
    }
    const plan = planHostedTools(request(), { names: [own.name], find: () => own });
    if (!plan) throw new Error("nothing is planned");
    const answer = withHostedTools(source, { ...plan, pauses: false })(request())[Symbol.asyncIterator]();
    await answer.next();
    const pending = answer.next();
    const signal = await began;
    await answer.return?.();
    expect(await pending).toEqual({ done: true, value: undefined });
    expect(signal.aborted).toBe(true);
    await new Promise(setImmediate);
    expect(asked).toBe(1);
  });
});

describe("without an executor", () => {
  test("a call fails as unavailable, and the model goes on", async () => {
    const own = executor(undefined, { kind: "file_search" });
    const { events, requests } = await run([call("a"), says("I cannot search.")], request(), own);
    expect(events.find(({ type }) => type === "hosted-result")).toMatchObject({ result: { code: "unavailable" } });
    expect(requests[0]?.tools?.[0]?.description).toContain("Not available on this server");
  });

  test("tools that no server could run are not planned, nor is anything without hosted tools", () => {
    expect(planHostedTools(request({ hostedTools: [tool("other")] }), undefined)).toBeUndefined();
    const { hostedTools: _, ...plain } = request();
    expect(planHostedTools(plain, undefined)).toBeUndefined();
    expect(planHostedTools(request({ n: 2 }), undefined)).toBeUndefined();
  });
});

test("an answer in which no hosted tool is called has the events of the model's own answer", async () => {
  const { events } = await run([says("Hello")]);
  expect(events).toEqual([
    { type: "start", choice: 0 },
    ...says("Hello"),
    used,
    { type: "finish", choice: 0, reason: "stop" },
    { type: "end", end: { kind: "done" } },
  ]);
});

describe("MCP", () => {
  const server = { label: "docs", approval: true } as const;
  const mcp = tool("mcp", { name: "docs", options: { server: { label: "docs" } } });
  const own = executor(async () => ({ kind: "contents", contents: [{ type: "text", text: "42" }], isError: false }), {
    kind: "mcp",
    functions: async () => [{ name: "read", readOnly: true }, { name: "write" }],
  });

  test("the functions are listed, and the model knows them by the server's label", async () => {
    const { events, requests } = await run(
      [call("a", "mcp__docs__read", "{}"), says("42")],
      request({ hostedTools: [mcp] }),
      own,
    );
    expect(events.slice(0, 3)).toMatchObject([
      { type: "start" },
      { type: "hosted-functions", tool: "docs", functions: [{ name: "read" }, { name: "write" }] },
      { type: "hosted-call-start", kind: "mcp", tool: "docs", name: "read" },
    ]);
    expect(requests[0]?.tools?.map(({ name }) => name)).toEqual(["mcp__docs__read", "mcp__docs__write"]);
  });

  test("a call that needs approval waits: the answer ends with the request for it", async () => {
    const asked = request({ hostedTools: [tool("mcp", { name: "docs", options: { server } })] });
    const { events, requests, generation } = await run([call("a", "mcp__docs__read", "{}")], asked, own);
    expect(requests).toHaveLength(1);
    expect(events).toContainEqual({
      type: "hosted-approval",
      choice: 0,
      id: "a",
      kind: "mcp",
      tool: "docs",
      name: "read",
      arguments: "{}",
    });
    expect(generation.choices[0]?.finish).toEqual({ reason: "stop" });
  });

  test("only functions outside of `never` need approval", async () => {
    const approval = { never: { names: ["read"] } };
    const asked = request({
      hostedTools: [tool("mcp", { name: "docs", options: { server: { label: "docs", approval } } })],
    });
    const round = [...call("a", "mcp__docs__read", "{}"), ...call("b", "mcp__docs__write", "{}", 1)];
    const { types, generation } = await run([round], asked, own);
    expect(types.filter((type) => type.startsWith("hosted-"))).toEqual([
      "hosted-functions",
      "hosted-call-start",
      "hosted-call-delta",
      "hosted-call-end",
      "hosted-approval",
      "hosted-result",
    ]);
    expect(generation.choices[0]?.finish).toEqual({ reason: "stop" });
  });

  test("an approved call runs before the model is asked", async () => {
    const asked = request({
      hostedTools: [tool("mcp", { name: "docs", options: { server } })],
      prompt: {
        kind: "chat",
        messages: [
          { role: "user", content: "Read." },
          { role: "assistant", content: [{ type: "tool-call", id: "a", name: "mcp__docs__read", arguments: "{}" }] },
        ],
        template: {},
      },
    });
    const { types, events, requests } = await run([says("42")], asked, own);
    expect(types.slice(0, 6)).toEqual([
      "start",
      "hosted-functions",
      "hosted-call-start",
      "hosted-call-delta",
      "hosted-call-end",
      "hosted-result",
    ]);
    expect(events[2]).toMatchObject({ approvalId: "a" });
    const { prompt } = requests[0] ?? {};
    expect(prompt?.kind === "chat" && prompt.messages.at(-1)).toMatchObject({
      role: "tool",
      content: "42",
      toolCallId: "a",
    });
  });

  test("a server that gives no list is one: its failure is listed", async () => {
    const failing = executor(undefined, { kind: "mcp", functions: () => new Promise(() => {}), timeoutMs: 1 });
    const { events } = await run([says("I cannot.")], request({ hostedTools: [mcp] }), failing);
    expect(events[1]).toMatchObject({ type: "hosted-functions", functions: { kind: "failure", code: "timeout" } });
  });
});

describe("what runs here of a request to a server of the client's API", () => {
  const search = tool();
  const code = tool("code_interpreter");
  const mcp = (url: string): HostedTool => tool("mcp", { name: "docs", options: { server: { label: "docs", url } } });
  const runs = ({ kind, options }: HostedTool): boolean => {
    if (kind === "mcp" && options.server?.url !== "mcp:docs") throw new Error("not configured");
    return kind !== "code_interpreter";
  };
  const decides = (hostedTools: HostedTool[], runsHostedTools?: boolean): boolean =>
    runsHere(request({ hostedTools }), { runs, runsHostedTools });

  test("of an unknown server, any tool that is configured here decides for all", () => {
    expect([decides([]), decides([search]), decides([code]), decides([code, search])]).toEqual([
      false,
      true,
      false,
      true,
    ]);
    expect(decides([mcp("https://mcp.example/")])).toBe(false);
  });

  test("a server that runs none gets none, one that runs them gets all but the MCP servers of this configuration", () => {
    expect([decides([], false), decides([code], false)]).toEqual([false, true]);
    expect([decides([search], true), decides([mcp("https://mcp.example/")], true)]).toEqual([false, false]);
    expect([decides([mcp("mcp:docs")], true), decides([mcp("mcp:docs"), search], true)]).toEqual([true, true]);
    expect(() => decides([mcp("mcp:docs"), code], true)).toThrow("the model's server runs code_interpreter");
  });
});
