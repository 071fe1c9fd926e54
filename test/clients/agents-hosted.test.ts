import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import {
  Agent,
  codeInterpreterTool,
  fileSearchTool,
  hostedMcpTool,
  MemorySession,
  OpenAIProvider,
  Runner,
  webSearchTool,
} from "@openai/agents";
import type { RunItem, Tool } from "@openai/agents";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listOf, objectOf, startChat, textOf } from "../doubles/chat-server.ts";
import type { Double, Turns } from "../doubles/chat-server.ts";
import { searxngDouble } from "../doubles/searxng.ts";
import type { SearxngDouble } from "../doubles/searxng.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";

/* OpenAI's Agents SDK with the tools that OpenAI runs, over sources that know functions only. */

const page = { url: "https://truewire.example/notes", title: "Release notes", content: "Version 2 is faster." };

/** The chat server's model does what `../hosted/calling-model.mjs` does. The images of a result are a message of the user after it. */
const turns: Turns = ({ messages }) => {
  const result = listOf(messages).findLast(({ role }) => role === "tool");
  if (result) return `The tool said: ${textOf(result["content"])}`;
  const text = textOf(listOf(messages).at(-1)?.["content"]);
  const [, name = "", given = "{}"] = /^(\w+) (\{[^]*\})$/.exec(text) ?? [];
  return name === "" ? "Hello." : { calls: [{ name, input: objectOf(JSON.parse(given)) }] };
};

describe("the Agents SDK", () => {
  let folder: string;
  let searxng: SearxngDouble;
  let chat: Double;
  let truewire: RunningTruewire;
  let runner: Runner;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "truewire-agents-"));
    searxng = await searxngDouble([page]);
    chat = await startChat({}, turns, ["chat"]);
    const config = {
      port: 0,
      hostedTools: {
        webSearch: searxng.url,
        mcp: { notes: resolve("examples/mcp-notes.js") },
        programs: {
          code_interpreter: resolve("test/hosted/run-code.mjs"),
          file_search: resolve("test/hosted/search-files.mjs"),
        },
      },
      models: [
        { kind: "program", name: "program", program: resolve("test/hosted/calling-model.mjs") },
        { kind: "upstream", url: chat.url },
      ],
    };
    writeFileSync(join(folder, "truewire.json"), JSON.stringify(config));
    truewire = await startTruewire(["--config", join(folder, "truewire.json")]);
    const modelProvider = new OpenAIProvider({ baseURL: `${truewire.url}/v1`, apiKey: "none", useResponses: true });
    runner = new Runner({ modelProvider, tracingDisabled: true });
  });
  afterAll(async () => {
    await truewire?.stop();
    await chat?.close();
    searxng?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  interface Ran {
    readonly output: string;
    readonly items: readonly RunItem[];
  }

  async function run(model: string, stream: boolean, tools: Tool[], input: string): Promise<Ran> {
    const agent = new Agent({ name: "Helper", model, tools });
    if (!stream) {
      const { finalOutput, newItems } = await runner.run(agent, input);
      return { output: String(finalOutput), items: newItems };
    }
    const result = await runner.run(agent, input, { stream: true });
    let text = "";
    for await (const chunk of result.toTextStream()) text += chunk;
    await result.completed;
    expect(text).toBe(result.finalOutput);
    return { output: text, items: result.newItems };
  }

  /** The hosted calls of a run, as the SDK has them. */
  const calls = (items: readonly RunItem[]): unknown[] =>
    items.flatMap(({ type, rawItem }) => (type === "tool_call_item" ? [rawItem] : []));

  const sources = ["program", "chat"].flatMap((model) => [false, true].map((stream) => ({ model, stream })));
  const notes = { serverLabel: "notes", serverUrl: "mcp:notes" } as const;
  const read = 'mcp__notes__read_note {"name":"tides.md"}';

  describe.each(sources)("over a $model, stream: $stream", ({ model, stream }) => {
    test("webSearchTool", async () => {
      const { output, items } = await run(model, stream, [webSearchTool()], 'web_search {"query":"release notes"}');
      expect(output).toContain(page.content);
      expect(calls(items)).toMatchObject([{ type: "hosted_tool_call", name: "web_search_call", status: "completed" }]);
      expect(searxng.searches.at(-1)?.get("q")).toBe("release notes");
    });

    test("fileSearchTool", async () => {
      const tools = [fileSearchTool("vs_1", { includeSearchResults: true })];
      const { output, items } = await run(model, stream, tools, 'file_search {"query":"tides"}');
      expect(output).toContain("the tide is high");
      expect(calls(items)).toMatchObject([
        {
          name: "file_search_call",
          status: "completed",
          providerData: { queries: ["tides"], results: [{ file_id: "file_1", filename: "vs_1.md" }] },
        },
      ]);
    });

    test("codeInterpreterTool", async () => {
      const { output, items } = await run(model, stream, [codeInterpreterTool()], 'code_interpreter {"code":"20+22"}');
      expect(output).toContain("42");
      expect(calls(items)).toMatchObject([{ name: "code_interpreter_call", status: "completed" }]);
    });

    test("hostedMcpTool without approvals", async () => {
      const { output, items } = await run(model, stream, [hostedMcpTool({ ...notes, requireApproval: "never" })], read);
      expect(output).toContain("tide");
      expect(calls(items)).toMatchObject([
        { name: "mcp_list_tools", providerData: { server_label: "notes" } },
        { name: "mcp_call", status: "completed", providerData: { name: "read_note", error: null } },
      ]);
    });

    test("hostedMcpTool whose calls a function approves, or rejects", async () => {
      const asked: unknown[] = [];
      for (const approve of [true, false]) {
        const tool = hostedMcpTool({
          ...notes,
          requireApproval: "always",
          onApproval: async (_, { rawItem }) => {
            asked.push(rawItem);
            return { approve, reason: "because" };
          },
        });
        const { output } = await run(model, stream, [tool], read);
        if (approve) expect(output).toMatch(/^The tool said: .*tide/s);
        else expect(output).not.toMatch(/high water/i);
      }
      expect(asked).toMatchObject([{ name: "read_note" }, { name: "read_note" }]);
    });
  });

  test("hostedMcpTool whose calls wait for a person", async () => {
    const tools = [hostedMcpTool({ ...notes, requireApproval: "always" })];
    const agent = new Agent({ name: "Helper", model: "program", tools });
    const first = await runner.run(agent, read);
    expect(first.interruptions).toMatchObject([{ rawItem: { name: "read_note" } }]);
    for (const interruption of first.interruptions) first.state.approve(interruption);
    const { finalOutput } = await runner.run(agent, first.state);
    expect(finalOutput).toMatch(/^The tool said: .*tide/s);
  });

  // The items of hosted calls are part of the next request.
  test("turns that continue a session, and a stored response", async () => {
    const tools = [webSearchTool(), hostedMcpTool({ ...notes, requireApproval: "never" })];
    const agent = new Agent({ name: "Helper", model: "program", tools });
    const session = new MemorySession();
    for (const input of [read, 'web_search {"query":"release notes"}'])
      expect((await runner.run(agent, input, { session })).finalOutput).toMatch(/^The tool said: /);
    const { lastResponseId: previousResponseId } = await runner.run(agent, read, { session });
    const { finalOutput } = await runner.run(agent, 'web_search {"query":"q"}', { previousResponseId });
    expect(finalOutput).toContain(page.content);
  });
});
