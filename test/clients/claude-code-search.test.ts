import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startChat } from "../doubles/chat-server.ts";
import type { Json, Turns } from "../doubles/chat-server.ts";
import { gemini } from "../doubles/gemini.ts";
import { startOllama } from "../doubles/ollama-api.ts";
import { searxngDouble } from "../doubles/searxng.ts";
import type { SearxngDouble } from "../doubles/searxng.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { nextStep, page, query, readAsked } from "../fixtures/searching-model.ts";
import { claudeCode, runClaudeCode } from "../support/claude-code.ts";
import { startTruewire } from "../support/serve.ts";

/*
 * Claude Code's WebSearch is a request of its own with Anthropic's tool, which it sends to the server that it talks to. Over sources that
 * have no such tool, it reported "Did 0 searches" and presented what the model had invented.
 */

const claude = claudeCode();

const stepOf = (body: Json) => nextStep(readAsked((body["messages"] ?? []) as Json[], body["tools"]));

const turns: Turns = (body) => {
  const step = stepOf(body);
  return "text" in step ? step.text : { calls: [{ name: step.call, input: { query } }] };
};

/** What the model of `../fixtures/searching-model.ts` does, as a chat template that chooses the script: a text of its own, as what comes from clients has no control tokens. */
const template = `{%- set state = namespace(asked='<|script:greeting|>', read='') -%}
{%- for tool in tools or [] -%}
{%- if tool.function.name == 'WebSearch' -%}{%- set state.asked = '<|script:WebSearch|>' -%}{%- endif -%}
{%- if tool.function.name == 'web_search' -%}{%- set state.asked = '<|script:web_search|>' -%}{%- endif -%}
{{- '<|im_start|>system\\n<tools>' + (tool | tojson) + '</tools> A call is <tool_call>\\n{"name": ..., "arguments": {...}}\\n</tool_call><|im_end|>\\n' -}}
{%- endfor -%}
{%- for message in messages -%}
{%- if message.role == 'tool' -%}{%- set state.read = '<|script:found|>' if '${page.content}' in message.content else '<|script:nothing|>' -%}{%- endif -%}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') -}}
{%- for call in message.tool_calls or [] -%}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' + (state.read or state.asked) -}}
{%- endif -%}`;

const callOf = (name: string): string =>
  `<tool_call>\n{"name": "${name}", "arguments": {"query": "${query}"}}\n</tool_call>`;

describe.skipIf(claude === undefined)("WebSearch of Claude Code", () => {
  let folder: string;
  let searxng: SearxngDouble;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "truewire-claude-search-"));
    searxng = await searxngDouble([page]);
  });
  afterAll(() => {
    searxng?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Each source: the entry of the configuration, and how it is stopped. */
  const sources: Readonly<Record<string, () => Promise<{ entry: object; close(): Promise<void> }>>> = {
    async "a local model"() {
      const path = join(folder, "programmed.gguf");
      writeProgrammedModel(path, {
        contextLength: 65_536,
        chatTemplate: template,
        scripts: {
          greeting: { say: "Done." },
          WebSearch: { say: callOf("WebSearch") },
          web_search: { say: callOf("web_search") },
          found: { say: `It says: ${page.content} See [the notes](${page.url}).` },
          nothing: { say: "Nothing was found" },
        },
      });
      return { entry: { kind: "local", path, contextSize: 65_536 }, close: async () => {} };
    },
    async "a program"() {
      const program = resolve("test/fixtures/searching-model.ts");
      return { entry: { kind: "program", program, name: "program" }, close: async () => {} };
    },
    async "a chat server"() {
      const double = await startChat({}, turns);
      return { entry: { kind: "upstream", url: double.url }, close: () => double.close() };
    },
    async Ollama() {
      const double = await startOllama({
        reply: ({ body }) => {
          const step = stepOf(body);
          return "text" in step ? step.text : { calls: [{ name: step.call, arguments: { query } }] };
        },
      });
      return { entry: { kind: "upstream", url: double.url }, close: () => double.close() };
    },
    async "Gemini, which demands the signature of each call back"() {
      const double = await startChat(gemini(), turns, ["gemini-3-pro-preview"]);
      const close = async (): Promise<void> => {
        await double.close();
        expect(double.refusals).toEqual([]);
      };
      return { entry: { kind: "upstream", url: double.url }, close };
    },
  };

  const options = ["--tools", "WebSearch", "--allowedTools", "WebSearch", "--system-prompt", "You search the web."];
  options.push("--output-format", "stream-json", "--verbose");

  test.each(Object.keys(sources))("over %s", async (name) => {
    const { entry, close } = (await sources[name]?.()) ?? expect.fail();
    const config = join(folder, "truewire.json");
    const hostedTools = { webSearch: searxng.url };
    writeFileSync(config, JSON.stringify({ port: 0, hostedTools, models: [{ ...entry, aliases: ["claude-*"] }] }));
    const truewire = await startTruewire(["--config", config]);
    searxng.searches.length = 0;
    try {
      const { code, stdout, stderr } = await runClaudeCode(
        claude ?? "",
        { folder, url: truewire.url },
        "What do the release notes say?",
        ...options,
      );
      expect(code, `${stderr}${stdout}${truewire.stderr()}`).toBe(0);
      expect(searxng.searches.map((search) => search.get("q"))).toEqual([query]);
      const lines = stdout.split("\n").filter((line) => line.startsWith("{"));
      const told = lines.map((line) => JSON.parse(line) as { type: string; tool_use_result?: object; result?: string });
      // What its interface says as "Did 1 search" is made of this.
      expect(told.find(({ tool_use_result: result }) => result)?.tool_use_result).toMatchObject({
        query,
        searchCount: 1,
        results: expect.arrayContaining([
          expect.objectContaining({ content: [{ title: page.title, url: page.url }] }),
        ]) as unknown,
      });
      expect(told.at(-1)).toMatchObject({
        type: "result",
        result: `It says: ${page.content} See [the notes](${page.url}).`,
      });
    } finally {
      await truewire.stop();
      await close();
    }
  });
});
