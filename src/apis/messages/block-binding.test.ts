import { describe, expect, test } from "vitest";
import { accumulate } from "../../core/accumulate.ts";
import { FailureError } from "../../core/failure.ts";
import type { JsonObject } from "../../core/json.ts";
import { exact, lean } from "../profile.ts";
import { readMessageRequest } from "./request.ts";
import type { MessageReadOptions } from "./request.ts";
import { MessageStreamWriter } from "./write-stream.ts";
import { writeMessageResponse } from "./write.ts";

const beta = "thinking-binding-controls-2026-08-01";
const headers =
  (betas?: string) =>
  (name: string): string | undefined =>
    name === "anthropic-version" ? "2026-10-21" : betas;

const refusing = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "error" } };
const first = {
  model: "m",
  max_tokens: 100,
  system: "Be brief.",
  tools: [{ name: "f", input_schema: { type: "object" } }],
  thinking: refusing,
  messages: [{ role: "user", content: "#thought" }],
};

/** What a model thinks and says, in each form, in answer to a request. */
function answers(body: JsonObject, options: MessageReadOptions): JsonObject[] {
  const { options: own } = readMessageRequest(body, "req_1", options);
  const context = {
    profile: options.profile ?? lean,
    created: 0,
    model: "m",
    settings: {},
    random: () => 0.5,
    id: "msg_01",
    options: own,
  };
  const events = [
    { type: "start", choice: 0 },
    { type: "reasoning-delta", choice: 0, text: "Hm." },
    { type: "text-delta", choice: 0, text: "Yes." },
    { type: "finish", choice: 0, reason: "stop" },
    { type: "end", end: { kind: "done" } },
  ] as const;
  const stream = new MessageStreamWriter(context).write(events);
  const [, data = ""] = /^event: message_start\ndata: (.*)$/m.exec(stream) ?? [];
  const [, signature = ""] = /"signature_delta","signature":"([^"]+)"/.exec(stream) ?? [];
  const whole = JSON.parse(writeMessageResponse(accumulate(events), context)) as JsonObject;
  const streamed = {
    ...(JSON.parse(data) as { message: JsonObject }).message,
    content: [
      { type: "thinking", thinking: "Hm.", signature },
      { type: "text", text: "Yes." },
    ],
  };
  return [whole, streamed];
}

const exactly = { profile: exact, header: headers(beta) };
const contents = answers(first, exactly).map(({ content }) => content);
const next = (content: unknown, members: JsonObject = {}): JsonObject => ({
  ...first,
  messages: [...first.messages, { role: "assistant", content }, { role: "user", content: "Go on." }],
  ...members,
});

function refusalOf(body: JsonObject, options: MessageReadOptions): string {
  try {
    readMessageRequest(body, "req_1", options);
  } catch (error) {
    if (error instanceof FailureError) return error.message;
    throw error;
  }
  return "read";
}

