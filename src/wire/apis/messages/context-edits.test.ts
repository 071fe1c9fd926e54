import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { estimateTokens } from "../../core/estimate-tokens.ts";
import type { FailureError } from "../../core/failure.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { runSync } from "../../core/steps.ts";
import { editContext, type EditedContext } from "./context-edits.ts";
import { messagesPort } from "./port.ts";
import { readMessageRequest } from "./request.ts";
import type { ContextEdit } from "./request-schema.ts";

type Json = Record<string, unknown>;

const long = "x".repeat(400);
const user = (content: unknown): Json => ({ role: "user", content });
const call = (id: string, name = "read"): Json => ({
  role: "assistant",
  content: [
    { type: "thinking", thinking: `About ${id}.`, signature: "" },
    { type: "tool_use", id, name, input: { path: id } },
  ],
});
const result = (id: string): Json => user([{ type: "tool_result", tool_use_id: id, content: long }]);
const tools = ["read", "find"].map((name) => ({ name, input_schema: { type: "object" } }));

function read(messages: readonly Json[]): GenerationRequest {
  return readMessageRequest({ model: "m", max_tokens: 10, tools, messages }, "req_1").request;
}

const count = (request: GenerationRequest) => Promise.resolve(estimateTokens(request));

function edit(messages: readonly Json[], ...edits: ContextEdit[]): Promise<EditedContext> {
  return editContext(read(messages), edits, count);
}

/** The results, calls and reasoning of the edited conversation, in order. */
function shown({ request: { prompt } }: EditedContext): string[] {
  if (prompt.kind !== "chat") return [];
  return prompt.messages.flatMap(({ role, content }) => {
    if (role === "tool") return [content === long ? "result" : "cleared"];
    if (typeof content === "string" || content === null) return [role];
    return content.map((part) => {
      if (part.type === "tool-call") return part.arguments;
      return part.type;
    });
  });
}

const steps = (...ids: string[]): Json[] => ids.flatMap((id) => [call(id), result(id)]);
const five = [user("Go"), ...steps("1", "2", "3", "4", "5")];
const uses = (value: number) => ({ type: "tool_uses" as const, value });
const tokens = (value: number) => ({ type: "input_tokens" as const, value });
const clearing = { type: "clear_tool_uses_20250919" as const };

describe("clear_tool_uses_20250919", () => {
  test("clears nothing below its trigger, which is 100,000 tokens by default", async () => {
    for (const edited of [await edit(five, clearing), await edit(five, { ...clearing, trigger: uses(5) })]) {
      expect(edited.applied).toEqual([]);
      expect(shown(edited)).not.toContain("cleared");
    }
  });

  test("clears the results of the oldest calls and keeps three", async () => {
    const edited = await edit(five, { ...clearing, trigger: tokens(300) });
    expect(shown(edited).filter((part) => part === "result" || part === "cleared")).toEqual([
      "cleared",
      "cleared",
      "result",
      "result",
      "result",
    ]);
    expect(edited.applied).toEqual([
      { type: clearing.type, cleared_tool_uses: 2, cleared_input_tokens: expect.any(Number) },
    ]);
    expect(edited.applied[0]?.["cleared_input_tokens"]).toBeGreaterThan(100);
    expect(shown(edited)).not.toContain("{}");
  });

  test("keep, exclude_tools and clear_tool_inputs", async () => {
    const messages = [user("Go"), call("1", "find"), result("1"), ...steps("2", "3")];
    const all = { ...clearing, trigger: uses(1), keep: uses(0) };
    const results = shown(await edit(messages, { ...all, exclude_tools: ["find"] }));
    expect(results.filter((part) => part === "result" || part === "cleared")).toEqual(["result", "cleared", "cleared"]);
    expect(
      shown(await edit(messages, { ...all, clear_tool_inputs: true })).filter((part) => part === "{}").length,
    ).toBe(3);
    const named = await edit(messages, { ...all, clear_tool_inputs: ["find"] });
    expect(shown(named).filter((part) => part === "{}").length).toBe(1);
  });

  test("clears nothing if that saves less than clear_at_least", async () => {
    const edit_ = { ...clearing, trigger: uses(1), clear_at_least: tokens(10_000) };
    expect((await edit(five, edit_)).applied).toEqual([]);
  });
});

describe("clear_thinking_20251015", () => {
  const clears = { type: "clear_thinking_20251015" as const };
  const turns = [...five, { role: "assistant", content: "Done." }, user("More"), ...steps("6", "7"), user("And?")];

  test("keeps the thinking of the last turn, however many steps it has", async () => {
    const edited = await edit(turns, clears);
    expect(shown(edited).filter((part) => part === "reasoning").length).toBe(2);
    expect(edited.applied).toEqual([
      { type: clears.type, cleared_thinking_turns: 1, cleared_input_tokens: expect.any(Number) },
    ]);
  });

  test.each(["all" as const, { type: "all" as const }, { type: "thinking_turns" as const, value: 2 }])(
    "keep: %j keeps all",
    async (keep) => expect((await edit(turns, { ...clears, keep })).applied).toEqual([]),
  );
});

test("compact_20260112 is refused when its trigger is reached, and only then", async () => {
  expect((await edit(five, { type: "compact_20260112" })).applied).toEqual([]);
  const refused = await edit(five, { type: "compact_20260112", trigger: tokens(50) }).catch(
    (error: FailureError) => error.failure,
  );
  expect(refused).toMatchObject({
    status: 400,
    details: { error_code: "compaction_unavailable" },
    param: "context_management.edits.0",
  });
});

test("for any conversation and edit: calls keep their results, no message disappears, and the client's request is not changed", async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(8), fc.nat(8), fc.nat(4), fc.boolean(), async (number, trigger, keep, inputs) => {
      const messages = [user("Go"), ...steps(...Array.from({ length: number }, (_, at) => String(at)))];
      const request = read(messages);
      const before = JSON.stringify(request);
      const edited = await editContext(
        request,
        [{ ...clearing, trigger: uses(trigger), keep: uses(keep), clear_tool_inputs: inputs }],
        count,
      );
      expect(JSON.stringify(request)).toBe(before);
      const roles = ({ prompt }: GenerationRequest) =>
        prompt.kind === "chat"
          ? prompt.messages.map((message) => [message.role, message.role === "tool" && message.toolCallId])
          : [];
      expect(roles(edited.request)).toEqual(roles(request));
      const cleared = shown(edited).filter((part) => part === "cleared").length;
      expect(cleared).toBe(number > trigger ? Math.max(0, number - keep) : 0);
    }),
  );
});

test("an upstream of this API edits by itself: count_tokens asks it without context_management, then with it", async () => {
  const body = {
    model: "m",
    messages: [{ role: "user", content: "Hi" }],
    context_management: { edits: [{ type: "clear_thinking_20251015" }] },
  };
  const { tokenCounter } = messagesPort;
  if (!tokenCounter) throw new Error("The API counts tokens.");
  const read = runSync(tokenCounter.readRequest(body, "req_1", { forwards: true }));
  expect(read.request.passthrough?.body).toEqual({ model: "m", messages: body.messages });
  expect((await read.editPrompt?.(async () => 1))?.passthrough?.body).toEqual(body);
});
