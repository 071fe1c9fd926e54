import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { adaptationNames } from "../adapt/adaptation-names.ts";
import { adaptBody, notAdapted } from "../adapt/adaptations.ts";
import {
  demandedStates,
  outputFormats,
  reasoningMembers,
  type RequestBody,
  type ServerProfile,
  stateMembers,
  toolChoiceForms,
} from "../adapt/server-profile.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { memberAdaptations } from "./fit-members.ts";
import { messageAdaptations } from "./fit-messages.ts";
import { writeChatRequest } from "./send.ts";

const request: GenerationRequest = {
  id: "r",
  model: "m",
  prompt: { kind: "chat", messages: [{ role: "user", content: "U" }], template: {} },
  sampling: {},
  limits: {},
  stream: false,
  wantsUsage: false,
  extra: {},
};
const all = [...memberAdaptations, ...messageAdaptations];

function adapt(
  body: RequestBody,
  profile: ServerProfile,
): { body: RequestBody; noted: (readonly [string, string?])[] } {
  const noted: (readonly [string, string?])[] = [];
  const note = (name: string, place?: string): void => void noted.push(place === undefined ? [name] : [name, place]);
  return { body: adaptBody(body, all, { request, profile, note }), noted };
}

const f = { type: "function", function: { name: "f", parameters: {} } };
const g = { type: "function", function: { name: "g", parameters: {} } };
const named = { type: "function", function: { name: "g" } };
const user = (content: unknown): RequestBody => ({ role: "user", content });

describe("tool_choice", () => {
  const body = { messages: [user("U")], tools: [f, g], parallel_tool_calls: false };
  test.each<[unknown, NonNullable<ServerProfile["toolChoices"]>, RequestBody]>([
    [named, ["none", "auto", "required"], { tools: [g], tool_choice: "required" }],
    [named, ["auto"], { tools: [g], tool_choice: "auto" }],
    [named, [], { tools: [g] }],
    ["required", ["auto"], { tool_choice: "auto" }],
    ["auto", [], { tool_choice: undefined }],
    ["required", ["required"], { tool_choice: "required" }],
  ])("%j for a server that accepts %j", (choice, toolChoices, expected) => {
    const adapted = adapt({ ...body, tool_choice: choice }, { toolChoices });
    expect(adapted.body).toEqual({ ...body, ...expected });
    expect(adapted.noted).toEqual(expected["tool_choice"] === choice ? [] : [["tool-choice", "tool_choice"]]);
  });

  // Together and llama-cpp-python take one function, and no "required": the model was free to call none.
  test("required is the choice of the only function, where the server takes one", () => {
    const only = { messages: [user("U")], tools: [g], tool_choice: "required" };
    expect(adapt(only, { toolChoices: ["auto", "named"] }).body).toEqual({ ...only, tool_choice: named });
    expect(adapt({ ...body, tool_choice: "required" }, { toolChoices: ["auto", "named"] }).body["tool_choice"]).toBe(
      "auto",
    );
  });

  test("none leaves out the tools, where the server does not know it", () => {
    expect(adapt({ ...body, tool_choice: "none" }, { toolChoices: ["auto"] }).body).toEqual({ messages: [user("U")] });
  });
});

test("tools are left out for a model without calls, and refused in words where one is required", () => {
  const body = { messages: [user("U")], tools: [f], tool_choice: "auto" };
  expect(adapt(body, { tools: false })).toEqual({
    body: { messages: [user("U")] },
    noted: [["tools-left-out", "tools"]],
  });
  expect(() => adapt({ ...body, tool_choice: "required" }, { tools: false })).toThrow("none can be required");
  expect(adapt(body, { tools: false, adapt: { "tools-left-out": false } })).toEqual({ body, noted: [] });
});

