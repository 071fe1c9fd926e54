import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { accumulate } from "../../core/accumulate.ts";
import type { ServerProfile } from "../adapt/server-profile.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { assistantParts, type AssistantPart } from "../../core/message.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type { CallState, ReasoningState } from "../../core/turn-state.ts";
import { lean } from "../profile.ts";
import { turnSeal } from "../turn-seal.ts";
import { readMessageRequest } from "./request.ts";
import { writeMessageRequest } from "./send.ts";
import type { MessageContext, ReasoningDisplay } from "./write.ts";
import { writeMessageResponse } from "./write.ts";
import { MessageStreamWriter } from "./write-stream.ts";

/* What sources demand back, on its way through a client of the Messages API. */

type Json = { [name: string]: unknown };

type Said =
  | { readonly type: "reasoning"; readonly text: string; readonly state?: ReasoningState }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "call"; readonly id: string; readonly state?: CallState };

const seal = turnSeal(new Uint8Array(32).fill(7), "ann");

function eventsOf(said: readonly Said[]): GenerationEvent[] {
  let calls = 0;
  const parts = said.flatMap((part): GenerationEvent[] => {
    if (part.type === "call") {
      const index = calls++;
      const { id, state } = part;
      return [
        { type: "tool-call-start", choice: 0, index, id, name: "f", ...(state && { state }) },
        { type: "tool-call-delta", choice: 0, index, arguments: '{"a":1}' },
        { type: "tool-call-end", choice: 0, index, status: "succeeded" },
      ];
    }
    const state = part.type === "reasoning" && part.state ? { state: part.state } : {};
    return [
      { type: "part-start", choice: 0, kind: part.type },
      { type: part.type === "text" ? "text-delta" : "reasoning-delta", choice: 0, text: part.text },
      { type: "part-end", choice: 0, ...state },
    ];
  });
  const reason = calls > 0 ? "tool-calls" : "stop";
  return [...parts, { type: "finish", choice: 0, reason }, { type: "end", end: { kind: "done" } }];
}

function contextOf(reasoning: ReasoningDisplay, first = 0): MessageContext {
  let drawn = first;
  return {
    profile: lean,
    created: 1_786_000_000,
    model: "m",
    settings: {},
    random: () => (drawn++ % 97) / 97,
    options: { requestId: "req_1", reasoning },
    id: "msg_01",
    turnSeal: seal,
  };
}

function wholeContent(said: readonly Said[], display: ReasoningDisplay, first = 0): Json[] {
  const text = writeMessageResponse(accumulate(eventsOf(said)), contextOf(display, first));
  return (JSON.parse(text) as { content: Json[] }).content;
}

/** The content that a client puts together from the stream. */
function streamedContent(said: readonly Said[], display: ReasoningDisplay): Json[] {
  const writer = new MessageStreamWriter(contextOf(display));
  const stream = eventsOf(said)
    .map((event) => writer.write([event]))
    .join("");
  const blocks: Json[] = [];
  const inputs: string[] = [];
  for (const line of stream.split("\n").filter((one) => one.startsWith("data: "))) {
    const { type, index, content_block: block, delta } = JSON.parse(line.slice(6)) as Json & { index: number };
    if (type === "content_block_start") blocks[index] = block as Json;
    if (type !== "content_block_delta") continue;
    const { type: _, partial_json: json, ...members } = delta as Json;
    if (typeof json === "string") inputs[index] = (inputs[index] ?? "") + json;
    const open = blocks[index] ?? {};
    for (const [name, value] of Object.entries(members)) open[name] = String(open[name] ?? "") + String(value);
  }
  return blocks.map((block, index) =>
    block["type"] === "tool_use" ? { ...block, input: JSON.parse(inputs[index] ?? "{}") as unknown } : block,
  );
}

/** The request with which a client continues an answer. */
function continued(content: readonly Json[], turnSealOfReader = seal): GenerationRequest {
  const results = content
    .filter(({ type }) => type === "tool_use")
    .map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "ok" }));
  const messages = [
    { role: "user", content: "Hi" },
    { role: "assistant", content },
    { role: "user", content: results.length > 0 ? results : "Go on." },
  ];
  const body = { model: "m", max_tokens: 4096, thinking: { type: "adaptive" }, messages };
  return readMessageRequest(body, "req_2", { turnSeal: turnSealOfReader, forwards: true }).request;
}

function partsIn({ prompt }: GenerationRequest): readonly AssistantPart[] {
  const message = prompt.kind === "chat" ? prompt.messages.find(({ role }) => role === "assistant") : undefined;
  return message?.role === "assistant" ? assistantParts(message) : [];
}

