import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readChatRequest } from "../chat/request.ts";
import { readMessageRequest } from "./request.ts";
import { writeMessageRequest } from "./send.ts";
import { withoutTurnThinking } from "./thinking-turn.ts";

type Json = Readonly<Record<string, unknown>>;

const enabled = { type: "enabled", budget_tokens: 2048, display: "summarized" };
const user = { role: "user", content: "Hi" };
const use = { type: "tool_use", id: "toolu_1", name: "f", input: {} };
const later = { ...use, id: "toolu_2" };
const thinking = { type: "thinking", thinking: "Hm.", signature: "sig" };
const redacted = { type: "redacted_thinking", data: "data" };
const text = { type: "text", text: "I look." };
const said = (...content: Json[]) => ({ role: "assistant", content });
const result = (...ids: string[]) => ({
  role: "user",
  content: ids.map((id) => ({ type: "tool_result", tool_use_id: id, content: "ok" })),
});

/** Writes a request of a Messages client, and returns the names of its adaptations, too. */
function sent(messages: readonly Json[], members: Json = {}, profile = {}): { body: Json; notes: string[] } {
  const asked = { model: "claude-sonnet-4-5", max_tokens: 4096, messages, thinking: enabled, ...members };
  const notes: string[] = [];
  const { request } = readMessageRequest(asked, "req_1");
  const body = writeMessageRequest(request, profile, (name) => notes.push(name));
  return { body: JSON.parse(JSON.stringify(body)) as Json, notes };
}

describe("a request with thinking: enabled", () => {
  // A turn that another model had begun was refused at its next step: "Expected `thinking` or `redacted_thinking`, but found `tool_use`". No
  // test continued a turn that had begun without thinking.
  test.each<[string, Json[]]>([
    ["a call alone", [said(use), result("toolu_1")]],
    ["a text and a call", [said(text, use), result("toolu_1")]],
    ["two steps", [said(use), result("toolu_1"), said(later), result("toolu_2")]],
    ["parallel calls", [said(use, later), result("toolu_1", "toolu_2")]],
    [
      "the user's words after the result",
      [said(use), { ...result("toolu_1"), content: [...result("toolu_1").content, text] }],
    ],
    ["a system message after the result", [said(use), result("toolu_1"), { role: "system", content: "Note." }]],
  ])("continues a turn that does not begin with thinking: %s", (_, turn) => {
    const { body, notes } = sent([user, ...turn]);
    expect(body).not.toHaveProperty("thinking");
    expect(notes).toEqual(["thinking-mode"]);
    expect(body["messages"]).toEqual([user, ...turn]);
    const adaptive = sent([user, ...turn], { model: "claude-opus-4-6" }).body;
    expect(adaptive["thinking"]).toEqual({ type: "adaptive", display: "summarized" });
    expect(adaptive["messages"]).toEqual([user, ...turn]);
  });

  test.each<[string, Json[]]>([
    ["a first message", [user]],
    ["a turn that has ended", [user, said(use), result("toolu_1"), said(text), user]],
    ["a turn with thinking", [user, said(thinking, use), result("toolu_1")]],
    ["a turn with thinking that has no text", [user, said(redacted, text, use), result("toolu_1")]],
    // Without interleaved thinking, a model thinks at the beginning of a turn only.
    ["a step without thinking", [user, said(thinking, use), result("toolu_1"), said(later), result("toolu_2")]],
    ["the beginning of the answer", [user, said(text)]],
  ])("stays as the client sent it: %s", (_, messages) => {
    const { body, notes } = sent(messages, { context_management: { edits: [{ type: "clear_thinking_20251015" }] } });
    expect(body).toEqual({
      model: "claude-sonnet-4-5",
      max_tokens: 4096,
      messages,
      thinking: enabled,
      context_management: { edits: [{ type: "clear_thinking_20251015" }] },
    });
    expect(notes).toEqual([]);
  });

  test("without thinking, nothing is left that depends on it, nor any thinking of the running turn", () => {
    const before = [user, said(thinking, text), user];
    const turn = [said(use), result("toolu_1"), said(thinking, later), result("toolu_2")];
    const edits = [{ type: "clear_thinking_20251015" }, { type: "clear_tool_uses_20250919" }];
    const { body } = sent([...before, ...turn], { context_management: { edits } });
    expect(body["messages"]).toEqual([...before, said(use), result("toolu_1"), said(later), result("toolu_2")]);
    expect(body["context_management"]).toEqual({ edits: [{ type: "clear_tool_uses_20250919" }] });
  });

  test("can be sent as it came", () => {
    const turn = [user, said(use), result("toolu_1")];
    expect(sent(turn, {}, { adapt: { "thinking-mode": false } }).body["thinking"]).toEqual(enabled);
  });

  test.each([
    ["claude-opus-4-6", true],
    ["claude-sonnet-4-6-20260217", true],
    ["anthropic/claude-opus-4.8", true],
    ["us.anthropic.claude-sonnet-4-6-v1:0", true],
    ["claude-sonnet-5", true],
    ["claude-sonnet-4-20250514", false],
    ["claude-sonnet-4-5-20250929", false],
    ["claude-3-7-sonnet-20250219", false],
    ["claude-haiku-4-5", false],
    ["glm-4.7", false],
    ["my-model", false],
  ])("for %s, adaptive thinking is known: %s", (model, isAdaptive) => {
    const { body } = sent([user, said(use), result("toolu_1")], { model });
    expect("thinking" in body).toBe(isAdaptive);
    expect(sent([user, said(use), result("toolu_1")], {}, { model }).body).toMatchObject({ model });
  });
});

