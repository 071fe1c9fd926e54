import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { growthOf, maxGrowth } from "../../../../test/support/growth.ts";
import { OpenAiService, type OpenAiTurn, Refused } from "../../../../test/doubles/openai.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Message } from "../../core/message.ts";
import type { AdaptationName } from "../adapt/adaptation-names.ts";
import { refusesState } from "../adapt/state-refusals.ts";
import { learnRefusal } from "../adapt/learn-refusal.ts";
import type { RequestBody, ServerProfile } from "../adapt/server-profile.ts";
import { readChatRequest } from "../chat/request.ts";
import { openSeal } from "../turn-seal.ts";
import { readResponsesRequest } from "./request.ts";
import { ResponseReader } from "./read.ts";
import { writeResponsesRequest } from "./send.ts";

type Item = JsonObject;

const user: Item = { role: "user", content: "Hi" };
const text = (id: string): Item & { readonly id: string } => ({
  type: "message",
  id,
  role: "assistant",
  content: [{ type: "output_text", text: "Hi" }],
});
const call = (number: number): Item & { readonly id: string } => ({
  type: "function_call",
  id: `fc_${number}`,
  call_id: `call_${number}`,
  name: "f",
  arguments: "{}",
});
const result = (number: number): Item => ({
  type: "function_call_output",
  call_id: `call_${number}`,
  output: "1",
});
const encrypted = (id: string, value = "gAAA"): Item => ({
  type: "reasoning",
  id,
  summary: [],
  encrypted_content: value,
});
const stored = (id: string): Item & { readonly id: string } => ({ type: "reasoning", id, summary: [] });

/** What is sent of a client's own items, and the names of what was changed. */
function sent(
  input: readonly Item[],
  profile: ServerProfile = {},
  {
    more = {},
    hasOtherStates = false,
    drops = false,
  }: { readonly more?: JsonObject; readonly hasOtherStates?: boolean; readonly drops?: boolean } = {},
): { input: unknown; notes: AdaptationName[]; body: RequestBody } {
  const { request } = readResponsesRequest({ model: "m", input, ...more }, "req_1", { forwards: true });
  const notes: AdaptationName[] = [];
  const passthrough = request.passthrough && { ...request.passthrough, ...(hasOtherStates && { hasOtherStates }) };
  const { prompt } = request;
  // As the engine drops states after a refusal.
  const kept = drops && prompt.kind === "chat" ? { ...prompt, messages: prompt.messages.map(withoutStates) } : prompt;
  const body = writeResponsesRequest(
    { ...request, prompt: kept, ...(passthrough && { passthrough }) },
    profile,
    (name) => notes.push(name),
  );
  return { input: body["input"], notes, body };
}

function withoutStates(message: Message): Message {
  if (message.role !== "assistant" || typeof message.content === "string" || !message.content) return message;
  return {
    ...message,
    content: message.content.map(({ ...part }) => ("state" in part ? { ...part, state: undefined } : part)),
  } as Message;
}