/** Reasoning and calls with their states, without ids that this server has given. */
function statesIn(parts: readonly (AssistantPart | Said)[]): unknown[] {
  return parts.flatMap((part): unknown[] => {
    if (part.type === "text") return [part.text];
    if (part.type === "tool-call" || part.type === "call") return [{ call: part.state ?? null }];
    if (part.type !== "reasoning") return [];
    const { text, state = null } = part;
    // Where these are sent as they are, nothing says who made them.
    const isRaw = state?.kind === "signature" || state?.kind === "redacted";
    return [{ text, state: isRaw ? { kind: state.kind, value: state.value } : state }];
  });
}

function sentOn(request: GenerationRequest): { text: string; content: Json[] } {
  const text = JSON.stringify(writeMessageRequest(request, {}));
  const { messages } = JSON.parse(text) as { messages: Json[] };
  const message = messages.find(({ role }) => role === "assistant");
  return { text, content: Array.isArray(message?.["content"]) ? (message["content"] as Json[]) : [] };
}

const value = fc.oneof(fc.base64String({ minLength: 4, maxLength: 20 }), fc.stringMatching(/^[ -~]{1,12}$/));
const source = fc.constantFrom({}, { source: "https://a.example/v1 gemini" });
const textState = (...kinds: ("signature" | "redacted" | "encrypted")[]) =>
  fc
    .tuple(fc.constantFrom(...kinds), value, source)
    .map(([kind, own, made]): ReasoningState => ({ kind, value: own, ...made }));
const detailsState = fc
  .tuple(
    fc.array(fc.record({ type: fc.constant("reasoning.encrypted"), data: value }), { minLength: 1, maxLength: 2 }),
    source,
  )
  .map(([own, made]): ReasoningState => ({ kind: "details", value: own, ...made }));
const callState = fc.tuple(value, source).map(([own, made]): CallState => ({
  kind: "call",
  value: { extra_content: { google: { thought_signature: own } } },
  ...made,
}));
const word = fc.stringMatching(/^[a-z]{1,8}$/);
/** What comes before the calls and after them; reasoning never comes last, and is never empty without a state. */
const reasoned = fc.oneof(
  fc.record({
    type: fc.constant("reasoning" as const),
    text: word,
    state: fc.oneof(textState("signature", "encrypted"), detailsState),
  }),
  fc.record({
    type: fc.constant("reasoning" as const),
    text: fc.constant(""),
    state: fc.oneof(textState("redacted", "encrypted"), detailsState),
  }),
);
const spoken = fc.record({ type: fc.constant("text" as const), text: word });
const called = fc
  .tuple(fc.constantFrom("toolu_", "call.", "f:"), fc.option(callState, { nil: undefined }))
  .map(([id, state]): Said => ({ type: "call", id, ...(state && { state }) }));
const step = fc.tuple(
  fc.array(reasoned, { maxLength: 2 }),
  fc.array(spoken, { maxLength: 1 }),
  fc.array(called, { minLength: 1, maxLength: 3 }),
);
const answer = fc
  .array(step, { minLength: 1, maxLength: 2 })
  .map((steps) =>
    steps.flat(2).map((part, at): Said => (part.type === "call" ? { ...part, id: `${part.id}${at}` } : part)),
  );

