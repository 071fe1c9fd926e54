import { existsSync, readFileSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { startGateway } from "./gateway.ts";
import { deepseek } from "../doubles/deepseek.ts";
import { mistral } from "../doubles/mistral.ts";
import { ollama, ollamaNative } from "../doubles/ollama.ts";
import { hasTemplate, qwen } from "../doubles/qwen.ts";
import { listOf, startChat } from "../doubles/chat-server.ts";
import type { Json, Double, ChatServer, Turn } from "../doubles/chat-server.ts";
import { strings } from "../doubles/strings.ts";
import { vllm } from "../doubles/vllm.ts";

/*
 * Agents over chat servers that refuse what the real ones refuse. Before requests were adapted, none of these requests was served: the
 * doubles of servers here accepted every request, so no test could see it.
 */

const servers: readonly ChatServer[] = [
  vllm,
  ...(hasTemplate ? [qwen()] : []),
  deepseek,
  strings,
  mistral,
  ollama(),
  ollama({ reasons: true }),
  ollamaNative,
];
if (!hasTemplate) console.log("skipped: no ../shared/chat-templates/Qwen3.5-4B.jinja to render requests with");

const running: (Double | TruewireServer)[] = [];
afterEach(async () => {
  for (const server of running.splice(0).reverse()) await server.close(0);
});

async function setUp(
  server: Partial<ChatServer>,
  turn: Turn,
  options: Parameters<typeof startGateway>[1] = {},
): Promise<{ upstream: Double; truewire: TruewireServer }> {
  const upstream = await startChat(server, turn);
  running.push(upstream);
  const truewire = await startGateway(upstream.url, options);
  running.push(truewire);
  return { upstream, truewire };
}

async function ask(truewire: TruewireServer, path: string, body: Json): Promise<{ status: number; text: string }> {
  const response = await fetch(`${truewire.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ ...body, model: "m" }),
  });
  return { status: response.status, text: await response.text() };
}

/** The data of a stream's events. */
function eventsOf(text: string): Json[] {
  return text.split("\n").flatMap((line) => (line.startsWith("data: {") ? [JSON.parse(line.slice(6)) as Json] : []));
}

const patch = '*** Begin Patch\n*** Update File: notes.txt\n@@\n-"second"\t\\n\n+zweite Zeile 😀\n*** End Patch\n';

const applyPatch = {
  type: "custom",
  name: "apply_patch",
  description: "Edits files. This is a FREEFORM tool, so do not wrap the patch in JSON.",
  format: { type: "grammar", syntax: "lark", definition: "start: begin_patch hunk+ end_patch" },
};

const exec = {
  type: "function",
  name: "exec_command",
  description: "Runs a command.",
  strict: false,
  parameters: { type: "object", properties: { cmd: { type: "string" } }, required: ["cmd"] },
};

const said = (role: string, text: string): Json => ({
  type: "message",
  role,
  content: [{ type: "input_text", text }],
});

/** The shape of Codex's requests: developer messages, two user messages, members of Responses alone, a custom tool. */
const codexInput = [
  said("developer", "You are a coding agent."),
  said("developer", "<permissions instructions>read-only</permissions instructions>"),
  said("user", "<environment_context><cwd>/work</cwd></environment_context>"),
  said("user", "run echo hi"),
];
const codex: Json = {
  stream: true,
  input: codexInput,
  tools: [
    exec,
    applyPatch,
    { type: "namespace", name: "agents", description: "Agents.", tools: [{ ...exec, name: "close_agent" }] },
    { type: "web_search", external_web_access: false },
  ],
  tool_choice: "auto",
  parallel_tool_calls: true,
  reasoning: { effort: "medium", summary: "auto" },
  store: false,
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: "01a200c5",
  client_metadata: { thread_id: "01a200c5" },
};
const codexAgain: Json = {
  ...codex,
  input: [
    ...codexInput,
    { type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: "I must edit." }] },
    {
      type: "custom_tool_call",
      status: "completed",
      call_id: "call_2gSnF58IEhXLwlbnqbm5XKMd",
      name: "apply_patch",
      input: patch,
    },
    { type: "custom_tool_call_output", call_id: "call_2gSnF58IEhXLwlbnqbm5XKMd", output: "Done" },
    said("developer", "The sandbox is now off."),
  ],
};

const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } };
const read = { name: "Read", description: "Reads a file.", input_schema: { type: "object", properties: {} } };

/** The shape of Claude Code's requests: a system message behind the user's first words, an effort for the turn, adaptive thinking. */
const claude: Json = {
  max_tokens: 128_000,
  stream: true,
  system: [
    { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.330;" },
    { type: "text", text: "You are a Claude agent.", cache_control: { type: "ephemeral" } },
  ],
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "<system-reminder>\nCommits\n</system-reminder>" },
        { type: "text", text: "Look at dot.png" },
      ],
    },
    { role: "system", content: [{ type: "text", text: "# Environment" }], output_config: { effort: "medium" } },
  ],
  tools: [read],
  metadata: { user_id: "{}" },
  thinking: { type: "adaptive", display: "updates" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "medium" },
};
const claudeAgain: Json = {
  ...claude,
  messages: [
    ...(claude["messages"] as Json[]),
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "I must read it.", signature: "ErYCCg==" },
        { type: "tool_use", id: "toolu_01ABHJ56tk1g7taZ3FTwmay7", name: "Read", input: { file_path: "dot.png" } },
      ],
    },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "toolu_01ABHJ56tk1g7taZ3FTwmay7", content: [image] }],
    },
    { role: "system", content: "The date has changed." },
  ],
};

const folder = new URL("../../../shared/client-captures/", import.meta.url);

/** Recorded requests of a client; none where they are absent. */
function captured(name: string): Json[] {
  const file = new URL(name, folder);
  if (!existsSync(file)) {
    console.log(`skipped: no ../shared/client-captures/${name} to send`);
    return [];
  }
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => (JSON.parse(line) as { body: Json }).body);
}

const codexRequests: readonly (readonly [string, Json])[] = [
  ["a first request", codex],
  ["a request with an edit and its result", codexAgain],
  ...captured("codex-0.169.0.jsonl").map((body, at) => [`recorded request ${at + 1}`, body] as const),
];
const claudeRequests: readonly (readonly [string, Json])[] = [
  ["a first request", claude],
  ["a request with an image in a result, and a late system message", claudeAgain],
  ...[
    "claude-code-2.1.233-recorded.jsonl",
    "claude-code-2.1.330.jsonl",
    "claude-code-2.1.330-max-tokens.jsonl",
  ].flatMap((name) => captured(name).map((body, at) => [`${name}, request ${at + 1}`, body] as const)),
];

describe.each(servers)("$name", (server) => {
  // Only models that see take images; what a server without such a model says of one is no matter of form.
  const isBlind = server === deepseek || server === strings;

  test.each(codexRequests)("Codex: %s is served, and a call arrives", async (_, body) => {
    const { upstream, truewire } = await setUp(server, {
      calls: [{ name: "exec_command", input: { cmd: "echo hi" } }],
    });
    const { status, text } = await ask(truewire, "/v1/responses", body);
    expect([status, upstream.refusals]).toEqual([200, []]);
    expect(completed(text)["output"]).toMatchObject([
      { type: "function_call", name: "exec_command", arguments: '{"cmd":"echo hi"}', status: "completed" },
    ]);
  });

  test.each([true, false])("Codex: an edit arrives as the call of a custom tool (stream: %s)", async (stream) => {
    const { truewire } = await setUp(server, { calls: [{ name: "apply_patch", input: { input: patch } }] });
    const { text } = await ask(truewire, "/v1/responses", { ...codex, stream });
    const response = stream ? completed(text) : (JSON.parse(text) as Json);
    expect(response["output"]).toMatchObject([{ type: "custom_tool_call", name: "apply_patch", input: patch }]);
    if (!stream) return;
    const deltas = eventsOf(text).filter(({ type }) => type === "response.custom_tool_call_input.delta");
    expect(deltas.map(({ delta }) => delta).join("")).toBe(patch);
    // The text arrives as the server sends it, and not at the end.
    if (server.wholeCalls !== true) expect(deltas.length).toBeGreaterThan(5);
  });

  test.each(claudeRequests.filter(([, body]) => !(isBlind && JSON.stringify(body).includes('"type":"image"'))))(
    "Claude Code: %s is served, and a call arrives",
    async (_, body) => {
      const { upstream, truewire } = await setUp(server, { calls: [{ name: "Read", input: { file_path: "a" } }] });
      const { status, text } = await ask(truewire, "/v1/messages?beta=true", body);
      expect([status, upstream.refusals]).toEqual([200, []]);
      const events = eventsOf(text);
      expect(events).toContainEqual(
        expect.objectContaining({
          content_block: expect.objectContaining({ type: "tool_use", name: "Read" }) as unknown,
        }),
      );
      expect(events.at(-1)).toEqual({ type: "message_stop" });
    },
  );
});

function completed(text: string): Json {
  const last = eventsOf(text).at(-1);
  expect(last?.["type"]).toBe("response.completed");
  return last?.["response"] as Json;
}

test("a server that is known to accept custom tools gets them as they are", async () => {
  const { upstream, truewire } = await setUp({}, "Hi", {
    requests: { customTools: true, systemMessages: "anywhere", instructionRole: "any", sharedMembers: true },
  });
  await ask(truewire, "/v1/responses", codexAgain);
  const [body] = upstream.requests;
  expect(body?.["tools"]).toContainEqual({
    type: "custom",
    custom: expect.objectContaining({ name: "apply_patch" }) as unknown,
  });
  expect(listOf(body?.["messages"]).map(({ role }) => role)).toEqual([
    "developer",
    "developer",
    "user",
    "user",
    "assistant",
    "tool",
    "developer",
  ]);
  expect(body).toMatchObject({ prompt_cache_key: "01a200c5" });
  expect(body).not.toHaveProperty("client_metadata");
});

test("the metrics count each adaptation by its name", async () => {
  const { truewire } = await setUp(vllm, "Hi");
  await ask(truewire, "/v1/messages", claudeAgain);
  await ask(truewire, "/v1/responses", codex);
  const metrics = await (await fetch(`${truewire.url}/metrics`)).text();
  const counted = [...metrics.matchAll(/truewire_repairs_total\{[^}]*repair="([^"]+)"[^}]*\} (\d+)/g)];
  expect(Object.fromEntries(counted.map(([, name, count]) => [name, Number(count)]))).toEqual({
    "reasoning-member": 1,
    "custom-tool": 1,
    "foreign-member": 2,
    "instruction-role": 2,
    "system-as-user": 1,
    "system-joined": 2,
    "tool-image": 1,
  });
});

// A Responses client's string became a list when the next request referred to its response, so the beginning of the prompt changed.
test("a conversation by previous_response_id begins as it began, whatever form its client sends", async () => {
  const { upstream, truewire } = await setUp(strings, "Hi");
  let previous: string | undefined;
  for (const input of ["One", [said("user", "Two")], [{ role: "user", content: "Three" }], "Four"]) {
    const { text } = await ask(truewire, "/v1/responses", {
      input,
      instructions: "Be brief.",
      ...(previous !== undefined && { previous_response_id: previous }),
    });
    previous = (JSON.parse(text) as { readonly id: string }).id;
  }
  const sent = upstream.requests.map(({ messages }) => JSON.stringify(messages).slice(0, -1));
  expect(sent).toHaveLength(4);
  expect(upstream.refusals).toEqual([]);
  for (const [at, messages] of sent.slice(0, -1).entries()) expect(sent[at + 1]?.startsWith(messages)).toBe(true);
});

test("a chat client's lists of plain texts are strings, whoever has sent them, and marks of a cache stay where a server may read them", async () => {
  const { upstream, truewire } = await setUp({}, "Hi");
  const parts = [
    { type: "text", text: "A" },
    { type: "text", text: "B" },
  ];
  const marked = [{ ...parts[0], cache_control: { type: "ephemeral" } }, parts[1]];
  const call = { id: "c1", type: "function", function: { name: "f", arguments: "{}" } };
  await ask(truewire, "/v1/chat/completions", {
    messages: [
      { role: "system", content: parts },
      { role: "user", content: parts },
      { role: "assistant", content: parts, tool_calls: [call] },
      { role: "tool", tool_call_id: "c1", content: parts },
      { role: "user", content: marked },
    ],
  });
  const contents = listOf(upstream.requests[0]?.["messages"]).map(({ content }) => content);
  expect(contents).toEqual(["A\nB", "A\nB", "A\nB", "A\nB", marked]);
});

test("what an agent has sent before stays the beginning of what it sends, so that a cache of prompts finds it", async () => {
  const { upstream, truewire } = await setUp(vllm, "Hi");
  const turns = claudeAgain["messages"] as Json[];
  const answered = { role: "assistant", content: [{ type: "text", text: "Hi" }] };
  const later = [...turns, answered, { role: "user", content: "On" }, { role: "system", content: "Plan mode is on." }];
  for (const messages of [claude["messages"], turns, later])
    await ask(truewire, "/v1/messages", { ...claudeAgain, messages });
  const sent = upstream.requests.map(({ messages }) => messages as Json[]);
  expect(sent).toHaveLength(3);
  for (const [at, messages] of sent.slice(0, -1).entries())
    expect(sent[at + 1]?.slice(0, messages.length)).toEqual(messages);
  expect(sent[2]?.at(-1)).toEqual({
    role: "user",
    content: "On\n\n<system-reminder>\nPlan mode is on.\n</system-reminder>",
  });
});

test("an effort over Ollama 0.17, which takes no levels, is refused once and then learned", async () => {
  const { upstream, truewire } = await setUp(ollama({ reasons: true, takesLevels: false }), "Hi");
  const body = { messages: [{ role: "user", content: "Hello" }], reasoning_effort: "low" };
  for (let count = 0; count < 2; count++) expect((await ask(truewire, "/v1/chat/completions", body)).status).toBe(200);
  expect(upstream.refusals).toHaveLength(1);
});
