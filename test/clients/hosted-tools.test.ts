import { createServer as createHttpServer } from "node:http";
import { fileURLToPath } from "node:url";
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { ChatAnthropic } from "@langchain/anthropic";
import { HumanMessage } from "@langchain/core/messages";
import type { AIMessageChunk } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, streamText } from "ai";
import type { ToolSet } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";
import { otherServers } from "../support/other-servers.ts";

/* Official SDKs, the AI SDK and LangChain with hosted tools, over a source that knows functions only. */

const page = { url: "https://a.example/rain", title: "Rain", text: "It rains in Berlin.", age: "1 day ago" };
const said = "It [rains](https://a.example/rain) there.";

function calling(name: string, input: object): readonly GenerationEvent[][] {
  return [
    [
      { type: "start", choice: 0 },
      { type: "tool-call-start", choice: 0, index: 0, id: "call_1", name },
      { type: "tool-call-delta", choice: 0, index: 0, arguments: JSON.stringify(input) },
      { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
    ],
    [
      { type: "usage", usage: { promptTokens: 20, completionTokens: 5 } },
      { type: "finish", choice: 0, reason: "tool-calls" },
      { type: "end", end: { kind: "done" } },
    ],
  ];
}

/** Calls the first hosted function until it has a result, then answers. */
const engine = new ScriptedEngine(({ prompt, tools = [] }) => {
  const messages = prompt.kind === "chat" ? prompt.messages : [];
  const hasResult =
    messages.findLastIndex(({ role }) => role === "tool") > messages.findLastIndex(({ role }) => role === "user");
  const [tool] = tools;
  if (hasResult || !tool) return answer([said]);
  return calling(tool.name, tool.name === "code_interpreter" ? { code: "print(2)" } : { query: "rain" });
});

let server: TruewireServer;
beforeAll(async () => {
  server = await createServer({
    port: 0,
    logLevel: "silent",
    hostedTools: {
      webSearch: { program: () => Promise.resolve([page]) },
      mcp: { notes: fileURLToPath(new URL("../../examples/mcp-notes.js", import.meta.url)) },
      programs: {
        code_interpreter: { program: () => Promise.resolve({ stdout: "2\n", stderr: "", returnCode: 0 }) },
        file_search: {
          program: () => Promise.resolve([{ fileId: "f", filename: "a.md", score: 1, text: "the tide is high" }]),
        },
      },
    },
    ...serving(engine),
  });
});
afterAll(() => server.close(0));

describe("Anthropic's SDK", () => {
  const search = { type: "web_search_20250305", name: "web_search", max_uses: 3 } as const;
  const asked = {
    model: "scripted",
    max_tokens: 100,
    messages: [{ role: "user" as const, content: "Weather?" }],
    tools: [search],
  };
  const clientOf = () => new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0 });

  test("reads a search, its results and the citations, whole and streamed", async () => {
    const client = clientOf();
    for (const message of [await client.messages.create(asked), await client.messages.stream(asked).finalMessage()]) {
      expect(message.stop_reason).toBe("end_turn");
      expect(message.content).toMatchObject([
        { type: "server_tool_use", name: "web_search", input: { query: "rain" } },
        {
          type: "web_search_tool_result",
          content: [{ type: "web_search_result", url: page.url, title: "Rain", page_age: "1 day ago" }],
        },
        { type: "text", text: said, citations: [{ type: "web_search_result_location", url: page.url, title: "Rain" }] },
      ]);
      expect(message.usage.server_tool_use).toMatchObject({ web_search_requests: 1 });
    }
  });

  test("sends the results back, and the model reads them again", async () => {
    const client = clientOf();
    const { content } = await client.messages.create(asked);
    const messages = [
      ...asked.messages,
      { role: "assistant" as const, content },
      { role: "user" as const, content: "Thanks" },
    ];
    await client.messages.create({ ...asked, messages, tool_choice: { type: "none" } });
    const { prompt } = engine.requests.at(-1) ?? {};
    const result = prompt?.kind === "chat" ? prompt.messages.find(({ role }) => role === "tool") : undefined;
    expect(result?.content).toContain("It rains in Berlin.");
  });
});