describe("for every answer", () => {
  test("a stream has the blocks of the whole message, in the order of the answer", () => {
    fc.assert(
      fc.property(answer, fc.constantFrom<ReasoningDisplay>("shown", "omitted", "hidden"), (said, display) => {
        const whole = wholeContent(said, display);
        expect(streamedContent(said, display)).toEqual(whole);
        const isThinking = ({ type }: Json) => type === "thinking" || type === "redacted_thinking";
        const shown = whole
          .filter((block) => !isThinking(block))
          .map(({ type, text }) => (type === "text" ? text : "call"));
        expect(shown).toEqual(
          said.flatMap((part) => (part.type === "call" ? ["call"] : part.type === "text" ? [part.text] : [])),
        );
        if (display === "hidden") expect(whole.some(isThinking)).toBe(false);
      }),
    );
  });

  test("each state comes back to its call or reasoning, in its place", () => {
    fc.assert(
      fc.property(answer, fc.constantFrom<ReasoningDisplay>("shown", "omitted"), (said, display) => {
        expect(statesIn(partsIn(continued(wholeContent(said, display))))).toEqual(statesIn(said));
      }),
    );
  });

  test("a server of this API gets its own values as they were, and nothing that this server has sealed", () => {
    fc.assert(
      fc.property(answer, fc.constantFrom<ReasoningDisplay>("shown", "omitted"), (said, display) => {
        const { text, content } = sentOn(continued(wholeContent(said, display)));
        expect(text).not.toContain("truewire.");
        const values = content.flatMap(({ type, signature, data }) =>
          type === "thinking" ? [signature] : type === "redacted_thinking" ? [data] : [],
        );
        const own = said.flatMap((part) =>
          part.type === "reasoning" && part.state && part.state.kind !== "details" ? [part.state.value] : [],
        );
        for (const one of values) expect(own).toContain(one);
        expect(content.filter(({ type }) => type === "tool_use")).toHaveLength(
          said.filter(({ type }) => type === "call").length,
        );
      }),
    );
  });

  test("sealed values that are damaged, or another client's, are left out, and the rest of the request stays", () => {
    const damage = fc.constantFrom(
      (sealed: string) => sealed.slice(0, -1),
      (sealed: string) => `${sealed}x`,
      (sealed: string) => sealed.replace(/.(?=.{6}$)/, (one) => (one === "A" ? "B" : "A")),
      (sealed: string) => sealed.slice(0, 14),
      () => turnSeal(new Uint8Array(32).fill(8), "ann").seal({ text: "stolen" }),
      () => turnSeal(new Uint8Array(32).fill(7), "bob").seal({ text: "stolen" }),
    );
    fc.assert(
      fc.property(answer, damage, (said, damaged) => {
        const content = wholeContent(said, "shown");
        const isSealed = (text: unknown): text is string => typeof text === "string" && text.startsWith("truewire.");
        const changed = content.map((block) =>
          Object.fromEntries(
            Object.entries(block).map(([name, text]) => [name, isSealed(text) ? damaged(text) : text]),
          ),
        );
        const request = continued(changed);
        const raw = said.flatMap((part) =>
          part.type === "reasoning" && (part.state?.kind === "signature" || part.state?.kind === "redacted")
            ? [part.state.value]
            : [],
        );
        for (const part of partsIn(request))
          if ((part.type === "reasoning" || part.type === "tool-call") && part.state)
            expect(raw).toContain(part.state.value);
        expect(JSON.stringify(request.prompt)).not.toContain("stolen");
        const sent = sentOn(request);
        expect(sent.text).not.toContain("truewire.");
        expect(sent.content.filter(({ type }) => type === "tool_use")).toHaveLength(
          content.filter(({ type }) => type === "tool_use").length,
        );
      }),
    );
  });

  // Ids that servers give to the first call of every answer mixed up the states of the calls.
  test("what was sent once is sent in the same bytes with the next request, even if calls have the same ids", () => {
    fc.assert(
      fc.property(fc.array(answer, { minLength: 2, maxLength: 4 }), fc.boolean(), (answers, hasSameIds) => {
        const messages: Json[] = [{ role: "user", content: "Hi" }];
        let before = "";
        for (const [turn, said] of answers.entries()) {
          const content = wholeContent(said, "shown", hasSameIds ? 0 : turn * 31);
          const calls = content.filter(({ type }) => type === "tool_use");
          messages.push(
            { role: "assistant", content },
            { role: "user", content: calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "ok" })) },
          );
          const body = { model: "m", max_tokens: 4096, thinking: { type: "adaptive" }, messages: [...messages] };
          const { request } = readMessageRequest(body, "req", { turnSeal: seal, forwards: true });
          const sent = JSON.stringify(writeMessageRequest(request, {})["messages"]).slice(0, -1);
          expect(sent.startsWith(before)).toBe(true);
          before = sent;
        }
      }),
    );
  });
});

// Reasoning that was restored came directly before its call, after the text that it had come before. Anthropic refuses that: "If an assistant
// message contains any thinking blocks, the first block must be `thinking`". No test restored reasoning of a step with a text.
test("reasoning that a client has left out is added where it was", () => {
  const signature = (own: string): ReasoningState => ({ kind: "signature", value: own });
  const parts: readonly AssistantPart[] = [
    { type: "reasoning", text: "First.", state: signature("s1") },
    { type: "text", text: "I look." },
    { type: "reasoning", text: "Second.", state: signature("s2") },
    { type: "tool-call", id: "toolu_1", name: "f", arguments: "{}" },
    { type: "reasoning", text: "Third.", state: signature("s3") },
    { type: "text", text: "And again." },
    { type: "tool-call", id: "toolu_2", name: "f", arguments: "{}" },
  ];
  const call = (id: string) => ({ type: "tool_use", id, name: "f", input: {} });
  const text = (words: string) => ({ type: "text", text: words });
  const request = continued([text("I look."), text(""), call("toolu_1"), text("And again."), call("toolu_2")]);
  const { prompt, passthrough } = request;
  if (prompt.kind !== "chat" || !passthrough) throw new Error("The request is a conversation.");
  const messages = prompt.messages.map((message) =>
    message.role === "assistant" ? { ...message, content: parts } : message,
  );
  const restored = {
    ...request,
    prompt: { ...prompt, messages },
    passthrough: { ...passthrough, hasOtherStates: true },
  };
  expect(sentOn(restored).content).toEqual([
    { type: "thinking", thinking: "First.", signature: "s1" },
    text("I look."),
    text(""),
    { type: "thinking", thinking: "Second.", signature: "s2" },
    call("toolu_1"),
    { type: "thinking", thinking: "Third.", signature: "s3" },
    text("And again."),
    call("toolu_2"),
  ]);
});

