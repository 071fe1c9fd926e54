import { afterAll, beforeAll, expect, test } from "vitest";
import { serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";

// Calls of a local model on the wire. Custom tools: OpenAI's ChatCompletionMessageCustomToolCall, streamed and whole.
let server: FixtureServer;
beforeAll(async () => {
  // A call that is held cannot name a tool that the request does not have.
  server = await serveFixture("--wire", "openai", "--no-constrain-calls");
});
afterAll(() => server.close());

const custom = (definition: string, syntax = "regex"): object => ({
  type: "custom",
  custom: { name: "get_weather", format: { type: "grammar", grammar: { syntax, definition } } },
});

function ask(members: object): Promise<Response> {
  const body = { model: "programmed", messages: [{ role: "user", content: "#call" }], max_tokens: 200, ...members };
  return fetch(`${server.baseURL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly tool_calls?: readonly Delta[] } }[];
}
interface Delta {
  readonly id?: string;
  readonly custom?: { readonly name?: string; readonly input?: string };
}

test("a call has type custom, and its input is a string", async () => {
  const tools = [custom("Oslo|Rome")];
  const choice = { type: "custom", custom: { name: "get_weather" } };
  const answer = (await (await ask({ tools, tool_choice: choice, parallel_tool_calls: false })).json()) as {
    choices: { message: { content: unknown; tool_calls: { id: string }[] } }[];
  };
  const [call] = answer.choices[0]?.message.tool_calls ?? [];
  expect(call).toEqual({
    id: expect.stringMatching(/^call_/) as string,
    type: "custom",
    custom: { name: "get_weather", input: expect.stringMatching(/^(Oslo|Rome)$/) as string },
  });
  expect(answer.choices[0]?.message.content).toBeNull();
});

test("streamed: the header names it, the input comes in pieces, nothing speaks of arguments", async () => {
  const text = await (await ask({ tools: [custom("Oslo|Rome")], parallel_tool_calls: false, stream: true })).text();
  const chunks = text
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => JSON.parse(event.slice(6)) as Chunk);
  const deltas = chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []));
  expect(deltas[0]).toEqual({
    index: 0,
    id: expect.stringMatching(/^call_/) as string,
    type: "custom",
    custom: { name: "get_weather", input: "" },
  });
  expect(deltas.map(({ custom }) => custom?.input ?? "").join("")).toMatch(/^(Oslo|Rome)$/);
  expect(text).not.toContain("arguments");
  expect(text).toContain('"finish_reason":"tool_calls"');
});

test("a grammar that cannot be enforced is refused with its path", async () => {
  const refusal = async (tool: object): Promise<unknown> => {
    const response = await ask({ tools: [tool] });
    expect(response.status).toBe(400);
    return ((await response.json()) as { error: unknown }).error;
  };
  expect(await refusal(custom("start: WORD", "lark"))).toMatchObject({
    message: expect.stringContaining("there is no terminal 'WORD'") as string,
    param: "tools[0].custom.format.grammar.definition",
    code: "invalid_value",
  });
  expect(await refusal(custom("(?<=a)b"))).toMatchObject({
    param: "tools[0].custom.format.grammar.definition",
    code: "invalid_value",
  });
});

test("a call of a tool that the request does not have stays text, and the log warns of it", async () => {
  const tools = [{ type: "function", function: { name: "clock" } }];
  const response = await ask({ tools });
  const id = response.headers.get("x-request-id");
  const answer = (await response.json()) as { choices: { message: { content: string; tool_calls?: unknown } }[] };
  expect(answer.choices[0]?.message.content).toContain('{"name": "get_weather"');
  expect(answer.choices[0]?.message.tool_calls).toBeUndefined();
  await expect.poll(() => server.stderr()).toContain(`${id}: The model called \\"get_weather\\"`);
  const line = server
    .stderr()
    .split("\n")
    .find((text) => text.includes("The model called"));
  expect(JSON.parse(line ?? "{}")).toMatchObject({ level: 40 });
});