describe("the items of a client", () => {
  test("are the very same list if the server takes them", () => {
    const input = [
      user,
      encrypted("rs_1"),
      call(1),
      call(2),
      result(1),
      result(2),
      stored("rs_2"),
      text("msg_1"),
      user,
    ];
    const own = sent(input);
    expect(own.input).toBe(input);
    expect(own.notes).toEqual([]);
  });

  // Clients that shorten a conversation leave reasoning behind: OpenAI refuses "reasoning without its required following item", and the
  // session was over. Our doubles did not check items.
  test("have no reasoning without the item that followed it", () => {
    const cases: readonly (readonly [input: readonly Item[], left: readonly Item[]])[] = [
      [[user, encrypted("rs_1")], [user]],
      [
        [user, encrypted("rs_1"), user],
        [user, user],
      ],
      [
        [user, encrypted("rs_1"), encrypted("rs_2"), result(1)],
        [user, result(1)],
      ],
      [[encrypted("rs_1"), { role: "developer", content: "D" }], [{ role: "developer", content: "D" }]],
    ];
    for (const [input, left] of cases) {
      expect(sent(input).input).toEqual(left);
      expect(sent(input).notes).toContain("orphan-reasoning");
    }
    const followed = [encrypted("rs_1"), { type: "web_search_call", id: "ws_1", status: "completed" }, text("msg_1")];
    expect(sent(followed).input).toBe(followed);
  });

  test("are meant by their ids only where the server stores them", () => {
    const input = [user, stored("rs_1"), text("msg_1"), user];
    expect(sent(input).input).toBe(input);
    const { id: _, ...bare } = text("msg_1");
    // The message lost its reasoning: with its id, the server would demand it.
    expect(sent(input, {}, { more: { store: false } }).input).toEqual([user, bare, user]);
    expect(sent(input, {}, { hasOtherStates: true }).input).toEqual([user, stored("rs_1"), bare, user]);
    expect(sent(input, { itemIds: false }).input).toEqual([user, stored("rs_1"), bare, user]);
    expect(sent(input, { itemIds: false, adapt: { "item-id": false } }).input).toBe(input);
  });

  test("with text are for servers that read it", () => {
    const ours = { ...stored("rs_1"), content: [{ type: "reasoning_text", text: "Hm" }] };
    const input = [user, ours, call(1), result(1)];
    const { id: _, ...bare } = call(1);
    expect(sent(input).input).toBe(input);
    expect(sent(input, { reasoningHistory: false }).input).toEqual([user, bare, result(1)]);
    expect(sent(input, { reasoningHistory: true }).input).toBe(input);
    const sealed = encrypted("rs_1", openSeal.seal({ text: "Hm" }));
    const read = { reasoningHistory: true, encryptedReasoning: false };
    expect(sent([user, sealed, call(1), result(1)], read).input).toEqual(input);
    expect(
      sent([user, { ...stored("rs_1"), summary: [{ type: "summary_text", text: "Hm" }] }, text("m")], read).input,
    ).toEqual([user, ours, text("m")]);
    expect(sent([user, encrypted("rs_1"), text("m")], read).input).toEqual([user, text("m")]);
  });

  test("have text before each call if the server demands it", () => {
    const ours = { ...stored("rs_1"), content: [{ type: "reasoning_text", text: "Hm" }] };
    const { id: _, ...again } = ours;
    const empty = { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "" }] };
    const profile = { reasoningHistory: true, reasoningDemand: "calls" } as const;
    const input = [user, ours, call(1), call(2), result(1), result(2), call(3), result(3)];
    expect(sent(input, profile).input).toEqual([
      user,
      ours,
      call(1),
      again,
      call(2),
      result(1),
      result(2),
      empty,
      call(3),
      result(3),
    ]);
  });

  // A stored call has the state of its source in `encrypted_content`: OpenAI refuses "Unknown parameter: 'input[1].encrypted_content'".
  test("have no members of ours", () => {
    const state = { kind: "call", value: { a: 1 } } as const;
    const kept = { ...call(1), encrypted_content: openSeal.seal({ state }) };
    expect(sent([user, kept, result(1)]).input).toEqual([user, call(1), result(1)]);
  });

  test("what this server has sealed of the source's own comes back as it was", () => {
    const own = openSeal.seal({ text: "", state: { kind: "encrypted", value: "gBBB" } });
    const byId = openSeal.seal({ text: "", state: { kind: "stored", value: "rs_2" } });
    const foreign = openSeal.seal({ text: "Hm", state: { kind: "signature", value: "c2ln" } });
    const input = [user, encrypted("rs_1", own), encrypted("rs_2", byId), encrypted("rs_3", foreign), text("msg_1")];
    const { id: _, ...bare } = text("msg_1");
    expect(sent(input).input).toEqual([user, encrypted("rs_1", "gBBB"), stored("rs_2"), bare]);
  });

  test("a request for encrypted reasoning is left out where there is none", () => {
    const include = ["reasoning.encrypted_content", "message.output_text.logprobs"];
    const profile = { encryptedReasoning: false };
    expect(sent([user], profile, { more: { include } }).body["include"]).toEqual(["message.output_text.logprobs"]);
    expect(sent([user], profile, { more: { include: include.slice(0, 1) } }).body).not.toHaveProperty("include");
    expect(sent([user], {}, { more: { include } }).body["include"]).toEqual(include);
  });
});

test("reasoning of another API goes to servers that read its text, and nowhere else", () => {
  const messages = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Yes.", reasoning_content: "Hm" },
    { role: "user", content: "Go on." },
  ];
  const written = (profile: ServerProfile): unknown =>
    writeResponsesRequest(readChatRequest({ model: "m", messages }, "req_1").request, profile)["input"];
  const said = { role: "assistant", content: "Yes." };
  expect(written({})).toEqual([user, said, { role: "user", content: "Go on." }]);
  expect(written({ reasoningHistory: true })).toEqual([
    user,
    { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Hm" }] },
    said,
    { role: "user", content: "Go on." },
  ]);
});