describe("thinking blocks of this server", () => {
  test("are accepted with the conversation that they belong to, however the client caches it", () => {
    const cache_control = { type: "ephemeral" };
    for (const content of contents) {
      expect(refusalOf(next(content), exactly)).toBe("read");
      const [user] = next(content)["messages"] as { content: string }[];
      const messages = [
        { role: "user", content: [{ type: "text", text: user?.content, cache_control }] },
        { role: "assistant", content },
      ];
      const tools = first.tools.map((tool) => ({ ...tool, cache_control }));
      expect(refusalOf(next(content, { messages, tools }), exactly)).toBe("read");
    }
  });

  // A system prompt or a result that became a block was a different conversation.
  test("are accepted whether a text is a string or a block", () => {
    const conversation = (form: (text: string) => unknown) => {
      const calls = { type: "tool_use", id: "toolu_1", name: "f", input: {} };
      const results = { type: "tool_result", tool_use_id: "toolu_1", content: form("1") };
      const messages = [
        { role: "user", content: form("#thought") },
        { role: "assistant", content: [calls] },
        { role: "user", content: [results] },
      ];
      return { ...first, system: form("Be brief."), messages };
    };
    const earlier = conversation((text) => text);
    const later = conversation((text) => [{ type: "text", text, cache_control: { type: "ephemeral" } }]);
    for (const { content } of answers(earlier, exactly)) {
      const messages = [...later.messages, { role: "assistant", content }, { role: "user", content: "Go on." }];
      expect(refusalOf({ ...later, messages }, exactly)).toBe("read");
    }
  });

  const words = (more: string, at = "1.content.0"): string =>
    `messages.${at}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block".${more}`;
  const changes: readonly [part: string, sentence: string, members: JsonObject][] = [
    ["system", " The `system` prompt differs from the one this block was created with.", { system: "Be long." }],
    ["tools", " The `tools` list differs from the one this block was created with.", { tools: [] }],
    ["messages", "", {}],
  ];

  test.each(changes)("are refused with other %s", (part, sentence, members) => {
    for (const content of contents) {
      const whole = next(content, members);
      const [, ...others] = whole["messages"] as unknown[];
      const body =
        part === "messages" ? { ...whole, messages: [{ role: "user", content: "Else." }, ...others] } : whole;
      expect(refusalOf(body, exactly)).toBe(words(sentence));
      // Profile lean binds no blocks, and an upstream of this API checks its own.
      expect(refusalOf(body, { profile: lean })).toBe("read");
      expect(refusalOf(body, { ...exactly, forwards: true })).toBe("read");
      // Agents shorten their history and connect tools later. Every one that did was refused.
      for (const block_binding of [undefined, null]) {
        const thinking = { type: "adaptive", ...(block_binding === null && { block_binding }) };
        expect(refusalOf({ ...body, thinking }, exactly)).toBe("read");
      }
    }
    for (const { content } of answers(first, { profile: lean }))
      expect(refusalOf(next(content, members), exactly)).toBe("read");
  });

  test("are dropped if the request says so, and the message reports it", () => {
    const thinking = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } };
    const reported = (body: JsonObject) =>
      answers(body, exactly).map((message) => {
        const members = Object.keys(message);
        if (message["input_transformations"] !== undefined)
          expect(members.slice(-3)).toEqual(["usage", "input_transformations", "diagnostics"]);
        return message["input_transformations"];
      });
    for (const content of contents) {
      expect(reported(next(content, { thinking }))).toEqual([[], []]);
      const changed = next(content, { thinking, system: "Be long." });
      const dropped = [{ type: "thinking_dropped", path: "messages.1.content.0", reason: "prefix_binding_mismatch" }];
      expect(reported(changed)).toEqual([dropped, dropped]);
      const { prompt } = readMessageRequest(changed, "req_1", exactly).request;
      expect(JSON.stringify(prompt)).not.toContain("Hm.");
      expect(JSON.stringify(prompt)).toContain("Yes.");
      expect(reported(next(content, { thinking: { type: "adaptive" } }))).toEqual([undefined, undefined]);
    }
  });

  test("are bound to any beginning of their message, and not to other thinking before them", () => {
    const [content] = contents as JsonObject[][];
    const [thinking, text] = content ?? [];
    const joined = [{ type: "text", text: "Begun:" }, thinking, text];
    const begun = { ...first, messages: [...first.messages, { role: "assistant", content: "Begun:" }] };
    const [own] = answers(begun, exactly).flatMap(({ content: blocks }) => blocks as JsonObject[]);
    expect(refusalOf(next([joined[0], own, text]), exactly)).toBe("read");
    expect(refusalOf(next([thinking, own, text]), exactly)).toBe(words("", "1.content.1"));
    expect(refusalOf(next([{ type: "thinking", thinking: "", signature: "others" }, thinking, text]), exactly)).toBe(
      "read",
    );
  });
});