test("a schema goes into the instructions where the server has only JSON objects, or nothing", () => {
  const schema = { type: "object", properties: { a: { type: "integer" } } };
  const json_schema = { name: "x", schema, strict: true };
  const body = {
    messages: [{ role: "system", content: "S" }, user("U")],
    response_format: { type: "json_schema", json_schema },
  };
  const instructed = [
    {
      role: "system",
      content: `S\n\nAnswer with JSON, and nothing else. It must match this JSON Schema:\n${JSON.stringify(schema)}`,
    },
    user("U"),
  ];
  expect(adapt(body, { outputFormats: ["json_object"] })).toEqual({
    body: { messages: instructed, response_format: { type: "json_object" } },
    noted: [["output-format", "response_format.type"]],
  });
  expect(adapt(body, { outputFormats: [] }).body).toEqual({ messages: instructed });
  const anyObject = { ...body, response_format: { type: "json_object" } };
  expect(adapt(anyObject, { outputFormats: ["json_schema"] }).body["response_format"]).toEqual({
    type: "json_schema",
    json_schema: { name: "object", schema: { type: "object" } },
  });
  expect(
    adapt({ messages: [user("U")], response_format: { type: "json_object" } }, { outputFormats: [] }).body,
  ).toEqual({
    messages: [{ role: "system", content: "Answer with a JSON object, and nothing else." }, user("U")],
  });
  expect(adapt(body, { strictSchemas: false })).toEqual({
    body: { ...body, response_format: { type: "json_schema", json_schema: { name: "x", schema } } },
    noted: [["strict-schema", "response_format.json_schema.strict"]],
  });
});

test("logprobs that a server does not have are refused in words", () => {
  expect(() => adapt({ logprobs: true }, { logprobs: false })).toThrow("leave out logprobs");
  expect(() => adapt({ top_logprobs: 2 }, { logprobs: false })).toThrow("leave out top_logprobs");
  expect(adapt({ logprobs: false }, { logprobs: false }).body).toEqual({ logprobs: false });
});

describe("messages", () => {
  test("consecutive messages of one role are joined, but nothing is joined to calls", () => {
    const calls = { role: "assistant", content: null, tool_calls: [] };
    const assistant = { role: "assistant", content: "A" };
    const { body, noted } = adapt(
      {
        messages: [
          user("1"),
          user([{ type: "text", text: "2" }]),
          assistant,
          calls,
          calls,
          { role: "tool" },
          { role: "tool" },
        ],
      },
      { repeatedRoles: false },
    );
    expect(body["messages"]).toEqual([
      user("1\n\n2"),
      { ...calls, content: "A" },
      calls,
      { role: "tool" },
      { role: "tool" },
    ]);
    expect(noted).toEqual([
      ["repeated-role", "messages[1].role"],
      ["repeated-role", "messages[3].role"],
    ]);
  });

  test("reasoning is given back under the server's name", () => {
    const message = { role: "assistant", content: "A", reasoning_content: "R" };
    const { body, noted } = adapt({ messages: [user("U"), message] }, { reasoningMember: "reasoning" });
    expect(body["messages"]).toEqual([user("U"), { role: "assistant", content: "A", reasoning: "R" }]);
    expect(noted).toEqual([["reasoning-member", "messages[1].reasoning_content"]]);
  });

  test("an image is replaced by words that say so", () => {
    const image = { type: "image_url", image_url: { url: "data:" } };
    const { body, noted } = adapt({ messages: [user([{ type: "text", text: "U" }, image])] }, { images: false });
    expect(body["messages"]).toEqual([user("U\n[An image was left out: the model does not accept images.]")]);
    expect(noted).toEqual([["image-left-out", "messages[0].content[1]"]]);
  });

  test("members that the server refuses are left out", () => {
    const { body, noted } = adapt({ messages: [{ ...user("U"), name: "n" }] }, { dropInMessages: ["name"] });
    expect(body["messages"]).toEqual([user("U")]);
    expect(noted).toEqual([["refused-member", "messages[0].name"]]);
  });

  test("instructions are the user's for a server that accepts none", () => {
    const { body } = adapt({ messages: [{ role: "developer", content: "S" }, user("U")] }, { systemMessages: "none" });
    expect(body["messages"]).toEqual([user("<system-reminder>\nS\n</system-reminder>\n\nU")]);
  });
});