describe("OpenAI's SDK", () => {
  const clientOf = () => new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  const asked = { model: "scripted", input: "Weather?", tools: [{ type: "web_search" as const }] };

  test("reads a search and its citation, whole, streamed, and in the next response", async () => {
    const client = clientOf();
    const whole = await client.responses.create(asked);
    const streamed = await client.responses
      .stream({ ...asked, include: ["web_search_call.action.sources"] })
      .finalResponse();
    for (const { output } of [whole, streamed]) {
      expect(output).toMatchObject([
        { type: "web_search_call", status: "completed", action: { type: "search", query: "rain" } },
        {
          type: "message",
          content: [
            { text: said, annotations: [{ type: "url_citation", url: page.url, start_index: 3, end_index: 34 }] },
          ],
        },
      ]);
    }
    expect(streamed.output[0]).toMatchObject({ action: { sources: [{ type: "url", url: page.url }] } });
    await client.responses.create({ model: "scripted", input: "Thanks", previous_response_id: whole.id });
    const { prompt } = engine.requests.at(-1) ?? {};
    const result = prompt?.kind === "chat" ? prompt.messages.find(({ role }) => role === "tool") : undefined;
    expect(result?.content).toContain("It rains in Berlin.");
  });

  // A search that came back without a stored response was left out: the model did not know any more what it had read.
  test("sends a search back that nothing has stored, and the model reads its results again", async () => {
    const client = clientOf();
    const unstored = { ...asked, store: false, include: ["reasoning.encrypted_content" as const] };
    const streamed = client.responses.stream(unstored).finalResponse();
    for (const { output } of [await client.responses.create(unstored), await streamed]) {
      expect(output).toMatchObject([
        { type: "web_search_call" },
        { type: "reasoning", summary: [] },
        { type: "message" },
      ]);
      // Some clients leave out what Codex returns: the ids of items.
      for (const items of [output, output.map((item) => ({ ...item, id: undefined }))]) {
        const input = [
          ...(items as OpenAI.Responses.ResponseInputItem[]),
          { role: "user" as const, content: "Thanks" },
        ];
        await client.responses.create({ model: "scripted", input, store: false });
        const { prompt } = engine.requests.at(-1) ?? {};
        const messages = prompt?.kind === "chat" ? prompt.messages : [];
        expect(messages.map(({ role }) => role)).toEqual(["assistant", "tool", "assistant", "user"]);
        expect(messages[1]?.content).toContain("It rains in Berlin.");
      }
    }
  });

  test("reads code and its output, in the background, too", async () => {
    const client = clientOf();
    const tools = [{ type: "code_interpreter" as const, container: { type: "auto" as const } }];
    const include = ["code_interpreter_call.outputs" as const];
    const begun = await client.responses.create({ ...asked, tools, include, background: true });
    await expect.poll(async () => (await client.responses.retrieve(begun.id)).status).toBe("completed");
    expect((await client.responses.retrieve(begun.id)).output).toMatchObject([
      {
        type: "code_interpreter_call",
        code: "print(2)",
        status: "completed",
        outputs: [{ type: "logs", logs: "2\n" }],
      },
      { type: "message" },
    ]);
  });

  test("reads chat's citations", async () => {
    const messages = [{ role: "user" as const, content: "Weather?" }];
    const { choices } = await clientOf().chat.completions.create({
      model: "scripted",
      messages,
      web_search_options: {},
    });
    expect(choices[0]?.message).toMatchObject({
      content: said,
      annotations: [{ type: "url_citation", url_citation: { url: page.url, start_index: 3, end_index: 34 } }],
    });
  });

  test("a tool that nothing runs cannot be forced, and its call fails", async () => {
    const tools = [{ type: "file_search" as const, vector_store_ids: ["vs_1"] }];
    const without = await createServer({ port: 0, logLevel: "silent", ...serving(engine) });
    try {
      const client = new OpenAI({ baseURL: `${without.url}/v1`, apiKey: "none", maxRetries: 0 });
      const forced = client.responses.create({ ...asked, tools, tool_choice: { type: "file_search" } });
      await expect(forced).rejects.toMatchObject({ status: 400, param: "tool_choice" });
      const { output } = await client.responses.create({ ...asked, tools });
      expect(output[0]).toMatchObject({ type: "file_search_call", status: "failed" });
    } finally {
      await without.close(0);
    }
  });
});