test("a client of another API gets its temperature back where thinking is left out", () => {
  const call = { id: "toolu_1", type: "function", function: { name: "f", arguments: "{}" } };
  const body = {
    model: "claude-sonnet-4-5",
    max_tokens: 4096,
    temperature: 0.5,
    top_k: 3,
    thinking_token_budget: 2048,
    messages: [
      user,
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "toolu_1", content: "ok" },
    ],
  };
  const write = (members: object) => writeMessageRequest(readChatRequest({ ...body, ...members }, "req_1").request, {});
  expect(write({ messages: [user] })).toMatchObject({ thinking: { type: "enabled", budget_tokens: 2048 } });
  expect(write({ messages: [user] })).not.toHaveProperty("temperature");
  // Anthropic refuses a smaller top_p with thinking, which was sent.
  expect(write({ messages: [user], temperature: 1, top_p: 0.7 })).not.toHaveProperty("top_p");
  expect(write({ messages: [user], temperature: 1, top_p: 0.96 })).toMatchObject({ top_p: 0.96 });
  expect(write({})).toMatchObject({ temperature: 0.5, top_k: 3 });
  expect(write({})).not.toHaveProperty("thinking");
  const adaptive = write({ model: "claude-opus-4-6" });
  expect(adaptive).toMatchObject({ thinking: { type: "adaptive" } });
  expect(adaptive).not.toHaveProperty("temperature");
});

test("for every conversation: the rule of the documentation holds, and no message before the turn changes", () => {
  const block = fc.constantFrom(thinking, redacted, text, use);
  const message = fc.oneof(
    fc.array(block, { minLength: 1, maxLength: 3 }).map((blocks) => said(...blocks)),
    fc.constantFrom(user, result("toolu_1")),
  );
  fc.assert(
    fc.property(fc.array(message, { minLength: 1, maxLength: 8 }), fc.boolean(), (messages, isNew) => {
      const model = isNew ? "claude-opus-4-6" : "claude-sonnet-4-5";
      const { body } = sent(messages, { model });
      const written = body["messages"] as { role: string; content: unknown }[];
      // The rule, said once more: from the last message that is no result.
      const start = messages.findLastIndex((one) => one.role === "user" && typeof one.content === "string") + 1;
      const begin = messages.slice(start).find(({ role }) => role === "assistant");
      const isContinued = messages.at(-1)?.role === "user" && start < messages.length;
      const [first] = (begin?.content ?? []) as Json[];
      const isRight = !isContinued || first === undefined || first === thinking || first === redacted;
      const { type } = (body["thinking"] ?? { type: "none" }) as Json;
      expect(type).toBe(isRight ? "enabled" : isNew ? "adaptive" : "none");
      expect(written.slice(0, start)).toEqual(messages.slice(0, start));
      if (isRight || isNew) expect(written).toEqual(messages);
      else expect(JSON.stringify(written.slice(start))).not.toContain("thinking");
    }),
  );
});

test("messages without thinking in the turn stay the same objects", () => {
  const messages = [user, said(thinking, text), user];
  expect(withoutTurnThinking(messages)).toBe(messages);
  expect(withoutTurnThinking("no list")).toBe("no list");
});
