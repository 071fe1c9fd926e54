import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { answer, callOf, ScriptedEngine } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";
import { startGateway } from "../upstream/gateway.ts";
import { startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";
import { dailyPart } from "../support/runs.ts";

let server: TruewireServer | undefined;
let upstream: ScriptedServer | undefined;
afterEach(async () => {
  await server?.close(0);
  await upstream?.close();
  upstream = undefined;
});

/** A server whose model calls `name` with these arguments, in two chunks, until it has a result. */
async function calling(name: string, args: unknown): Promise<{ engine: ScriptedEngine; url: string }> {
  const text = typeof args === "string" ? args : JSON.stringify(args);
  const engine = new ScriptedEngine(({ prompt }) =>
    prompt.kind === "chat" && prompt.messages.at(-1)?.role === "tool"
      ? answer(["Done."])
      : callOf(name, text.slice(0, 5), text.slice(5)),
  );
  server = await createServer({ port: 0, logLevel: "silent", ...serving(engine) });
  return { engine, url: server.url };
}

type ResponseTool = OpenAI.Responses.Tool;
type Item = OpenAI.Responses.ResponseInputItem;

const png = "data:image/png;base64,AA==";

/** Each tool with what the model writes, the item that the client gets, the client's result, and what the model reads of both. */
const cases: readonly {
  readonly tool: { readonly type: string; readonly [member: string]: unknown };
  readonly args: unknown;
  readonly item: object;
  readonly output: object;
  readonly result: unknown;
}[] = [
  {
    tool: { type: "shell", environment: { type: "local" } },
    args: { commands: ["ls", "pwd"], timeout_ms: 5000 },
    item: {
      id: expect.stringMatching(/^sh_/),
      type: "shell_call",
      status: "completed",
      action: { commands: ["ls", "pwd"], max_output_length: null, timeout_ms: 5000 },
      environment: { type: "local" },
    },
    output: {
      type: "shell_call_output",
      output: [{ stdout: "a", stderr: "", outcome: { type: "exit", exit_code: 0 } }],
    },
    result: '[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]',
  },
  {
    tool: { type: "local_shell" },
    args: { command: ["bash", "-lc", "ls"], env: { A: "1" }, working_directory: "/tmp" },
    item: {
      id: expect.stringMatching(/^lsh_/),
      type: "local_shell_call",
      status: "completed",
      action: {
        type: "exec",
        command: ["bash", "-lc", "ls"],
        env: { A: "1" },
        timeout_ms: null,
        user: null,
        working_directory: "/tmp",
      },
    },
    output: { type: "local_shell_call_output", output: "a\nb" },
    result: "a\nb",
  },
  {
    tool: { type: "apply_patch" },
    args: { type: "update_file", path: "a.txt", diff: "@@\n-old\n+new\n" },
    item: {
      id: expect.stringMatching(/^apc_/),
      type: "apply_patch_call",
      status: "completed",
      operation: { type: "update_file", path: "a.txt", diff: "@@\n-old\n+new\n" },
    },
    output: { type: "apply_patch_call_output", status: "failed", output: "no such file" },
    result: "failed: no such file",
  },
  {
    tool: { type: "apply_patch" },
    args: { type: "delete_file", path: "a.txt" },
    item: { type: "apply_patch_call", operation: { type: "delete_file", path: "a.txt" } },
    output: { type: "apply_patch_call_output", status: "completed" },
    result: "completed",
  },
  {
    tool: { type: "computer" },
    args: { actions: [{ type: "click", x: 1, y: 2, button: "left" }, { type: "screenshot" }] },
    item: {
      id: expect.stringMatching(/^cu_/),
      type: "computer_call",
      status: "completed",
      actions: [{ type: "click", x: 1, y: 2, button: "left" }, { type: "screenshot" }],
      pending_safety_checks: [],
    },
    output: { type: "computer_call_output", output: { type: "computer_screenshot", image_url: png } },
    result: [{ type: "image", url: png }],
  },
  {
    tool: { type: "computer_use_preview", display_width: 800, display_height: 600, environment: "linux" },
    args: { type: "type", text: "Hi" },
    item: { type: "computer_call", action: { type: "type", text: "Hi" }, pending_safety_checks: [] },
    output: { type: "computer_call_output", output: { type: "computer_screenshot", image_url: png } },
    result: [{ type: "image", url: png }],
  },
];

// They were dropped with "nothing here runs a tool of type …", although the client runs them, so agents could do nothing.
describe.each(dailyPart(["lean", "exact"], 2, 1))("OpenAI's tools that the client runs, wire %s", (wire) => {
  test.each(cases)("$tool.type $args.type", async ({ tool, args, item, output, result }) => {
    const { engine, url } = await calling(tool.type, args);
    const client = new OpenAI({
      baseURL: `${url}/v1`,
      apiKey: "none",
      maxRetries: 0,
      defaultHeaders: { "x-truewire-wire": wire },
    });
    const request = { model: "scripted", tools: [tool as ResponseTool] };
    const input: Item[] = [{ role: "user", content: "Go." }];
    const { data: whole, response: raw } = await client.responses.create({ ...request, input }).withResponse();
    expect(raw.headers.get("x-truewire-warning")).toBeNull();
    expect(whole.output).toMatchObject([{ ...item, call_id: `call_${"0".repeat(24)}` }]);
    expect(whole.tools).toMatchObject([tool]);
    expect(engine.requests[0]?.tools).toMatchObject([{ name: tool.type, parameters: { type: "object" } }]);

    const stream = client.responses.stream({ ...request, input });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.output_item.done",
      "response.completed",
    ]);
    expect((await stream.finalResponse()).output).toMatchObject([item]);

    const call = whole.output[0] as Item & { readonly call_id: string };
    const reply = { ...output, call_id: call.call_id } as unknown as Item;
    for (const next of [{ input: [...input, call, reply] }, { previous_response_id: whole.id, input: [reply] }]) {
      const { output_text: text } = await client.responses.create({ ...request, ...next });
      expect(text).toBe("Done.");
      const prompt = engine.requests.at(-1)?.prompt;
      const [, called, answered] = prompt?.kind === "chat" ? prompt.messages : [];
      const [part] = (called?.content ?? []) as unknown as { name: string; arguments: string }[];
      expect([part?.name, JSON.parse(part?.arguments ?? "")]).toEqual([tool.type, args]);
      expect(answered).toMatchObject({ role: "tool", toolCallId: call.call_id, name: tool.type, content: result });
    }
  });

  test("one of them can be chosen, and a shell in OpenAI's container is OpenAI's", async () => {
    const { engine, url } = await calling("shell", { commands: ["ls"] });
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", defaultHeaders: { "x-truewire-wire": wire } });
    const named = { model: "scripted", input: "Go.", tool_choice: { type: "shell" } } as const;
    await client.responses.create({ ...named, tools: [{ type: "shell" }, { type: "apply_patch" }] });
    expect(engine.requests[0]?.toolChoice).toEqual({ type: "named", name: "shell" });
    const contained = client.responses.create({
      ...named,
      tools: [{ type: "shell", environment: { type: "container_auto" } }],
    });
    await expect(contained).rejects.toMatchObject({ status: 400, param: "tool_choice" });
  });

  test.each([
    ["shell", '{"commands":"ls"}', { action: { commands: ["ls"] } }],
    ["shell", '{"command":["ls"]}', { action: { commands: ["ls"] } }],
    ["shell", "{}", { action: { commands: [] } }],
    ["local_shell", '{"command":"ls"}', { action: { type: "exec", command: ["bash", "-lc", "ls"], env: {} } }],
    [
      "apply_patch",
      '{"operation":{"type":"create_file","path":"a","diff":"+x"}}',
      { operation: { path: "a", diff: "+x" } },
    ],
    ["computer", '{"type":"wait"}', { actions: [{ type: "wait" }] }],
  ] as const)("what a model mixes up has the form of the item: %s %s", async (type, args, item) => {
    const { url } = await calling(type, args);
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", defaultHeaders: { "x-truewire-wire": wire } });
    const { output } = await client.responses.create({
      model: "scripted",
      input: "Go.",
      tools: [{ type } as ResponseTool],
    });
    expect(output).toMatchObject([item]);
  });
});