test("reasoning of a stored response is meant by its id, and other reasoning has no state", () => {
  const states = (response: JsonObject, item: JsonObject): unknown[] => {
    const reader = new ResponseReader({ newCallId: () => "call_1", source: "s" });
    const whole = { id: "resp_1", object: "response", status: "completed", output: [item, text("msg_1")], ...response };
    return reader.readBody(whole).flatMap((event) => (event.type === "part-end" && event.state ? [event.state] : []));
  };
  expect(states({ store: true }, stored("rs_1"))).toEqual([{ kind: "stored", value: "rs_1", source: "s" }]);
  expect(states({ store: true }, encrypted("rs_1"))).toEqual([{ kind: "encrypted", value: "gAAA", source: "s" }]);
  expect(states({ store: false }, stored("rs_1"))).toEqual([]);
  expect(states({}, encrypted("rs_1", ""))).toEqual([]);
  const ofText = { ...stored("rs_1"), content: [{ type: "reasoning_text", text: "Hm" }] };
  expect(states({ store: true }, ofText)).toEqual([]);
});

/** The items of an answer. What a refusal teaches is used once, as the engine does. Throws if the service refuses the request again. */
function answered(
  service: OpenAiService,
  written: (profile: ServerProfile, drops: boolean) => RequestBody,
): readonly Item[] {
  let learned: ServerProfile = {};
  let drops = false;
  for (let attempt = 1; ; attempt++) {
    const body = written(learned, drops);
    try {
      return service.answer({ ...body, model: "gpt-5" })["output"] as readonly Item[];
    } catch (error) {
      if (!(error instanceof Refused) || attempt === 3) throw error;
      const { refusal } = error;
      if (refusesState(refusal) && !drops) drops = true;
      else learned = learnRefusal(refusal, body, learned) ?? learned;
    }
  }
}

describe("OpenAI's rules", () => {
  /** One turn of a session, and what the client has kept of it. */
  const turns = fc.array(
    fc.record({
      reasons: fc.boolean(),
      calls: fc.nat(3),
      keepsReasoning: fc.boolean(),
      keepsRest: fc.boolean(),
      keepsUser: fc.boolean(),
      keepsIds: fc.boolean(),
    }),
    { minLength: 1, maxLength: 6 },
  );

  test("hold for whatever a client keeps of its own session, stored or not", () => {
    fc.assert(
      fc.property(
        turns,
        fc.constantFrom({ store: true }, { store: false }, {}),
        fc.boolean(),
        (session, store, asks) => {
          let next: OpenAiTurn = {};
          const service = new OpenAiService({ turn: () => next });
          const options = { ...store, ...(asks && { include: ["reasoning.encrypted_content"] }) };
          const kept: Item[] = [];
          for (const { reasons, calls, keepsReasoning, keepsRest, keepsUser, keepsIds } of session) {
            const called = Array.from({ length: calls }, () => ({ name: "f", arguments: "{}" }));
            next = { ...(reasons && { reasoning: "Hm" }), ...(calls > 0 ? { calls: called } : { text: "Yes." }) };
            const input = [...kept, user];
            const output = answered(
              service,
              (profile, drops) => sent(input, profile, { more: options, drops, hasOtherStates: drops }).body,
            );
            if (keepsUser) kept.push(user);
            for (const item of output) {
              const isKept = item["type"] === "reasoning" ? keepsReasoning : keepsRest;
              const { id, ...bare } = item;
              // Reasoning without an id and encrypted content is nothing.
              const hasId = keepsIds || (item["type"] === "reasoning" && !("encrypted_content" in item));
              if (isKept) kept.push(hasId ? { ...bare, id } : bare);
            }
            const results = output.filter(({ type }) => type === "function_call");
            if (keepsRest)
              for (const { call_id: id } of results)
                kept.push({ type: "function_call_output", call_id: id, output: "1" });
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

test("the time to fit items is linear in their number", () => {
  const work = (count: number) => {
    const input = Array.from({ length: count }, (_, at) =>
      at % 2 === 0 ? encrypted(`rs_${at}`, openSeal.seal({ text: "Hm" })) : stored(`rs_${at}`),
    );
    // A body may have at most 1,000 unknown members: it is read in parts.
    const parts = Array.from({ length: Math.ceil(count / 100) }, (_, at) => input.slice(at * 100, (at + 1) * 100));
    const requests = parts.map(
      (part) => readResponsesRequest({ model: "m", input: part, store: false }, "req_1", { forwards: true }).request,
    );
    const [first] = requests;
    if (first?.prompt.kind !== "chat" || !first.passthrough) throw new Error("The request has no conversation.");
    const messages = requests.flatMap(({ prompt }) => (prompt.kind === "chat" ? prompt.messages : []));
    const passthrough = { ...first.passthrough, body: { ...first.passthrough.body, input } };
    const request = { ...first, prompt: { ...first.prompt, messages }, passthrough };
    return () => [true, false].map((reasoningHistory) => writeResponsesRequest(request, { reasoningHistory }));
  };
  expect(growthOf(work)).toBeLessThan(maxGrowth);
});
