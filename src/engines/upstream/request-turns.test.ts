import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../wire/core/events.ts";
import type { AssistantPart, Message } from "../../wire/core/message.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { KeptTurn, TurnMemory } from "../../wire/core/turn-memory.ts";
import type { CallState, ReasoningState } from "../../wire/core/turn-state.ts";
import { growthOf, maxGrowth } from "../../../test/support/growth.ts";
import { restoredMessage, TurnCollector } from "./kept-turns.ts";
import { RefusedStates, RequestTurns } from "./request-turns.ts";

const [here, elsewhere] = ["here.claude", "elsewhere.claude"];
const user = (content: string): Message => ({ role: "user", content });
const result = (toolCallId: string): Message => ({ role: "tool", toolCallId, content: "done" });
const signed = (value: string, source?: string): ReasoningState => ({
  kind: "signature",
  value,
  ...(source !== undefined && { source }),
});

function requestOf(messages: readonly Message[], more: Partial<GenerationRequest> = {}): GenerationRequest {
  return {
    id: "r",
    model: "claude",
    prompt: { kind: "chat", messages, template: {} },
    sampling: {},
    limits: {},
    wantsUsage: false,
    stream: false,
    extra: {},
    ...more,
  };
}

/** A memory without bounds; `isRemote`: answers with promises. */
class Memory implements TurnMemory {
  readonly #turns = new Map<string, KeptTurn>();
  isRemote = false;

  mayHave(): boolean {
    return this.#turns.size > 0;
  }

  keep(owner: string | undefined, keys: readonly string[], turn: KeptTurn): void {
    for (const key of keys) this.#turns.set(`${owner} ${key}`, turn);
  }