// Sources may send the state of a call after its beginning. Every test sent it with the beginning.
test("a whole answer has the state of a call that came late; a stream has written its block already", () => {
  const state: CallState = { kind: "call", value: { extra_content: { google: { thought_signature: "sig" } } } };
  const said: Said[] = [{ type: "call", id: "toolu_1" }];
  const events = eventsOf(said).map((event) => (event.type === "tool-call-end" ? { ...event, state } : event));
  const { content } = JSON.parse(writeMessageResponse(accumulate(events), contextOf("shown"))) as { content: Json[] };
  expect(content.map(({ type }) => type)).toEqual(["redacted_thinking", "tool_use"]);
  expect(partsIn(continued(content))).toMatchObject([{ type: "tool-call", state }]);
  const stream = new MessageStreamWriter(contextOf("shown")).write(events);
  expect(stream).toContain('"type":"tool_use"');
  expect(stream).not.toContain("redacted_thinking");
});

// A message that was nothing but another server's thinking became one without content, which Anthropic refuses.
test("a message of thinking alone is left out with it", () => {
  const carrier = { type: "thinking", thinking: "", signature: seal.seal({ text: "Hm." }) };
  const { messages } = writeMessageRequest(continued([carrier]), {}) as { messages: Json[] };
  expect(messages.map(({ role }) => role)).toEqual(["user", "user"]);
});

// DeepSeek and Kimi refuse a turn without the thinking that they have given without a signature, which Anthropic would refuse: "The
// `content[].thinking` in the thinking mode must be passed back to the API." Our double of the Messages API was Anthropic's only.
describe("a server that reads thinking without a signature", () => {
  const call = { type: "tool_use", id: "toolu_1", name: "f", input: {} };
  const unsigned = { type: "thinking", thinking: "Hm.", signature: "" };
  const contentOf = (request: GenerationRequest, profile: ServerProfile) =>
    (writeMessageRequest(request, profile) as { messages: Json[] }).messages[1]?.["content"];

  test.each<[string, Json]>([
    ["as it came", unsigned],
    ["with the text that this server has sealed", { ...unsigned, thinking: "", signature: seal.seal({ text: "Hm." }) }],
    ["with the text beside a sealed value", { ...unsigned, signature: seal.seal({}) }],
  ])("gets it back from a client of this API: %s", (_, block) => {
    const request = continued([block, call]);
    expect(contentOf(request, { reasoningHistory: true })).toEqual([unsigned, call]);
    const { passthrough: __, ...written } = request;
    expect(contentOf(written, { reasoningHistory: true })).toEqual([unsigned, call]);
    expect(contentOf(written, {})).toEqual([call]);
  });

  test("gets it back where another server's signature is left out, and keeps its own", () => {
    const signed = { ...unsigned, signature: "sig" };
    const request = continued([signed, call]);
    const { prompt, passthrough } = request;
    if (prompt.kind !== "chat" || !passthrough) throw new Error("The request is a conversation.");
    expect(contentOf(request, { reasoningHistory: true })).toEqual([signed, call]);
    const messages = prompt.messages.map((message) =>
      message.role === "assistant"
        ? {
            ...message,
            content: assistantParts(message).map((part) => ({ ...part, state: undefined }) as AssistantPart),
          }
        : message,
    );
    const foreign = {
      ...request,
      prompt: { ...prompt, messages },
      passthrough: { ...passthrough, hasOtherStates: true },
    };
    expect(contentOf(foreign, { reasoningHistory: true })).toEqual([unsigned, call]);
    expect(contentOf(foreign, {})).toEqual([call]);
  });

  test("gets an empty one for a step without thinking, if it demands some with every call", () => {
    const profile: ServerProfile = { reasoningHistory: true, reasoningDemand: "calls" };
    const empty = { ...unsigned, thinking: "" };
    const text = { type: "text", text: "I look." };
    const notes: string[] = [];
    const request = continued([text, call]);
    const { passthrough: _, ...written } = request;
    const note = (name: string, place?: string) => notes.push(`${name} ${place}`);
    expect(writeMessageRequest(request, profile, note)["messages"]).toMatchObject([
      {},
      { content: [empty, text, call] },
      {},
    ]);
    expect(contentOf(written, profile)).toEqual([empty, text, call]);
    expect(contentOf(continued([unsigned, call]), profile)).toEqual([unsigned, call]);
    expect(contentOf(continued([text]), profile)).toEqual([text]);
    expect(notes).toEqual(["reasoning-demand messages[1]"]);
    expect(contentOf(request, { ...profile, adapt: { "reasoning-demand": false } })).toEqual([text, call]);
  });
});
