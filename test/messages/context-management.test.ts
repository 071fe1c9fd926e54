import { afterAll, beforeAll, expect, test } from "vitest";
import { startLocalAndChat, type LocalAndChat } from "../support/local-and-chat.ts";
import { json } from "../support/transports.ts";
import { say } from "../upstream/scripted-server.ts";

// `context_management` was accepted and read by no engine: a client that relied on it sent its whole history to the model, unannounced.

const long = "y".repeat(600);
const steps = ["1", "2", "3", "4", "5"].flatMap((id) => [
  { role: "assistant", content: [{ type: "tool_use", id, name: "read", input: {} }] },
  { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: `${id} ${long}` }] },
]);
const body = {
  max_tokens: 20,
  tools: [{ name: "read", input_schema: { type: "object" } }],
  messages: [{ role: "user", content: "Go" }, ...steps],
};
const clearing = { edits: [{ type: "clear_tool_uses_20250919", trigger: { type: "input_tokens", value: 1000 } }] };
let both: LocalAndChat;
beforeAll(async () => {
  both = await startLocalAndChat(8192, (response, sent) => say(response, sent, "Fine."));
});
afterAll(() => both?.close());

type Answer = Record<string, unknown> & {
  readonly usage?: { readonly input_tokens: number; readonly cache_read_input_tokens: number };
};

/** The tokens of the prompt, with those that were cached. */
const promptTokens = ({ usage }: Answer): number => (usage?.input_tokens ?? 0) + (usage?.cache_read_input_tokens ?? 0);

async function ask(model: "local" | "chat", members: object): Promise<{ status: number; answer: Answer }> {
  const response = await fetch(`${both.url[model]}/v1/messages`, json({ model, ...body, ...members }));
  return { status: response.status, answer: (await response.json()) as Answer };
}

test("a local model gets the conversation without old results, and the answer says how many tokens were cleared", async () => {
  const whole = await ask("local", {});
  const { status, answer } = await ask("local", { context_management: clearing });
  expect(status).toBe(200);
  const cleared = promptTokens(whole.answer) - promptTokens(answer);
  expect(cleared).toBeGreaterThan(1000);
  expect(answer["context_management"]).toEqual({
    applied_edits: [{ type: "clear_tool_uses_20250919", cleared_tool_uses: 2, cleared_input_tokens: cleared }],
  });
  expect(whole.answer).not.toHaveProperty("context_management");
});

test("streamed, message_delta has the applied edits, and message_start has none, as recorded", async () => {
  const response = await fetch(
    `${both.url.local}/v1/messages`,
    json({ model: "local", ...body, stream: true, context_management: clearing }),
  );
  const text = await response.text();
  const [start = ""] = text.split("\n\n");
  expect(start).not.toContain("context_management");
  expect(/^data: (.*"message_delta".*)$/m.exec(text)?.[1]).toMatch(/"cleared_tool_uses":2/);
});

test("a chat server gets the edited conversation", async () => {
  // The tokens of the prompt are estimated: about 800.
  const edits = [{ type: "clear_tool_uses_20250919", trigger: { type: "input_tokens", value: 500 } }];
  const { answer } = await ask("chat", { context_management: { edits } });
  expect(answer["context_management"]).toMatchObject({ applied_edits: [{ cleared_tool_uses: 2 }] });
  const { messages = [] } = (both.upstream.requests.at(-1)?.body ?? {}) as {
    messages?: { role: string; content: string }[];
  };
  const results = messages.filter(({ role }) => role === "tool").map(({ content }) => content);
  expect(results.map((text) => text.includes(long))).toEqual([false, false, true, true, true]);
});

test("Claude Code's edit, which keeps all thinking, changes nothing", async () => {
  const edits = [{ type: "clear_thinking_20251015", keep: "all" }];
  const { status, answer } = await ask("local", { context_management: { edits } });
  expect([status, answer["context_management"]]).toEqual([200, { applied_edits: [] }]);
});

test.each([
  [{ type: "compact_20260112", trigger: { type: "input_tokens", value: 1000 } }, /^context_management\.edits\.0: /],
  [{ type: "forget_20300101" }, /^context_management\.edits\.0/],
  [{ type: "clear_thinking_20251015", keep: { type: "thinking_turns", value: 0 } }, /^context_management\.edits\.0\./],
])("%j is refused", async (edit, message) => {
  const { status, answer } = await ask("local", { context_management: { edits: [edit] } });
  expect([status, answer]).toMatchObject([400, { error: { type: "invalid_request_error" } }]);
  expect((answer["error"] as { message: string }).message).toMatch(message);
});

// `count_tokens` counted the conversation without the edits, so agents that measure before they send sent too little.
test("count_tokens counts after the edits, and has the number before them", async () => {
  const count = async (members: object): Promise<Answer> => {
    const { max_tokens: _, ...counted } = body;
    const request = json({ model: "local", ...counted, ...members });
    return (await (await fetch(`${both.url.local}/v1/messages/count_tokens`, request)).json()) as Answer;
  };
  const whole = await count({});
  expect(Object.keys(whole)).toEqual(["input_tokens"]);
  const compacting = { type: "compact_20260112", trigger: { type: "input_tokens", value: 50_000 } };
  const { answer } = await ask("local", { context_management: clearing });
  expect(await count({ context_management: { edits: [...clearing.edits, compacting] } })).toEqual({
    input_tokens: promptTokens(answer),
    context_management: { original_input_tokens: whole["input_tokens"] },
  });
  expect(await count({ context_management: { edits: [] } })).toEqual({
    ...whole,
    context_management: { original_input_tokens: whole["input_tokens"] },
  });
});

// A prompt that reached `compact_threshold` was refused with 400, although it fitted: agents that always send one could not use a local model.
test("Responses: beyond compact_threshold, the answer goes on until the context is full, with a warning", async () => {
  const context_management = [{ type: "compaction", compact_threshold: 1000 }];
  const respond = (input: string, members: object): Promise<Response> =>
    fetch(`${both.url.local}/v1/responses`, json({ model: "local", input, max_output_tokens: 20, ...members }));
  const response = await respond("y ".repeat(1500), { context_management });
  expect(response.status).toBe(200);
  expect(((await response.json()) as { usage: { input_tokens: number } }).usage.input_tokens).toBeGreaterThan(1000);
  expect(response.headers.get("x-truewire-warning")).toMatch(/^context_management: /);
  expect((await respond("Hi", {})).headers.get("x-truewire-warning")).toBeNull();
  const full = await respond("y ".repeat(9000), { context_management });
  expect([full.status, await full.json()]).toMatchObject([400, { error: { code: "context_length_exceeded" } }]);
});