describe("over a chat server", () => {
  const bodies: Record<string, unknown>[] = [];
  const listening = otherServers();
  const double = createHttpServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    request.on("end", () => {
      const body = JSON.parse(text === "" ? "{}" : text) as { messages?: { role: string }[] };
      bodies.push(body);
      const hasResult = body.messages?.at(-1)?.role === "tool";
      const call = { id: "call_0", type: "function", function: { name: "web_search", arguments: '{"query":"rain"}' } };
      const message = hasResult ? { content: said } : { content: null, tool_calls: [call] };
      const choice = {
        index: 0,
        message: { role: "assistant", ...message },
        finish_reason: hasResult ? "stop" : "tool_calls",
      };
      const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
      response.setHeader("content-type", "application/json");
      response.end(
        JSON.stringify({ id: "c", object: "chat.completion", created: 1, model: "m", choices: [choice], usage }),
      );
    });
  });
  let gateway: TruewireServer;
  beforeAll(async () => {
    const url = await listening(double);
    gateway = await createServer({
      port: 0,
      logLevel: "silent",
      hostedTools: { webSearch: { program: () => Promise.resolve([page]) } },
      models: [{ kind: "upstream", url: `${url}/v1`, models: ["m"] }],
    });
  });
  afterAll(() => gateway.close(0));

  test("the server sees a function, its call and its result; the client one answer, with the tokens of both rounds", async () => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: "none", maxRetries: 0 });
    const { output, usage } = await client.responses.create({
      model: "m",
      input: "Weather?",
      tools: [{ type: "web_search" }],
    });
    expect(output).toMatchObject([{ type: "web_search_call", status: "completed" }, { type: "message" }]);
    expect(usage).toMatchObject({ input_tokens: 20, output_tokens: 4 });
    const [first, second] = bodies.filter(({ messages }) => messages !== undefined);
    expect(first).toMatchObject({ tools: [{ type: "function", function: { name: "web_search" } }] });
    expect(second?.["messages"]).toMatchObject([
      { role: "user" },
      { role: "assistant", tool_calls: [{ id: "call_0", function: { name: "web_search" } }] },
      { role: "tool", tool_call_id: "call_0" },
    ]);
  });
});

describe("the AI SDK", () => {
  test("has the sources of a search over both APIs", async () => {
    const openai = createOpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" });
    const anthropic = createAnthropic({ baseURL: `${server.url}/v1`, apiKey: "none" });
    const overResponses = await generateText({
      model: openai.responses("scripted"),
      prompt: "Weather?",
      // An input without members fits no tool of exactOptionalPropertyTypes.
      tools: { web_search: openai.tools.webSearch({}) } as unknown as ToolSet,
    });
    const overMessages = await generateText({
      model: anthropic("scripted"),
      prompt: "Weather?",
      tools: { web_search: anthropic.tools.webSearch_20250305({}) } as unknown as ToolSet,
    });
    for (const { text, sources } of [overResponses, overMessages]) {
      expect(text).toBe(said);
      expect(sources).toContainEqual(expect.objectContaining({ sourceType: "url", url: page.url }));
    }
  });

  test.each([false, true])("has the results of code, files and MCP servers, streamed: %s", async (streams) => {
    const openai = createOpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" });
    const tools = {
      code_interpreter: openai.tools.codeInterpreter({}),
      file_search: openai.tools.fileSearch({ vectorStoreIds: ["vs_1"] }),
      mcp: openai.tools.mcp({ serverLabel: "notes", serverUrl: "mcp:notes" }),
    };
    for (const [name, tool] of Object.entries(tools)) {
      const asked = {
        model: openai.responses("scripted"),
        prompt: "Go",
        tools: { [name]: tool } as unknown as ToolSet,
        providerOptions: { openai: { include: ["file_search_call.results"] } },
      };
      const streamed = streams ? streamText(asked) : undefined;
      await streamed?.consumeStream();
      const { text, toolResults } = streamed
        ? { text: await streamed.text, toolResults: await streamed.toolResults }
        : await generateText(asked);
      expect(text).toBe(said);
      expect(toolResults.map(({ output }) => JSON.stringify(output)).join()).toContain(
        { code_interpreter: "2\\n", file_search: "the tide is high", mcp: "tides.md" }[name],
      );
    }
  });
});

describe("LangChain", () => {
  const models = {
    ChatOpenAI: () =>
      new ChatOpenAI({
        model: "scripted",
        apiKey: "none",
        useResponsesApi: true,
        configuration: { baseURL: `${server.url}/v1` },
      }).bindTools([{ type: "web_search" }]),
    ChatAnthropic: () =>
      new ChatAnthropic({ model: "scripted", apiKey: "none", anthropicApiUrl: server.url }).bindTools([
        { type: "web_search_20250305", name: "web_search", max_uses: 3 },
      ]),
  };

  test.each(Object.entries(models))("%s has a search and its citation, and sends it back", async (_, modelOf) => {
    const model = modelOf();
    const question = new HumanMessage("Weather?");
    let streamed: AIMessageChunk | undefined;
    for await (const chunk of await model.stream([question])) streamed = streamed?.concat(chunk) ?? chunk;
    for (const answer of [await model.invoke([question]), streamed ?? expect.fail("nothing was streamed")]) {
      expect(answer.text).toBe(said);
      expect(JSON.stringify(answer)).toContain(`"url":"${page.url}"`);
      expect((await model.invoke([question, answer, new HumanMessage("And?")])).text).toBe(said);
    }
  });
});
