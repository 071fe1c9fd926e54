import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listOf, objectOf, startChat } from "../doubles/chat-server.ts";
import { type SearxngDouble, searxngDouble } from "../doubles/searxng.ts";
import { type RunningTruewire, startTruewire } from "../support/serve.ts";
import { listen } from "../support/listen.ts";

const path = (name: string): string => new URL(name, import.meta.url).pathname;
const notes = new URL("../../examples/mcp-notes.js", import.meta.url).pathname;
const page = { url: "https://truewire.example/notes", title: "Release notes", content: "Version 2 is faster." };

// The command line of docs/hosted-tools.md, over a program.
describe("truewire serve with hosted tools", () => {
  let searxng: SearxngDouble;
  let truewire: RunningTruewire;
  let openai: OpenAI;
  let anthropic: Anthropic;
  beforeAll(async () => {
    searxng = await searxngDouble([page]);
    truewire = await startTruewire([
      `model=${path("calling-model.mjs")}`,
      `--web-search=${searxng.url}`,
      "--web-fetch",
      `--mcp=notes=${notes}`,
      `--mcp=test=${path("mcp-server.mjs")}`,
      `--hosted-program=code_interpreter=${path("run-code.mjs")}`,
    ]);
    openai = new OpenAI({ baseURL: `${truewire.url}/v1`, apiKey: "none", maxRetries: 0 });
    anthropic = new Anthropic({ baseURL: truewire.url, apiKey: "none", maxRetries: 0 });
  });
  afterAll(async () => {
    await truewire?.stop();
    searxng?.close();
  });

  test("a web search of Responses", async () => {
    const input = 'web_search {"query":"release notes"}';
    const response = await openai.responses.create({ model: "model", input, tools: [{ type: "web_search" }] });
    expect(response.output.map(({ type }) => type)).toEqual(["web_search_call", "message"]);
    expect(response.output_text).toContain("Version 2 is faster.");
    expect(searxng.searches.at(-1)?.get("q")).toBe("release notes");
  });

  describe("of chat, by their names in the configuration", () => {
    const ask = async (content: string, hosted: readonly string[]): Promise<readonly unknown[]> => {
      const own = { hosted_tools: hosted, include_hosted_calls: true };
      const messages = [{ role: "user" as const, content }];
      const stream = await openai.chat.completions.create({ model: "model", messages, stream: true, ...own });
      const calls: unknown[] = [];
      for await (const chunk of stream) if ("hosted_call" in chunk) calls.push(chunk.hosted_call);
      return calls;
    };

    test("the list of models names them", async () => {
      const list = (await (await fetch(`${truewire.url}/v1/models`)).json()) as object;
      const names = ["web_search", "web_fetch", "code_interpreter", "notes", "test"];
      expect(list).toMatchObject({ truewire: { hosted_tools: names } });
    });

    test("a function of an MCP server", async () => {
      const calls = await ask('mcp__test__add {"a":2,"b":3}', ["test", "web_search"]);
      expect(calls).toMatchObject([
        { kind: "mcp", tool: "test", name: "add", status: "running", arguments: '{"a":2,"b":3}' },
        { kind: "mcp", tool: "test", name: "add", status: "completed", output: "5" },
      ]);
    });

    test("code", async () => {
      const calls = await ask('code_interpreter {"code":"1 + 1"}', ["code_interpreter"]);
      expect(calls).toMatchObject([{ kind: "code_interpreter" }, { kind: "code_interpreter", status: "completed" }]);
    });

    test("a search, also with options of its own", async () => {
      const messages = [{ role: "user" as const, content: 'web_search {"query":"release notes"}' }];
      const own = { hosted_tools: ["web_search"], web_search_options: { search_context_size: "low" as const } };
      const { choices } = await openai.chat.completions.create({ model: "model", messages, ...own });
      expect(choices[0]?.message.content).toContain("Version 2 is faster.");
    });

    test("another name is refused with those that there are", async () => {
      await expect(ask("Hello", ["notes", "web_serach"])).rejects.toMatchObject({
        status: 400,
        param: "hosted_tools[1]",
        message: expect.stringContaining(
          "Supported: 'web_search', 'web_fetch', 'code_interpreter', 'notes', and 'test'.",
        ),
      });
    });
  });

  test("a web search of Messages", async () => {
    const message = await anthropic.messages.create({
      model: "model",
      max_tokens: 1000,
      messages: [{ role: "user", content: 'web_search {"query":"release notes"}' }],
      tools: [{ type: "web_search_20250305", name: "web_search", allowed_domains: ["truewire.example"] }],
    });
    expect(message.content).toMatchObject([
      { type: "server_tool_use", name: "web_search", input: { query: "release notes" } },
      { type: "web_search_tool_result", content: [{ type: "web_search_result", url: page.url, title: page.title }] },
      { type: "text" },
    ]);
    expect(message.usage.server_tool_use).toMatchObject({ web_search_requests: 1 });
    expect(searxng.searches.at(-1)?.get("q")).toBe("release notes site:truewire.example");
  });

  test("a page is not fetched from this machine", async () => {
    const url = `${truewire.url}/health`;
    const message = await anthropic.beta.messages.create({
      model: "model",
      max_tokens: 1000,
      betas: ["web-fetch-2025-09-10"],
      messages: [{ role: "user", content: `web_fetch {"url":"${url}"}` }],
      tools: [{ type: "web_fetch_20250910", name: "web_fetch" }],
    });
    expect(message.content[1]).toMatchObject({
      type: "web_fetch_tool_result",
      content: { type: "web_fetch_tool_result_error", error_code: "url_not_allowed" },
    });
  });

  test("an MCP server lists its functions, and runs them", async () => {
    const server = { type: "mcp", server_label: "notes", server_url: "mcp:notes" } as const;
    const tools: OpenAI.Responses.Tool[] = [{ ...server, require_approval: "never" }];
    const listed = await openai.responses.create({ model: "model", input: "Hello", tools });
    expect(listed.output).toMatchObject([
      { type: "mcp_list_tools", server_label: "notes", tools: [{ name: "list_notes" }, { name: "read_note" }] },
      { type: "message" },
    ]);
    const read = await openai.responses.create({
      model: "model",
      input: 'mcp__notes__read_note {"name":"tides.md"}',
      tools,
    });
    expect(read.output).toMatchObject([
      { type: "mcp_list_tools" },
      { type: "mcp_call", name: "read_note", error: null },
      {},
    ]);
    expect(read.output_text).toContain("tide");
  });

  test("a server_url or a label that is not configured is refused with a sentence", async () => {
    const other = { type: "mcp", server_label: "x", server_url: "https://mcp.example.com/mcp" } as const;
    await expect(openai.responses.create({ model: "model", input: "Hi", tools: [other] })).rejects.toThrow(
      /connects only to MCP servers of its own configuration, and the server_url https:\/\/mcp\.example\.com\/mcp is not one of them/,
    );
  });

  test("a program runs code; one that blocks, hangs or ends costs its own call only", async () => {
    const tools: OpenAI.Responses.Tool[] = [{ type: "code_interpreter", container: { type: "auto" } }];
    const run = async (code: string): Promise<string> => {
      const input = `code_interpreter ${JSON.stringify({ code })}`;
      return (await openai.responses.create({ model: "model", input, tools })).output_text;
    };
    expect(await run("20+22")).toContain("42");
    expect(await run("throw")).toContain("division by zero");
    expect(await run("exit")).toContain("its thread ended");
    expect(await run("function")).toContain("could not be cloned");
    expect(await run("1+1")).toContain("2");
  });

  test("metrics count the calls by the names of the configuration", async () => {
    const text = await (await fetch(`${truewire.url}/metrics`)).text();
    expect(text).toMatch(/truewire_hosted_calls_total\{tool="web_search",outcome="succeeded"\} [2-9]/);
    expect(text).toMatch(/truewire_hosted_calls_total\{tool="code_interpreter",outcome="failed"\} 3/);
    expect(text).toMatch(/truewire_hosted_calls_total\{tool="notes",outcome="succeeded"\} 1/);
    expect(text).toMatch(/truewire_hosted_call_duration_seconds_count\{tool="web_search"\} [2-9]/);
  });
});