const profile: fc.Arbitrary<ServerProfile> = fc.record(
  {
    instructionRole: fc.constantFrom("system", "developer", "any"),
    systemMessages: fc.constantFrom("anywhere", "first", "none"),
    repeatedRoles: fc.boolean(),
    tools: fc.boolean(),
    customTools: fc.boolean(),
    toolChoices: fc.subarray([...toolChoiceForms]),
    parallelCalls: fc.boolean(),
    callIds: fc.constantFrom("any", "nine"),
    outputFormats: fc.subarray([...outputFormats]),
    strictSchemas: fc.boolean(),
    images: fc.boolean(),
    toolImages: fc.boolean(),
    logprobs: fc.boolean(),
    reasoningHistory: fc.boolean(),
    reasoningMember: fc.constantFrom(...reasoningMembers),
    states: fc.subarray([...stateMembers]),
    stateDemand: fc.constantFrom(...demandedStates),
    userAfterTool: fc.boolean(),
    streamOptions: fc.boolean(),
    maxTokensMember: fc.constantFrom("max_tokens", "max_completion_tokens"),
    drop: fc.subarray(["stop", "metadata"]),
    dropInMessages: fc.subarray(["name"]),
    rename: fc.constantFrom({}, { temperature: "temp" }),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<ServerProfile>;

const part = fc.constantFrom({ type: "text", text: "t" }, { type: "image_url", image_url: { url: "data:" } });
const message = fc.record(
  {
    role: fc.constantFrom("system", "developer", "user", "assistant", "tool"),
    content: fc.oneof(fc.constant("c"), fc.array(part, { maxLength: 2 }), fc.constant(null)),
    name: fc.constant("n"),
    reasoning_content: fc.constant("r"),
    reasoning_details: fc.constant([{ type: "reasoning.text", text: "r", index: 0 }]),
    thinking_blocks: fc.constant([{ type: "thinking", thinking: "r", signature: "s" }]),
    tool_calls: fc.array(
      fc.record(
        {
          id: fc.constant("call_123456"),
          type: fc.constant("function"),
          function: fc.constant({ name: "f", arguments: "{}" }),
          extra_content: fc.constant({ google: { thought_signature: "s" } }),
        },
        { requiredKeys: ["id", "type", "function"] },
      ),
      { minLength: 1, maxLength: 2 },
    ),
    tool_call_id: fc.constant("call_123456"),
  },
  { requiredKeys: ["role", "content"] },
);
const body = fc.record(
  {
    messages: fc.array(message, { maxLength: 6 }),
    tools: fc.subarray([f, g, { type: "custom", custom: { name: "c" } }]),
    tool_choice: fc.constantFrom("none", "auto", "required", named),
    response_format: fc.constantFrom(
      { type: "json_object" },
      { type: "json_schema", json_schema: { name: "x", strict: true } },
    ),
    parallel_tool_calls: fc.boolean(),
    logprobs: fc.boolean(),
    max_tokens: fc.constant(5),
    stop: fc.constant("x"),
    temperature: fc.constant(1),
  },
  { requiredKeys: ["messages"] },
) as fc.Arbitrary<RequestBody>;

const written = (sent: RequestBody, of: ServerProfile, note?: Parameters<typeof writeChatRequest>[2]): RequestBody =>
  writeChatRequest({ ...request, passthrough: { dialect: "chat", body: sent } }, of, note);

/** The body, or the words of the refusal. */
function outcome(run: () => RequestBody): unknown {
  try {
    return run();
  } catch (error) {
    return String(error);
  }
}

test("for any request and profile: nothing is noted if and only if nothing changes, and what is adapted needs no more", () => {
  fc.assert(
    fc.property(body, profile, (sent, of) => {
      const before = JSON.stringify(sent);
      let notes = 0;
      const first = outcome(() => written(sent, of, () => void notes++));
      expect(JSON.stringify(sent)).toBe(before);
      if (typeof first === "string") return;
      if (notes === 0) expect(first).toEqual({ ...sent, model: "m" });
      let again = 0;
      const second = outcome(() => written(first as RequestBody, of, () => void again++));
      expect(second).toEqual(first);
      expect(again).toBe(0);
    }),
  );
});

test("for any request and profile: with every adaptation switched off, the request is sent as it came", () => {
  const off = Object.fromEntries(adaptationNames.map((name) => [name, false]));
  fc.assert(
    fc.property(body, profile, (sent, of) => {
      const adapted = written(sent, { ...of, adapt: off }, (name) => expect.unreachable(name));
      expect(adapted).toEqual({ ...sent, model: "m" });
    }),
  );
});

test("for any request and profile: strict refuses what would be adapted, and sends the rest as it came", () => {
  fc.assert(
    fc.property(body, profile, (sent, of) => {
      let notes = 0;
      const adapted = outcome(() => written(sent, of, () => void notes++));
      const strict = outcome(() =>
        written(sent, of, (name, place) => {
          throw notAdapted(name, place, "up");
        }),
      );
      if (notes === 0) expect(strict).toEqual(adapted);
      else expect(strict).toMatch(/does not accept .*strict: true|none can be required|leave out/);
    }),
  );
});
