import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startAnthropic, type AnthropicDouble } from "../doubles/anthropic.ts";
import { startChat, type Double, type Json } from "../doubles/chat-server.ts";
import { startOpenAi, type OpenAiDouble } from "../doubles/openai.ts";
import { searxngDouble, type SearxngDouble } from "../doubles/searxng.ts";
import { vllm } from "../doubles/vllm.ts";
import { type RunningTruewire, startTruewire } from "../support/serve.ts";

const notes = new URL("../../examples/mcp-notes.js", import.meta.url).pathname;
const page = { url: "https://truewire.example/notes", title: "Release notes", content: "Version 2 is faster." };
const query = '{"query":"release notes"}';
const answer = `Version 2 is faster ([notes](${page.url})).`;

// What an upstream of the client's own API is sent, and what runs here: each is served three times, as an unknown server, as one that runs
// hosted tools itself (`pass`), and as one that runs none (`none`).
describe("upstreams of the client's own API", () => {
  let searxng: SearxngDouble;
  let responses: OpenAiDouble;
  let messages: AnthropicDouble;
  let chat: Double;
  let truewire: RunningTruewire;
  let plain: RunningTruewire;
  let openai: OpenAI;
  let anthropic: Anthropic;
  let folder: string;

  const toolNames = ({ tools }: Json): readonly unknown[] =>
    ((tools ?? []) as readonly Json[]).map((tool) => (tool["function"] as Json | undefined)?.["name"] ?? tool["name"]);
  const offersSearch = (body: Json): boolean => toolNames(body).includes("web_search");

  beforeAll(async () => {
    searxng = await searxngDouble([page]);
    responses = await startOpenAi({
      turn: ({ body, input }) =>
        input.some(({ type }) => type === "function_call_output")
          ? { reasoning: "It is there.", text: answer }
          : offersSearch(body)
            ? { reasoning: "I look.", calls: [{ name: "web_search", arguments: query }] }
            : { text: "From memory." },
    });
    messages = await startAnthropic({
      accounts: { k: "one" },
      answer: (body, index) =>
        JSON.stringify(body["messages"]).includes("tool_result")
          ? { text: answer }
          : offersSearch(body) && JSON.stringify(body["tools"]).includes("input_schema")
            ? { thinking: `I look ${index}.`, calls: [{ name: "web_search", input: JSON.parse(query) as Json }] }
            : { text: "From memory." },
    });
    chat = await startChat(vllm, (body) =>
      JSON.stringify(body["messages"]).includes('"role":"tool"')
        ? answer
        : offersSearch(body)
          ? { reasoning: "I look.", calls: [{ name: "web_search", input: JSON.parse(query) as Json }] }
          : "From memory.",
    );
    folder = mkdtempSync(join(tmpdir(), "truewire-upstreams-"));
    const thrice = (name: string, model: object): object[] => [
      { ...model, name, aliases: [name] },
      { ...model, name: `${name}-pass`, requests: { hostedTools: true } },
      { ...model, name: `${name}-none`, requests: { hostedTools: false } },
    ];
    const entry = (api: string, url: string, model: string): object[] =>
      thrice(api, { kind: "upstream", url, api, key: "k" }).map((one) => ({
        ...one,
        models: { [(one as { readonly name: string }).name]: model },
      }));
    const file = join(folder, "truewire.yaml");
    const models = [
      ...entry("responses", responses.url, "gpt-5"),
      ...entry("messages", messages.url, "claude-sonnet-4-5"),
      ...entry("chat", chat.url, "m"),
    ];
    writeFileSync(file, JSON.stringify({ port: 0, models }));
    plain = await startTruewire(["--config", file]);
    writeFileSync(file, JSON.stringify({ port: 0, hostedTools: { webSearch: searxng.url, mcp: { notes } }, models }));
    truewire = await startTruewire(["--config", file]);
    openai = new OpenAI({ baseURL: `${truewire.url}/v1`, apiKey: "none", maxRetries: 0 });
    anthropic = new Anthropic({ baseURL: truewire.url, apiKey: "none", maxRetries: 0 });
  });
  afterAll(async () => {
    await truewire?.stop();
    await plain?.stop();
    searxng?.close();
    for (const double of [responses, messages, chat]) await double?.close();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });
  let searches = 0;
  beforeEach(() => {
    searches = searxng.searches.length;
  });

  describe("Responses", () => {
    const ask = (
      model: string,
      tools: OpenAI.Responses.Tool[] = [{ type: "web_search" }],
    ): Promise<OpenAI.Responses.Response> =>
      openai.responses.create({ model, input: "What is new?", tools, max_output_tokens: 500 });

    test("a search that is configured here runs here, and the reasoning of each round goes back to its server", async () => {
      const response = await ask("responses");
      expect(response.output.map(({ type }) => type)).toEqual(["reasoning", "web_search_call", "reasoning", "message"]);
      expect(response.output_text).toBe(answer);
      expect(searxng.searches.length).toBe(searches + 1);
      const [first, second] = responses.requests.slice(-2);
      expect(first?.["tools"]).toMatchObject([{ type: "function", name: "web_search" }]);
      expect(second?.["input"]).toMatchObject([
        { role: "user" },
        { type: "reasoning", encrypted_content: /^gAAA/ },
        { type: "function_call", name: "web_search" },
        { type: "function_call_output", output: /Version 2 is faster/ },
      ]);
      expect(responses.refusals).toEqual([]);
    });

    test("the next turn continues the response that is stored here", async () => {
      const { id } = await ask("responses");
      const next = await openai.responses.create({
        model: "responses",
        previous_response_id: id,
        input: "Thanks. Anything else?",
        tools: [{ type: "web_search" }],
      });
      expect(next.output_text).toBe(answer);
      expect(JSON.stringify(responses.requests.at(-1)?.["input"])).toContain("function_call_output");
      expect(responses.refusals).toEqual([]);
    });

    test("a server that runs hosted tools gets them as they are", async () => {
      expect((await ask("responses-pass")).output_text).toBe("From memory.");
      expect(responses.requests.at(-1)?.["tools"]).toEqual([{ type: "web_search" }]);
      expect(searxng.searches.length).toBe(searches);
    });

    test("a tool that is not configured is sent to a server of which nothing is known, and fails where none runs", async () => {
      const tools: OpenAI.Responses.Tool[] = [{ type: "code_interpreter", container: { type: "auto" } }];
      await ask("responses", tools);
      expect(responses.requests.at(-1)?.["tools"]).toEqual(tools);
      await ask("responses-none", tools);
      expect(responses.requests.at(-1)?.["tools"]).toMatchObject([{ type: "function", name: "code_interpreter" }]);
    });

    test("an MCP server of this configuration runs here; with tools of the upstream's, the request is refused", async () => {
      const own: OpenAI.Responses.Tool = { type: "mcp", server_label: "notes", server_url: "mcp:notes" };
      const { output } = await ask("responses-pass", [own]);
      expect(output.map(({ type }) => type)).toContain("mcp_list_tools");
      expect(toolNames(responses.requests.at(-1) ?? {})).toEqual(["mcp__notes__list_notes", "mcp__notes__read_note"]);
      const both: OpenAI.Responses.Tool[] = [own, { type: "code_interpreter", container: { type: "auto" } }];
      await expect(ask("responses-pass", both)).rejects.toThrow(
        /This server runs mcp:notes, and the model's server runs code_interpreter: a request can have tools of one of them only/,
      );
    });

    test("where nothing is configured, tools are sent as they came", async () => {
      const tools: OpenAI.Responses.Tool[] = [{ type: "web_search" }];
      const client = new OpenAI({ baseURL: `${plain.url}/v1`, apiKey: "none", maxRetries: 0 });
      await client.responses.create({ model: "responses", input: "What is new?", tools });
      expect(responses.requests.at(-1)?.["tools"]).toEqual(tools);
    });

    test("an MCP server of another URL is sent to a server of which nothing is known", async () => {
      const other: OpenAI.Responses.Tool = {
        type: "mcp",
        server_label: "x",
        server_url: "https://mcp.example.com/mcp",
      };
      await ask("responses", [other]);
      expect(responses.requests.at(-1)?.["tools"]).toEqual([other]);
    });
  });

  describe("Messages", () => {
    const ask = (model: string): Promise<Anthropic.Message> =>
      anthropic.messages.create({
        model,
        max_tokens: 4000,
        thinking: { type: "enabled", budget_tokens: 1024 },
        messages: [{ role: "user", content: "What is new?" }],
        tools: [{ type: "web_search_20250305", name: "web_search" }],
      });

    test("a search that is configured here runs here, and signed thinking goes back to its server", async () => {
      const { content, usage } = await ask("messages");
      expect(content.map(({ type }) => type)).toEqual([
        "thinking",
        "server_tool_use",
        "web_search_tool_result",
        ...content.slice(3).map(() => "text"),
      ]);
      expect(usage.server_tool_use).toMatchObject({ web_search_requests: 1 });
      expect(searxng.searches.length).toBe(searches + 1);
      expect(messages.requests.at(-1)?.["messages"]).toMatchObject([
        { role: "user" },
        { role: "assistant", content: [{ type: "thinking" }, { type: "tool_use", name: "web_search" }] },
        { role: "user", content: [{ type: "tool_result" }] },
      ]);
      expect(messages.refusals).toEqual([]);
    });

    test("a server that runs hosted tools gets them as they are", async () => {
      expect((await ask("messages-pass")).content).toMatchObject([{ type: "text", text: "From memory." }]);
      expect(messages.requests.at(-1)?.["tools"]).toEqual([{ type: "web_search_20250305", name: "web_search" }]);
      expect(searxng.searches.length).toBe(searches);
    });
  });

  describe("chat", () => {
    const ask = (model: string): Promise<OpenAI.ChatCompletion> =>
      openai.chat.completions.create({
        model,
        messages: [{ role: "user", content: "What is new?" }],
        web_search_options: { search_context_size: "low" },
        ...({ top_k: 5, my_member: true } as object),
      });

    test("a search that is configured here runs here, with the members that only the server knows", async () => {
      const { choices } = await ask("chat");
      expect(choices[0]?.message).toMatchObject({
        content: answer,
        annotations: [{ type: "url_citation", url_citation: { url: page.url } }],
      });
      expect(searxng.searches.length).toBe(searches + 1);
      const { messages: sent, web_search_options: options, ...rest } = chat.requests.at(-1) ?? {};
      expect(options).toBeUndefined();
      expect(rest).toMatchObject({ top_k: 5, my_member: true });
      expect(sent).toMatchObject([{ role: "user" }, { role: "assistant" }, { role: "tool" }]);
      expect(chat.refusals).toEqual([]);
      expect(chat.lost).toEqual([]);
    });

    test("a server that runs searches gets the options as they are", async () => {
      expect((await ask("chat-pass")).choices[0]?.message.content).toBe("From memory.");
      expect(chat.requests.at(-1)?.["web_search_options"]).toEqual({ search_context_size: "low" });
      expect(searxng.searches.length).toBe(searches);
    });
  });
});