// They were refused with "a tool that only Anthropic's models know".
describe.each(dailyPart(["lean", "exact"], 2))("Anthropic's tools that the client runs, wire %s", (wire) => {
  test.each([
    [{ type: "bash_20250124", name: "bash" }, { command: "ls" }],
    [
      { type: "text_editor_20250124", name: "str_replace_editor" },
      { command: "undo_edit", path: "/a" },
    ],
    [
      { type: "text_editor_20250728", name: "str_replace_based_edit_tool" },
      { command: "view", path: "/a" },
    ],
    [
      { type: "memory_20250818", name: "memory" },
      { command: "view", path: "/memories" },
    ],
    [
      { type: "computer_20251124", name: "computer", display_width_px: 800, display_height_px: 600 },
      { action: "zoom", region: [0, 0, 10, 10] },
    ],
  ])("%j", async (tool, input) => {
    const { engine, url } = await calling(tool.name, input);
    const client = new Anthropic({
      baseURL: url,
      apiKey: "none",
      maxRetries: 0,
      defaultHeaders: { "x-truewire-wire": wire },
    });
    const request = { model: "scripted", max_tokens: 100, tools: [tool as Anthropic.ToolUnion] };
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: "Go." }];
    const whole = await client.messages.create({ ...request, messages });
    const block = { type: "tool_use", name: tool.name, input };
    expect(whole).toMatchObject({ stop_reason: "tool_use", content: [block] });
    expect(await client.messages.stream({ ...request, messages }).finalMessage()).toMatchObject({ content: [block] });
    const [declared] = engine.requests[0]?.tools ?? [];
    expect(declared).toMatchObject({ name: tool.name, parameters: { type: "object" } });
    // What the model writes is a call that the schema allows.
    const { properties } = (declared?.parameters ?? {}) as { properties: Record<string, { enum?: string[] }> };
    for (const [name, value] of Object.entries(input)) {
      expect(properties).toHaveProperty(name);
      if (properties[name]?.enum) expect(properties[name].enum).toContain(value);
    }
    expect(engine.requests[0]?.hostedTools).toBeUndefined();
    const [call] = whole.content;
    const id = call?.type === "tool_use" ? call.id : "";
    const next = await client.messages.create({
      ...request,
      messages: [
        ...messages,
        { role: "assistant", content: whole.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "a" }] },
      ],
    });
    expect(next.content).toMatchObject([{ type: "text", text: "Done." }]);
  });
});