describe("the configuration of hosted tools", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "truewire-hosted-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function serve(hostedTools: object, more: object = {}): Promise<RunningTruewire> {
    const file = join(folder, "truewire.yaml");
    const config = {
      port: 0,
      hostedTools,
      models: [{ kind: "program", name: "model", program: path("calling-model.mjs") }],
      ...more,
    };
    writeFileSync(file, JSON.stringify(config));
    return startTruewire(["--config", file]);
  }

  async function ask(
    { url }: RunningTruewire,
    input: string,
    tool: OpenAI.Responses.Tool,
    apiKey = "none",
  ): Promise<OpenAI.Responses.Response> {
    return new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 }).responses.create({
      model: "model",
      input,
      tools: [tool],
    });
  }

  const code = { type: "code_interpreter", container: { type: "auto" } } as const;

  test("a call that takes too long ends in its time, and the answer goes on", async () => {
    const program = { program: path("run-code.mjs"), timeout: "300ms" };
    const truewire = await serve({ programs: { code_interpreter: program } });
    try {
      for (const how of ["hang", "block"]) {
        const { output_text: text } = await ask(truewire, `code_interpreter {"code":"${how}"}`, code);
        expect(text).toMatch(/^The tool said: Error: /);
      }
      // A new thread may take longer to start than a call has time here.
      const sum = async (): Promise<string> =>
        (await ask(truewire, 'code_interpreter {"code":"1+2"}', code)).output_text;
      await expect.poll(sum).toMatch(/^The tool said: 3/);
    } finally {
      await truewire.stop();
    }
  });

  test("a page of this machine is fetched if privateHosts names it, over a chat server", async () => {
    const pages = await listen((_, response) => {
      response.setHeader("content-type", "text/html");
      response.end("<html><title>Notes</title><h1>Notes</h1><p>Version 2 is faster.</p></html>");
    });
    const url = `${pages.url}/notes`;
    const chat = await startChat({}, ({ messages, tools }) => {
      const results = listOf(messages).filter(({ role }) => role === "tool");
      if (results.length > 0) return `The page says: ${JSON.stringify(results)}`;
      return { calls: [{ name: String(objectOf(listOf(tools)[0]?.["function"])["name"]), input: { url } }] };
    });
    const models = [{ kind: "upstream", name: "chat", url: chat.url }];
    const truewire = await serve({ webFetch: { privateHosts: ["127.0.0.1"] } }, { models });
    try {
      const client = new Anthropic({ baseURL: truewire.url, apiKey: "none", maxRetries: 0 });
      const message = await client.beta.messages
        .stream({
          model: "m",
          max_tokens: 1000,
          betas: ["web-fetch-2025-09-10"],
          messages: [{ role: "user", content: `What is new? ${url}` }],
          tools: [{ type: "web_fetch_20250910", name: "web_fetch" }],
        })
        .finalMessage();
      expect(message.content).toMatchObject([
        { type: "server_tool_use", name: "web_fetch", input: { url } },
        {
          type: "web_fetch_tool_result",
          content: { type: "web_fetch_result", url, content: { title: "Notes", source: { type: "text" } } },
        },
        { type: "text", text: expect.stringContaining("Version 2 is faster.") as string },
      ]);
      expect(message.usage.server_tool_use).toMatchObject({ web_fetch_requests: 1 });
    } finally {
      await truewire.stop();
      await chat.close();
      await pages.close();
    }
  });

  test("a key may be limited to some; another tool is as if it were not configured", async () => {
    const { createHash } = await import("node:crypto");
    const hash = `sha256:${createHash("sha256").update("tw-test").digest("hex")}`;
    const searxng = await searxngDouble([page]);
    const hostedTools = { webSearch: searxng.url, programs: { code_interpreter: path("run-code.mjs") } };
    const truewire = await serve(hostedTools, { keys: [{ name: "alice", hash, hostedTools: ["web_*"] }] });
    try {
      const found = await ask(truewire, 'web_search {"query":"q"}', { type: "web_search" }, "tw-test");
      expect(found.output_text).toContain("Version 2");
      const refused = await ask(truewire, 'code_interpreter {"code":"1+2"}', code, "tw-test");
      expect(refused.output_text).not.toContain("3");
    } finally {
      await truewire.stop();
      searxng.close();
    }
  });

  test("programs in memory, paths relative to the file, and mistakes with their place", async () => {
    writeFileSync(
      join(folder, "search.mjs"),
      `export default ({ arguments: { query } }) => [{ url: "https://a.example/", title: query, text: "found" }];`,
    );
    const truewire = await serve({ webSearch: "./search.mjs" });
    try {
      const { output_text: text } = await ask(truewire, 'web_search {"query":"own search"}', { type: "web_search" });
      expect(text).toContain("own search");
      expect(text).toContain("found");
    } finally {
      await truewire.stop();
    }
    await expect(serve({ webSearch: { engine: "brave" } })).rejects.toThrow(
      /hostedTools\.webSearch\.key: is missing; expected a key of brave/,
    );
    await expect(serve({ mcp: { "a b": "./x.js" } })).rejects.toThrow(/expected a name of letters/);
    await expect(serve({ programs: { code_interpreter: "./missing.mjs" } })).rejects.toThrow(
      /missing\.mjs could not be loaded/,
    );
  });
});