  find(owner: string | undefined, keys: readonly string[]): KeptTurn | undefined | Promise<KeptTurn | undefined> {
    const [found] = keys.flatMap((key) => this.#turns.get(`${owner} ${key}`) ?? []);
    return this.isRemote ? Promise.resolve(found) : found;
  }
}

/** The events of an answer with these parts. */
function eventsOf(parts: readonly AssistantPart[]): GenerationEvent[] {
  const events: GenerationEvent[] = [{ type: "start", choice: 0 }];
  let index = 0;
  for (const part of parts) {
    if (part.type === "text") events.push({ type: "text-delta", choice: 0, text: part.text });
    else if (part.type === "reasoning") {
      events.push({ type: "part-start", choice: 0, kind: "reasoning" });
      events.push({ type: "reasoning-delta", choice: 0, text: part.text });
      events.push({ type: "part-end", choice: 0, ...(part.state && { state: part.state }) });
    } else if (part.type === "tool-call") {
      const { id, name, state, arguments: json } = part;
      events.push({ type: "tool-call-start", choice: 0, index, id, name, ...(state && { state }) });
      events.push({ type: "tool-call-delta", choice: 0, index, arguments: json });
      events.push({ type: "tool-call-end", choice: 0, index: index++, status: "succeeded" });
    }
  }
  return [...events, { type: "finish", choice: 0, reason: "stop" }, { type: "end", end: { kind: "done" } }];
}

/** Keeps an answer to `before` in a memory. */
function kept(
  parts: readonly AssistantPart[],
  before: Message | readonly Message[],
  memory: Memory = new Memory(),
): Memory {
  const collector = new TurnCollector();
  collector.read(eventsOf(parts));
  const turn = collector.turn([before].flat());
  if (turn) memory.keep(undefined, turn.keys, turn.turn);
  return memory;
}

async function messagesFor(
  turns: RequestTurns,
  request: GenerationRequest,
  source: string,
): Promise<readonly Message[]> {
  await turns.recall();
  const { prompt } = turns.fitted(request, source).request;
  return prompt.kind === "chat" ? prompt.messages : [];
}

describe("what a client does not return comes back from the memory", () => {
  const question = user("Look.");
  const callState: CallState = { kind: "call", value: { extra_content: { s: 1 } }, source: here };
  const turn: readonly AssistantPart[] = [
    { type: "reasoning", text: "First.", state: signed("one", here) },
    { type: "text", text: "I look." },
    { type: "tool-call", id: "a", name: "look", arguments: '{"at":1,"deep":{"x":1,"y":2}}', state: callState },
    { type: "reasoning", text: "Then.", state: signed("two", here) },
    { type: "tool-call", id: "b", name: "look", arguments: "{}" },
  ];
  const returned = (id: (id: string) => string, json = '{"at":1,"deep":{"x":1,"y":2}}'): Message => ({
    role: "assistant",
    content: [
      { type: "text", text: "I look." },
      { type: "tool-call", id: id("a"), name: "look", arguments: json },
      { type: "tool-call", id: id("b"), name: "look", arguments: "{}" },
    ],
  });

  test.each([
    ["as the client sends it", (id: string) => id, undefined],
    ["with other ids", (id: string) => `toolu_${id}`, undefined],
    ["with its arguments written again", (id: string) => id, '{ "deep": {"y":2, "x":1}, "at": 1 }'],
  ])("a turn, at its places: %s", async (_, id, json) => {
    for (const isRemote of [false, true]) {
      const memory = kept(turn, question);
      memory.isRemote = isRemote;
      const message = returned(id, json);
      const request = requestOf([question, message, result(id("a")), result(id("b"))], {
        passthrough: { dialect: "messages", body: {} },
      });
      const turns = new RequestTurns(request, memory, new RefusedStates());
      const [, restored] = await messagesFor(turns, request, here);
      const own = message.content as readonly AssistantPart[];
      expect(restored?.content).toEqual([turn[0], own[0], { ...own[1], state: callState }, turn[3], own[2]]);
      expect(turns.fitted(request, here)).toMatchObject({
        changes: [{ name: "state-restored", place: "messages[1]" }],
        request: { passthrough: { hasOtherStates: true } },
      });
      expect(turns.fitted(request, here).counts).toEqual({ kept: 0, restored: 3, missing: 0, foreign: 0, dropped: 0 });
      expect(turns.latestSource).toBe(here);
    }
  });

  test("the same call after another message is found by its id, and the same text is not found", async () => {
    const memory = kept(turn, question);
    const request = requestOf([user("Look again."), returned((id) => id), result("a")]);
    const [, restored] = await messagesFor(new RequestTurns(request, memory, new RefusedStates()), request, here);
    expect(restored?.content).toHaveLength(5);
    const text: readonly AssistantPart[] = [
      { type: "reasoning", text: "Hm.", state: signed("s", here) },
      { type: "text", text: "Done." },
    ];
    const texts = kept(text, question);
    for (const [before, count] of [
      [question, 2],
      [user("Other."), 1],
    ] as const) {
      const asked = requestOf([before, { role: "assistant", content: "Done." }, user("And?")]);
      const [, message] = await messagesFor(new RequestTurns(asked, texts, new RefusedStates()), asked, here);
      expect(typeof message?.content === "string" ? 1 : message?.content?.length).toBe(count);
    }
  });

  // Eight sessions in parallel took each other's turns: their tools had returned the same, and their servers gave the same ids.
  test("sessions of one owner that say the same in between have their own turns", async () => {
    const call: AssistantPart = { type: "tool-call", id: "call_0", name: "look", arguments: "{}" };
    const memory = new Memory();
    const sessions = ["one", "two", "three"].map((name) => {
      const first: readonly AssistantPart[] = [{ type: "reasoning", text: "", state: signed(`${name} 1`, here) }, call];
      const second: readonly AssistantPart[] = [
        { type: "reasoning", text: "", state: signed(`${name} 2`, here) },
        { type: "text", text: "Done." },
      ];
      return { question: user(`Session ${name}`), first, second };
    });
    for (const { question, first } of sessions) kept(first, question, memory);
    for (const { question, second } of sessions)
      kept(second, [question, { role: "assistant", content: [call] }, result("call_0")], memory);
    for (const isNamed of [true, false])
      for (const { question, first, second } of sessions) {
        const id = isNamed ? "call_0" : "changed";
        const request = requestOf([
          question,
          { role: "assistant", content: [{ ...call, id }] },
          result(id),
          { role: "assistant", content: "Done." },
          user("Thanks."),
        ]);
        const messages = await messagesFor(new RequestTurns(request, memory, new RefusedStates()), request, here);
        expect(messages[1]?.content).toEqual([first[0], { ...call, id }]);
        expect(messages[3]?.content).toEqual(second);
      }
  });

  test("reasoning before a call is kept without a state; an answer without either, or one that was cut, is not", () => {
    const call: AssistantPart = { type: "tool-call", id: "a", name: "f", arguments: "{}" };
    const isKept = (parts: readonly AssistantPart[]): boolean => kept(parts, question).mayHave();
    expect(isKept([{ type: "reasoning", text: "Hm." }, call])).toBe(true);
    expect(isKept([call])).toBe(false);
    expect(
      isKept([
        { type: "reasoning", text: "Hm." },
        { type: "text", text: "Hi" },
      ]),
    ).toBe(false);
    const cut = new TurnCollector();
    cut.read(eventsOf([{ type: "reasoning", text: "Hm.", state: signed("s") }, call]).slice(0, -2));
    expect(cut.turn([question])).toBeUndefined();
  });

  // Each part of a message was searched for from the turn's first part on.
  test("a turn of many calls is restored in linear time", () => {
    const work = (count: number) => {
      const calls = Array.from({ length: count }, (_, at) => ({ type: "tool-call", id: `c${at}` }) as const);
      const content = calls.map(({ id }): AssistantPart => ({ type: "tool-call", id, name: "f", arguments: "{}" }));
      return () => restoredMessage({ role: "assistant", content }, { parts: calls });
    };
    expect(growthOf(work, 2048)).toBeLessThan(maxGrowth);
  });

  test("a request that nothing is restored in stays the same object", async () => {
    const request = requestOf([question, { role: "assistant", content: "Hi" }, user("And?")]);
    const turns = new RequestTurns(request, kept(turn, question), new RefusedStates());
    await turns.recall();
    expect(turns.fitted(request, here).request).toBe(request);
    expect(turns.fitted(request, here).counts).toMatchObject({ missing: 1 });
  });
});

describe("a source gets only the states that it has made", () => {
  const call: AssistantPart = { type: "tool-call", id: "a", name: "f", arguments: "{}" };
  const conversation = (...parts: readonly AssistantPart[]): GenerationRequest =>
    requestOf([user("Go."), { role: "assistant", content: [...parts, call] }, result("a")]);

  test("what another has made is left out; readable reasoning stays as text", async () => {
    const request = conversation(
      { type: "reasoning", text: "Hm.", state: signed("theirs", elsewhere), id: "rs_1" },
      { type: "reasoning", text: "", state: { kind: "redacted", value: "x", source: elsewhere } },
      { type: "reasoning", text: "So.", state: signed("ours", here) },
    );
    const turns = new RequestTurns(request, undefined, new RefusedStates());
    const [, message] = await messagesFor(turns, request, here);
    expect(message?.content).toEqual([
      { type: "reasoning", text: "Hm." },
      { type: "reasoning", text: "So.", state: signed("ours", here) },
      call,
    ]);
    expect(turns.fitted(request, here).counts).toMatchObject({ foreign: 2, kept: 1 });
    const [, other] = await messagesFor(turns, request, elsewhere);
    expect(other?.content).toHaveLength(4);
  });

  test("a client's raw values have the source that the memory knows", async () => {
    const made: AssistantPart = { type: "reasoning", text: "Hm.", state: signed("sig", elsewhere) };
    const memory = kept([made, call], user("Go."));
    const request = conversation({ type: "reasoning", text: "Hm.", state: signed("sig") });
    const turns = new RequestTurns(request, memory, new RefusedStates());
    await turns.recall();
    expect(turns.latestSource).toBe(elsewhere);
    expect(turns.fitted(request, elsewhere).request).toBe(request);
    const [, message] = await messagesFor(turns, request, here);
    expect(message?.content).toEqual([{ type: "reasoning", text: "Hm." }, call]);
  });

  test("refused: first those of unknown makers are left out, then all; later requests do not send them", async () => {
    const refused = new RefusedStates();
    const request = conversation(
      { type: "reasoning", text: "Hm.", state: signed("unknown") },
      { type: "reasoning", text: "So.", state: signed("ours", here) },
    );
    const turns = new RequestTurns(request, undefined, refused);
    const states = async (one: RequestTurns): Promise<unknown[]> => {
      const [, message] = await messagesFor(one, request, here);
      const content = (message?.content ?? []) as AssistantPart[];
      return content.flatMap((part) => ("state" in part ? [part.state?.value] : []));
    };
    expect(await states(turns)).toEqual(["unknown", "ours"]);
    expect(turns.drop(here)).toBe(true);
    expect(await states(turns)).toEqual(["ours"]);
    turns.confirm(here);
    expect(await states(new RequestTurns(request, undefined, refused))).toEqual(["ours"]);
    expect(turns.drop(here)).toBe(true);
    expect(await states(turns)).toEqual([]);
    expect(turns.drop(here)).toBe(false);
    turns.confirm(here);
    expect(await states(new RequestTurns(request, undefined, refused))).toEqual([]);
    expect(new RequestTurns(conversation(), undefined, refused).drop(here)).toBe(false);
  });

  test("for every conversation: texts, calls and their order stay, and no foreign state is left", async () => {
    const parts = fc.oneof(
      fc.record({ type: fc.constant("text" as const), text: fc.string() }),
      fc
        .tuple(fc.string(), fc.option(fc.constantFrom(undefined, here, elsewhere), { nil: null }), fc.string())
        .map(([text, source, value]): AssistantPart => ({
          type: "reasoning",
          text,
          ...(source !== null && { state: signed(value, source) }),
        })),
      fc.nat(3).map((id): AssistantPart => ({ type: "tool-call", id: `c${id}`, name: "f", arguments: "{}" })),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(parts)), async (answers) => {
        const messages = answers.flatMap((content): Message[] => [user("Go."), { role: "assistant", content }]);
        const memory = new Memory();
        for (const content of answers) kept(content, user("Go."), memory);
        const request = requestOf(messages);
        const fitted = await messagesFor(new RequestTurns(request, memory, new RefusedStates()), request, here);
        const visible = (message: Message): unknown =>
          typeof message.content === "string" || message.role !== "assistant"
            ? message
            : message.content?.flatMap((part) => (part.type === "reasoning" ? [] : [part]));
        expect(fitted.map(visible)).toEqual(messages.map(visible));
        expect(JSON.stringify(fitted)).not.toContain(elsewhere);
      }),
    );
  });
});