describe("tools that the client runs, over other servers", () => {
  const shellCall = {
    id: `sh_${"0".repeat(50)}`,
    type: "shell_call",
    status: "completed",
    action: { commands: ["ls"], max_output_length: null, timeout_ms: null },
    call_id: "call_theirs",
    environment: { type: "local" },
  };

  test("a server of the same API gets the tool, and its own item comes back", async () => {
    upstream = await startScripted((response) => {
      response.setHeader("content-type", "application/json");
      response.end(
        JSON.stringify({
          id: "resp_1",
          object: "response",
          created_at: 1_760_000_000,
          status: "completed",
          model: "m",
          output: [shellCall],
          usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
        }),
      );
    });
    server = await startGateway(upstream.url, { api: "responses" });
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
    const tools: ResponseTool[] = [{ type: "shell", environment: { type: "local" } }];
    const output: Item = { type: "shell_call_output", call_id: "call_theirs", output: [] };
    const input: Item[] = [{ role: "user", content: "Go." }, shellCall as Item, output];
    const { output: answered } = await client.responses.create({ model: "m", input, tools });
    expect(upstream.requests[0]?.body).toMatchObject({ tools, input });
    expect(answered).toMatchObject([shellCall]);
  });

  test("a chat server gets a function, and its call is an item", async () => {
    upstream = await startScripted((response) => {
      const call = { id: "call_1", type: "function", function: { name: "shell", arguments: '{"commands":["ls"]}' } };
      const message = { role: "assistant", content: null, tool_calls: [call] };
      response.setHeader("content-type", "application/json");
      response.end(
        JSON.stringify({
          id: "chatcmpl-1",
          object: "chat.completion",
          created: 1_760_000_000,
          model: "m",
          choices: [{ index: 0, message, finish_reason: "tool_calls" }],
        }),
      );
    });
    server = await startGateway(upstream.url, { api: "chat" });
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
    const { output } = await client.responses.create({ model: "m", input: "Go.", tools: [{ type: "shell" }] });
    expect(upstream.requests[0]?.body).toMatchObject({
      tools: [{ type: "function", function: { name: "shell", parameters: { required: ["commands"] } } }],
    });
    expect(output).toMatchObject([{ type: "shell_call", call_id: "call_1", action: { commands: ["ls"] } }]);
  });
});
