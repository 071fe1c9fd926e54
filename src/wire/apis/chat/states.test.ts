import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { orderViolation } from "../../../../test/upstream/legal-order.ts";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { assistantParts, type Message } from "../../core/message.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type { ReasoningState } from "../../core/turn-state.ts";
import type { ServerProfile } from "../adapt/server-profile.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import { exact, lean, type Profile } from "../profile.ts";
import { turnSeal } from "../turn-seal.ts";
import { chatReader } from "./read.ts";
import { DetailsMerger } from "./reasoning-details.ts";
import { readChatRequest } from "./request.ts";
import { writeChatRequest } from "./send.ts";
import { writeChatResponse } from "./write-body.ts";
import { writeChatMessages } from "./write-messages.ts";
import { ChatStreamWriter } from "./write-stream.ts";

/* The states that chat servers give with reasoning and calls, on their way to the client and back. */

type Members = Readonly<Record<string, unknown>>;
const envelope = { id: "c", object: "chat.completion.chunk", created: 1700000000, model: "m" };
const chunk = (delta: Members, reason: string | null = null): string =>
  `data: ${JSON.stringify({ ...envelope, choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
const done = "data: [DONE]\n\n";
const bodyOf = (message: Members): object => ({
  ...envelope,
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop" }],
});

function read(input: string | object, pieces?: readonly number[]): GenerationEvent[] {
  const reader = chatReader({ newCallId: () => "call_made", source: "here" });
  if (typeof input !== "string") return reader.readBody(input);
  const events: GenerationEvent[] = [];
  let from = 0;
  for (const length of [...(pieces ?? []), input.length]) {
    events.push(...reader.push(input.slice(from, from + length)));
    from += length;
  }
  events.push(...reader.end());
  expect(orderViolation(events)).toBeNull();
  return events;
}

/** The parts of an answer, in order; a state by its value. */
function partsOf(events: readonly GenerationEvent[]): unknown[] {
  return (accumulate(events).choices[0]?.parts ?? []).map((part) => {
    if (part.type === "reasoning") return [part.text, part.state?.value];
    return part.type === "text" ? part.text : part.type;
  });
}

const seal = turnSeal(new Uint8Array(32).fill(7), "ada");

function context(profile: Profile, passExtra?: readonly string[]): ChoicesContext {
  return {
    profile,
    requested: {
      stream: true,
      includeUsage: false,
      logprobs: false,
      namedToolChoice: false,
      legacyFunctions: false,
      includeTimings: false,
    },
    id: "chatcmpl-1",
    created: 1700000000,
    model: "m",
    settings: passExtra ? { passExtra } : {},
    turnSeal: seal,
    random: () => 0,
  };
}

/** The message that a client has after an answer, streamed and whole, as OpenRouter's own clients join it. */
function messagesOf(events: readonly GenerationEvent[], own: ChoicesContext): Members[] {
  const streamed: Record<string, unknown> = { role: "assistant", content: null };
  for (const line of new ChatStreamWriter(own).write(events).split("\n\n")) {
    if (!line.startsWith("data: {")) continue;
    const { choices } = JSON.parse(line.slice(6)) as { choices: { delta: Record<string, unknown> }[] };
    for (const [name, value] of Object.entries(choices[0]?.delta ?? {})) {
      if (typeof value === "string" && name !== "role") streamed[name] = `${String(streamed[name] ?? "")}${value}`;
      else if (name === "reasoning_details")
        streamed[name] = [...((streamed[name] ?? []) as unknown[]), ...(value as unknown[])];
      else if (name === "tool_calls") addCalls(streamed, value as Members[]);
    }
  }
  const whole = JSON.parse(writeChatResponse(accumulate(events), own)) as { choices: { message: Members }[] };
  return [streamed, whole.choices[0]?.message ?? {}];
}

function addCalls(message: Record<string, unknown>, fragments: readonly Members[]): void {
  const calls = (message["tool_calls"] ??= []) as Record<string, unknown>[];
  for (const { index, ...fragment } of fragments) {
    const call = calls[Number(index)];
    if (!call) calls[Number(index)] = fragment;
    else {
      const more = fragment["function"] as { arguments: string };
      const known = call["function"] as { arguments: string };
      call["function"] = { ...known, arguments: known.arguments + more.arguments };
    }
  }
}

const text = (part: string, more: Members = {}): Members => ({
  type: "reasoning.text",
  text: part,
  format: "anthropic-claude-v1",
  index: 0,
  ...more,
});
const encrypted = (data: string, index: number, id: string): Members => ({
  type: "reasoning.encrypted",
  data,
  id,
  format: "google-gemini-v1",
  index,
  vendor: { kept: true },
});
const call = (index: number, id: string): Members => ({
  index,
  id,
  type: "function",
  function: { name: "look", arguments: '{"at":"x"}' },
});

/** Agents over OpenRouter failed at their second step: its entries were read as text only, and no double demanded them. */
describe("reasoning_details of a source", () => {
  const thinking =
    chunk({ role: "assistant", content: "", reasoning: "Let ", reasoning_details: [text("Let ")] }) +
    chunk({ content: "", reasoning: "me see.", reasoning_details: [text("me see.", { signature: null })] }) +
    chunk({ content: "", reasoning_details: [text("", { signature: "sig" })] });
  const joined = text("Let me see.", { signature: "sig" });

  test("the chunks of an entry are joined, and end the reasoning before a text or a call", () => {
    const calls = chunk({ tool_calls: [call(0, "a")] }) + chunk({}, "tool_calls") + done;
    expect(partsOf(read(thinking + calls))).toEqual([["Let me see.", [joined]], "tool-call"]);
    const answer = chunk({ content: "Six." }) + chunk({ content: " Or so." }) + chunk({}, "stop") + done;
    expect(partsOf(read(thinking + answer))).toEqual([["Let me see.", [joined]], "Six. Or so."]);
    expect(partsOf(read(thinking + chunk({}, "stop") + done))).toEqual([["Let me see.", [joined]]]);
  });

  test("what comes with or after the calls is a part of its own, and entries of parallel calls stay apart", () => {
    const [one, two] = [encrypted("x", 0, "a"), encrypted("y", 0, "b")];
    const stream =
      chunk({ role: "assistant", tool_calls: [call(0, "a")], reasoning_details: [one] }) +
      chunk({ tool_calls: [call(1, "b")], reasoning_details: [two] }) +
      chunk({}, "tool_calls") +
      done;
    expect(partsOf(read(stream))).toEqual([["", [one]], "tool-call", "tool-call", ["", [two]]]);
  });

  test("a text is not cut in two by encrypted entries that come with it", () => {
    const stream =
      chunk({ role: "assistant", content: "One " }) +
      chunk({ content: "two", reasoning_details: [encrypted("x", 0, "r")] }) +
      chunk({ content: " three." }) +
      chunk({}, "stop") +
      done;
    expect(partsOf(read(stream))).toEqual(["One two three.", ["", [encrypted("x", 0, "r")]]]);
  });

  test("entries of a whole answer stay as they are", () => {
    const details = [text("A"), text("B"), { type: "reasoning.summary", summary: "S" }, encrypted("x", 3, "a")];
    const message = { content: "Six.", reasoning: "AB", reasoning_details: details };
    expect(partsOf(read(bodyOf(message)))).toEqual([["AB", details], "Six."]);
    const { reasoning: _, ...withoutText } = message;
    expect(partsOf(read(bodyOf(withoutText)))).toEqual([["ABS", details], "Six."]);
  });

  test("the state names who made it", () => {
    const [part] = accumulate(read(thinking + chunk({}, "stop") + done)).choices[0]?.parts ?? [];
    expect(part).toMatchObject({ state: { kind: "details", source: "here" } });
  });

  test("for every cut of a stream, repeated chunks included", () => {
    const again = chunk({ reasoning: "a", reasoning_details: [text("a")] });
    const stream = thinking + again.repeat(6) + chunk({ content: "b" }).repeat(6) + chunk({}, "stop") + done;
    const expected = read(stream);
    expect(partsOf(expected)).toEqual([
      ["Let me see.aaaaaa", [text("Let me see.aaaaaa", { signature: "sig" })]],
      "bbbbbb",
    ]);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 12 }), (pieces) => {
        expect(partsOf(read(stream, pieces))).toEqual(partsOf(expected));
      }),
    );
  });

  test("a client whose API has the member gets the entries as they came, others do not", () => {
    const events = read(thinking + chunk({ tool_calls: [call(0, "a")] }) + chunk({}, "tool_calls") + done);
    for (const message of messagesOf(events, context(lean))) expect(message["reasoning_details"]).toEqual([joined]);
    for (const message of messagesOf(events, context(exact))) expect(message).not.toHaveProperty("reasoning_details");
    for (const message of messagesOf(events, context(exact, ["reasoning_details"])))
      expect(message["reasoning_details"]).toEqual([joined]);
  });

  test("the work is linear in the chunks of an entry", () => {
    const cost = (count: number): number => {
      const began = process.cpuUsage();
      const merger = new DetailsMerger();
      for (let at = 0; at < count; at++) merger.add([text("some words ")]);
      expect(merger.take()).toHaveLength(1);
      return process.cpuUsage(began).user + 1;
    };
    cost(20_000);
    expect(cost(320_000)).toBeLessThan(Math.max(cost(20_000), 2_000) * 80);
  });

  test("more than is kept is no state, and no error", () => {
    const merger = new DetailsMerger();
    for (let at = 0; at < 10_002; at++) merger.add([{ type: "reasoning.text", text: "a", index: at }]);
    expect(merger.take()).toBeUndefined();
  });
});

const from = (state: ReasoningState, shown: string): GenerationEvent[] => [
  { type: "start", choice: 0 },
  { type: "part-start", choice: 0, kind: "reasoning", id: "rs_1" },
  { type: "reasoning-delta", choice: 0, text: shown },
  { type: "part-end", choice: 0, state },
  { type: "text-delta", choice: 0, text: "Six." },
  { type: "finish", choice: 0, reason: "stop" },
  { type: "end", end: { kind: "done" } },
];

/** A chat client over Anthropic or OpenAI lost the state of each turn: chat answers had no member for it, and no test asked for it back. */
describe("a state that chat has no member for", () => {
  const states: readonly ReasoningState[] = [
    { kind: "signature", value: "c2ln", source: "one" },
    { kind: "redacted", value: "c2VjcmV0", source: "one" },
    { kind: "encrypted", value: "gAAA", source: "two" },
  ];

  test.each(states)("$kind comes back from the client as it was", (state) => {
    const shown = state.kind === "redacted" ? "" : "Let me see.";
    for (const message of messagesOf(from(state, shown), context(lean))) {
      const [entry] = message["reasoning_details"] as Members[];
      expect(entry).toMatchObject({ type: "reasoning.encrypted", format: "truewire-v1", index: 0 });
      const body = { model: "m", messages: [{ role: "user", content: "a" }, message] };
      const { request } = readChatRequest(body, "req_1", { turnSeal: seal });
      const [, back] = request.prompt.kind === "chat" ? request.prompt.messages : [];
      const parts = back?.role === "assistant" ? assistantParts(back) : [];
      expect(parts).toEqual([
        { type: "reasoning", text: shown, id: "rs_1", state },
        { type: "text", text: "Six." },
      ]);
      // No server gets the sealed entry.
      const sent = JSON.stringify(writeChatRequest({ ...request, stream: false }, {}));
      expect(sent).not.toContain("truewire");
    }
    for (const message of messagesOf(from(state, shown), context(exact, ["reasoning_details"])))
      expect(message).not.toHaveProperty("reasoning_details");
  });

  test("one of another client, or a changed one, is nothing", () => {
    const [message = {}] = messagesOf(from(states[0] as ReasoningState, "A"), context(lean));
    const [entry = {}] = message["reasoning_details"] as Members[];
    const other = turnSeal(new Uint8Array(32).fill(7), "eve");
    const changed = { ...entry, data: `${String(entry["data"]).slice(0, -2)}AA` };
    for (const [details, own] of [
      [entry, other],
      [changed, seal],
    ] as const) {
      const messages = [{ role: "assistant", content: "Six.", reasoning_content: "A", reasoning_details: [details] }];
      const { request } = readChatRequest({ model: "m", messages }, "req_1", { turnSeal: own });
      expect(request.prompt).toMatchObject({ messages: [{ content: [{ type: "reasoning", text: "A" }, {}] }] });
      expect(JSON.stringify(writeChatRequest(request, {}))).not.toContain("truewire");
    }
  });
});

describe("the states in a request", () => {
  const readMessages = (message: Members): readonly Message[] => {
    const { request } = readChatRequest({ model: "m", messages: [message] }, "req_1", { turnSeal: seal });
    return request.prompt.kind === "chat" ? request.prompt.messages : [];
  };

  test("of calls, in details and in thinking blocks, before texts and calls", () => {
    const details = [text("A", { signature: "sig" }), encrypted("x", 1, "a")];
    const extra_content = { google: { thought_signature: "s" } };
    const { index: _, ...called } = call(0, "a");
    const [message] = readMessages({
      role: "assistant",
      content: "Six.",
      reasoning: "A",
      reasoning_details: details,
      tool_calls: [{ ...called, extra_content }],
    });
    expect(message).toMatchObject({
      content: [
        { type: "reasoning", text: "A", state: { kind: "details", value: details } },
        { type: "text", text: "Six." },
        { type: "tool-call", id: "a", state: { kind: "call", value: { extra_content } } },
      ],
    });
    const blocks = [
      { type: "thinking", thinking: "A", signature: "one" },
      { type: "redacted_thinking", data: "two" },
    ];
    expect(
      readMessages({
        role: "assistant",
        content: null,
        reasoning_content: "A",
        thinking_blocks: blocks,
        tool_calls: [called],
      }),
    ).toMatchObject([
      {
        content: [
          { type: "reasoning", text: "A", state: { kind: "signature", value: "one" } },
          { type: "reasoning", text: "", state: { kind: "redacted", value: "two" } },
          { type: "tool-call" },
        ],
      },
    ]);
  });

  test.each([
    [{ tool_calls: [{ ...call(0, "a"), extra_content: "s" }] }, "messages[0].tool_calls[0].extra_content"],
    [{ reasoning_details: "x" }, "messages[0].reasoning_details"],
    [{ reasoning_details: [1] }, "messages[0].reasoning_details[0]"],
    [{ thinking_blocks: [{ type: "thinking", signature: 1 }] }, "messages[0].thinking_blocks[0].signature"],
    [{ thinking_blocks: [{ type: "redacted_thinking" }] }, "messages[0].thinking_blocks[0].data"],
  ])("an illegal one is refused at its place: %j", (members, param) => {
    const message = { role: "assistant", content: "a", ...members };
    expect(() => readMessages(message)).toThrow(
      expect.objectContaining({ failure: expect.objectContaining({ param }) }),
    );
  });

  test("for every conversation: what is written is read again", () => {
    const word = fc.string({ minLength: 1, maxLength: 6 });
    const value = fc.string({ minLength: 1, maxLength: 8, unit: "grapheme-ascii" }).map((one) => `v${one}`);
    const state: fc.Arbitrary<ReasoningState> = fc.oneof(
      fc.record({
        kind: fc.constant("details" as const),
        value: fc.array(fc.dictionary(word, fc.jsonValue()), { minLength: 1, maxLength: 3 }),
      }),
      fc.record({ kind: fc.constant("signature" as const), value }),
    );
    const callState = fc.record({
      kind: fc.constant("call" as const),
      value: fc.record({ extra_content: fc.dictionary(word, value, { minKeys: 1 }) }),
    });
    const reasoning = fc.record({ type: fc.constant("reasoning" as const), text: word, state });
    const assistant = fc
      .record({
        reasoning: fc.option(reasoning),
        text: fc.option(word),
        states: fc.array(fc.option(callState), { minLength: 1, maxLength: 3 }),
      })
      .map(({ reasoning, text, states }): Message => ({
        role: "assistant",
        content: [
          ...(reasoning ? [reasoning] : []),
          ...(text === null ? [] : [{ type: "text" as const, text }]),
          ...states.map((one, at) => ({
            type: "tool-call" as const,
            id: `call_${at}`,
            name: "f",
            arguments: "{}",
            ...(one && { state: one }),
          })),
        ],
      }));
    fc.assert(
      fc.property(fc.array(assistant, { minLength: 1, maxLength: 4 }), (messages) => {
        const body = { model: "m", messages: writeChatMessages(messages, { states: true }) };
        const { request } = readChatRequest(JSON.parse(JSON.stringify(body)), "req_1");
        expect(request.prompt).toMatchObject({ messages: JSON.parse(JSON.stringify(messages)) as object });
      }),
    );
  });
});

describe("a client's own messages", () => {
  const { index: _, ...called } = call(0, "a");
  const raw: Members = {
    role: "assistant",
    content: null,
    own: 1,
    reasoning_details: [encrypted("foreign", 0, "a")],
    tool_calls: [{ ...called, own: 2, extra_content: { foreign: true } }],
  };
  const requestOf = (message: Message, hasOtherStates: boolean): GenerationRequest => {
    const { request } = readChatRequest({ model: "m", messages: [raw] }, "req_1");
    return {
      ...request,
      prompt: { kind: "chat", messages: [message], template: {} },
      passthrough: { dialect: "chat", body: { model: "m", messages: [raw] }, hasOtherStates },
    };
  };
  const calling = { type: "tool-call", id: "a", name: "look", arguments: '{"at":"x"}' } as const;

  test("get the states that the conversation has, and lose all others", () => {
    const details = [encrypted("mine", 0, "a")];
    const message: Message = {
      role: "assistant",
      content: [
        { type: "reasoning", text: "Let me see.", state: { kind: "details", value: details } },
        { ...calling, state: { kind: "call", value: { extra_content: { mine: true } } } },
      ],
    };
    expect(writeChatRequest(requestOf(message, true), {})["messages"]).toEqual([
      {
        role: "assistant",
        content: null,
        own: 1,
        reasoning_content: "Let me see.",
        reasoning_details: details,
        tool_calls: [{ ...called, own: 2, extra_content: { mine: true } }],
      },
    ]);
    expect(writeChatRequest(requestOf({ role: "assistant", content: [calling] }, true), {})["messages"]).toEqual([
      { role: "assistant", content: null, own: 1, tool_calls: [{ ...called, own: 2 }] },
    ]);
  });

  test("stay as they are where the conversation has the same states", () => {
    const message: Message = { role: "assistant", content: [calling] };
    expect(writeChatRequest(requestOf(message, false), {})["messages"]).toEqual([raw]);
  });
});

/** Sent by a client of another API, so that the messages are written anew. */
function sent(messages: readonly Message[], profile: ServerProfile): { messages: unknown; notes: string[] } {
  const { request } = readChatRequest({ model: "m", messages: [{ role: "user", content: "a" }] }, "req_1");
  const { passthrough: _, ...others } = request;
  const notes: string[] = [];
  const neutral = { ...others, prompt: { kind: "chat", messages, template: {} } as const };
  const body = writeChatRequest(neutral, profile, (name, place) => notes.push(`${name} ${place}`));
  return { messages: body["messages"], notes };
}

describe("what servers demand and take", () => {
  const calls = (...states: (string | undefined)[]): Message => ({
    role: "assistant",
    content: states.map((state, at) => ({
      type: "tool-call",
      id: `call_${at}`,
      name: "f",
      arguments: "{}",
      ...(state !== undefined && {
        state: { kind: "call", value: { extra_content: { google: { thought_signature: state } } } },
      }),
    })),
  });

  test("a documented value stands in for a call's state that is missing, in the first call of each message", () => {
    const messages = [calls(undefined, undefined), calls("mine", undefined), calls(undefined, "late")];
    const { messages: written, notes } = sent(messages, { stateDemand: "extra_content" });
    const signatures = (written as Members[]).map(({ tool_calls: list }) =>
      (list as { extra_content?: { google: Members } }[]).map((one) => one.extra_content?.google["thought_signature"]),
    );
    const standIn = "skip_thought_signature_validator";
    expect(signatures).toEqual([
      [standIn, undefined],
      ["mine", undefined],
      [standIn, "late"],
    ]);
    expect(notes).toEqual([
      "state-stand-in messages[0].tool_calls[0].extra_content",
      "state-stand-in messages[2].tool_calls[0].extra_content",
    ]);
  });

  test("an entry with the id of the first call stands in for missing details", () => {
    const { messages } = sent([calls(undefined)], { stateDemand: "reasoning_details" });
    expect(messages).toMatchObject([
      { reasoning_details: [{ type: "reasoning.encrypted", id: "call_0", index: 0, format: "google-gemini-v1" }] },
    ]);
  });

  test("states in members that a server does not take are left out, and the notes say which", () => {
    const message: Message = {
      role: "assistant",
      content: [
        { type: "reasoning", text: "A", state: { kind: "signature", value: "s" } },
        { type: "reasoning", text: "B", state: { kind: "details", value: [text("B")] } },
        ...assistantParts(calls("mine") as Message & { role: "assistant" }),
      ],
    };
    expect(sent([message], { states: ["thinking_blocks"] })).toMatchObject({
      messages: [{ thinking_blocks: [{ type: "thinking", thinking: "A", signature: "s" }] }],
      notes: ["state-member messages[0].reasoning_details", "state-member messages[0].tool_calls[0].extra_content"],
    });
    expect(JSON.stringify(sent([message], { states: [] }).messages)).not.toMatch(/thinking_blocks|details|extra/);
    // Of a server that nothing is known of: what it has made itself, and not what a client of another API has sent.
    const own = JSON.parse(JSON.stringify(message), (name, value: unknown) =>
      name === "state" ? { ...(value as object), source: "its own" } : value,
    ) as Message;
    expect(JSON.stringify(sent([own], {}).messages)).toMatch(/reasoning_details.*thinking_blocks.*extra_content/);
    expect(JSON.stringify(sent([message], {}).messages)).not.toMatch(/thinking_blocks/);
  });

  test("reasoning is a part of the content for a server that takes it there", () => {
    const message: Message = {
      role: "assistant",
      content: [
        { type: "reasoning", text: "A" },
        { type: "text", text: "B" },
      ],
    };
    const { messages, notes } = sent([message, { role: "user", content: "C" }], { reasoningMember: "content" });
    expect(messages).toEqual([
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "A" }] },
          { type: "text", text: "B" },
        ],
      },
      { role: "user", content: "C" },
    ]);
    expect(notes).toEqual(["reasoning-member messages[0].reasoning_content"]);
  });

  test("demanded reasoning is empty only where there is none", () => {
    const reasoned: Message = {
      role: "assistant",
      content: [
        { type: "reasoning", text: "A" },
        ...assistantParts(calls(undefined) as Message & { role: "assistant" }),
      ],
    };
    const messages = [calls(undefined), reasoned, calls(undefined), { role: "assistant", content: "B" } as const];
    const written = sent(messages, { reasoningDemand: "calls" }).messages as Members[];
    expect(written.map((one) => one["reasoning_content"])).toEqual(["", "A", "", undefined]);
  });
});
