import { expect, test } from "vitest";
import type { JsonObject } from "../../core/json.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { adaptBody } from "../adapt/adaptations.ts";
import type { ServerProfile } from "../adapt/server-profile.ts";
import { messageAdaptations } from "./fit-messages.ts";

const request: GenerationRequest = {
  id: "r",
  model: "m",
  prompt: { kind: "chat", messages: [], template: {} },
  sampling: {},
  limits: {},
  stream: false,
  wantsUsage: false,
  extra: {},
};

function fit(
  messages: readonly JsonObject[],
  profile: ServerProfile = {},
): { fitted: readonly JsonObject[]; noted: string[] } {
  const noted: string[] = [];
  const context = { profile, request, note: (name: string) => void noted.push(name) };
  return { fitted: adaptBody({ messages }, messageAdaptations, context)["messages"] as JsonObject[], noted };
}

const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
const text = (value: string): JsonObject => ({ type: "text", text: value });
const tool = (id: string, content: unknown): JsonObject => ({ role: "tool", tool_call_id: id, content });

test("messages that a server accepts are the same list", () => {
  const messages = [{ role: "system", content: "S" }, { role: "user", content: [image] }, tool("call_1", "T")];
  expect(fit(messages).fitted).toBe(messages);
});

test("developer messages become system messages, unless the server accepts both", () => {
  const messages = [{ role: "developer", content: "S", name: "n" }];
  expect(fit(messages)).toEqual({ fitted: [{ role: "system", content: "S", name: "n" }], noted: ["instruction-role"] });
  expect(fit(messages, { instructionRole: "any" }).fitted).toBe(messages);
});

// llama-cpp-python 0.3.36 refused every conversation with a call.
test("an assistant's null is an empty text for a server that takes only texts", () => {
  const messages = [{ role: "assistant", content: null, tool_calls: [] }];
  expect(fit(messages, { contentParts: false }).fitted).toEqual([{ role: "assistant", content: "", tool_calls: [] }]);
  expect(fit(messages).fitted).toBe(messages);
});

// A call that a limit of tokens had cut ended a conversation over llama-server: it parses the arguments of each earlier call. Our double of it
// did not.
test("arguments of earlier calls that are no JSON object are put into one, unless the server takes any", () => {
  const call = (text: string): JsonObject => ({
    id: "call_1",
    type: "function",
    function: { name: "f", arguments: text },
  });
  const turn = (...texts: readonly string[]): JsonObject[] => [
    { role: "assistant", content: null, tool_calls: texts.map(call) },
  ];
  const broken = ['{"path":"a', "[1]", "1", "null", "print()", '{"a":1}{"b":2}', "\u00a0{"];
  expect(fit(turn(...broken))).toEqual({
    fitted: turn(...broken.map((INVALID_JSON) => JSON.stringify({ INVALID_JSON }))),
    noted: broken.map(() => "earlier-arguments"),
  });
  expect(fit(turn("", " \n"))).toEqual({ fitted: turn("{}", "{}"), noted: [] });
  const whole = turn('{"a":1}', ' {"b": [1, 2]}\n');
  expect(fit(whole).fitted).toBe(whole);
  expect(fit(turn(...broken), { anyArguments: true })).toEqual({ fitted: turn(...broken), noted: [] });
});

// Chat takes texts alone in the results of tools: a screenshot that an agent read was refused, or never seen.
test("images in the results of tools move to the user's next message, each with the id of its call", () => {
  const results = [tool("call_1", [text("a"), image, text("b")]), tool("call_2", [image])];
  const label = (id: string): JsonObject => text(`Image in the result of the tool call ${id}:`);
  const moved = [label("call_1"), image, label("call_2"), image];
  const { fitted, noted } = fit([...results, { role: "user", content: "U" }]);
  expect(fitted).toEqual([
    tool("call_1", "a\nb"),
    tool("call_2", "The result is the image in the next message of the user."),
    { role: "user", content: [...moved, text("U")] },
  ]);
  expect(noted).toEqual(["tool-image", "tool-image"]);
  expect(fit(results).fitted.at(-1)).toEqual({ role: "user", content: moved });
  expect(fit([...results, { role: "assistant", content: "A" }]).fitted.slice(2)).toEqual([
    { role: "user", content: moved },
    { role: "assistant", content: "A" },
  ]);
  expect(fit(results, { toolImages: true }).fitted).toBe(results);
});

test("for Mistral: short ids, no reasoning of earlier turns, an answer between a result and the user", () => {
  const call = (id: string): JsonObject => ({ id, type: "function", function: { name: "f", arguments: "{}" } });
  const messages = [
    { role: "user", content: "U" },
    {
      role: "assistant",
      content: null,
      reasoning_content: "R",
      tool_calls: [call("call_2gSnF58IEhXL"), call("abcdefghi")],
    },
    tool("call_2gSnF58IEhXL", "1"),
    tool("abcdefghi", "2"),
    { role: "user", content: "V" },
  ];
  const { fitted, noted } = fit(messages, { callIds: "nine", reasoningHistory: false, userAfterTool: false });
  expect(fitted).toEqual([
    { role: "user", content: "U" },
    { role: "assistant", content: null, tool_calls: [call("nF58IEhXL"), call("abcdefghi")] },
    tool("nF58IEhXL", "1"),
    tool("abcdefghi", "2"),
    { role: "assistant", content: "OK." },
    { role: "user", content: "V" },
  ]);
  expect(noted).toEqual(["reasoning-history", "short-call-id", "short-call-id", "answer-after-tool"]);
});
