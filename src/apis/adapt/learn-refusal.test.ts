import fc from "fast-check";
import { expect, test } from "vitest";
import { learnRefusal, mayTeach, mergedProfile } from "./learn-refusal.ts";
import type { UpstreamRefusal } from "./learn-refusal.ts";
import type { RequestBody, ServerProfile } from "./server-profile.ts";

const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };

/** A request with something of everything that a server may refuse. */
const everything: RequestBody = {
  model: "m",
  messages: [
    { role: "system", content: "S", name: "n" },
    { role: "user", content: "U" },
    { role: "user", content: [image] },
    { role: "assistant", content: "A", reasoning_content: "R" },
    { role: "system", content: "S" },
    { role: "developer", content: "S" },
  ],
  tools: [{ type: "function", function: { name: "f", strict: true, parameters: {} } }],
  tool_choice: { type: "function", function: { name: "f" } },
  response_format: { type: "json_schema", json_schema: { name: "x", schema: {}, strict: true } },
  parallel_tool_calls: true,
  stream_options: { include_usage: true },
  max_completion_tokens: 5,
  reasoning_effort: "low",
  temperature: 0.2,
  logprobs: true,
  metadata: {},
  stop: "x",
  frequency_penalty: 1,
  n: 2,
};

const refused = (message: string, status = 400): UpstreamRefusal => ({ status, message, param: null, code: null });

type Wording = readonly [message: string, learned: ServerProfile, status?: number, profile?: ServerProfile];

/** What real servers say (the sources are next to the patterns), and what it means. */
const wordings: readonly Wording[] = [
  ["body.max_completion_tokens: Extra inputs are not permitted", { maxTokensMember: "max_tokens" }, 422],
  [
    "body.metadata: Extra inputs are not permitted; body.stop: Extra inputs are not permitted",
    { drop: ["metadata", "stop"] },
    422,
  ],
  ["body.messages.3.assistant.reasoning_content: Extra inputs are not permitted", { reasoningHistory: false }, 422],
  ["body.messages.0.user.name: Extra inputs are not permitted", { dropInMessages: ["name"] }, 422],
  [
    "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not permitted', 'input': 800}]",
    { maxTokensMember: "max_tokens" },
  ],
  ["Extra inputs are not permitted, field: 'stream_options'", { streamOptions: false }],
  ["property 'metadata' is unsupported, did you mean 'model'?", { drop: ["metadata"] }],
  [
    "'messages.3' : for 'role:assistant' the following must be satisfied[('messages.3' : property 'reasoning_content' is unsupported)]",
    { reasoningHistory: false },
  ],
  [
    'Invalid JSON payload received. Unknown name "frequency_penalty": Cannot find field.\nInvalid JSON payload received. Unknown name "stop": Cannot find field.',
    { drop: ["frequency_penalty", "stop"] },
  ],
  [
    `Invalid JSON payload received. Unknown name "additionalProperties" at 'tools[0].function_declarations[34].parameters.properties[6].value.items': Cannot find field.`,
    { refusedKeywords: ["additionalProperties"] },
  ],
  [
    "Malformed input request: #: extraneous key [metadata] is not permitted, please reformat your input and try again.",
    { drop: ["metadata"] },
  ],
  [
    "Unrecognized request argument supplied: parallel_tool_calls. Please contact us through an Azure support request",
    { parallelCalls: false },
  ],
  ["Unknown parameter: 'stream_options'.", { streamOptions: false }],
  [
    "Unsupported parameter: 'max_completion_tokens' is not supported with this model. Use 'max_tokens' instead.",
    { maxTokensMember: "max_tokens" },
  ],
  [
    "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
    { drop: ["temperature"] },
  ],
  [
    "litellm.UnsupportedParamsError: together_ai does not support parameters: ['reasoning_effort', 'stop'], for model=x",
    { drop: ["reasoning_effort", "stop"] },
  ],
  ["Additional properties are not allowed ('metadata' was unexpected)", { drop: ["metadata"] }],
  [
    "Failed to deserialize the JSON body into the target type: unknown field `metadata`, expected one of `model`",
    { drop: ["metadata"] },
    422,
  ],
  ['json: unknown field "metadata"', { drop: ["metadata"] }],
  ["Invalid schema for function 'f': In context=(), 'pattern' is not permitted.", { refusedKeywords: ["pattern"] }],
  [
    "Error: Jinja Exception: System message must be at the beginning.",
    { systemMessages: "first" },
    500,
    { systemMessages: "anywhere" },
  ],
  ["System role not supported", { systemMessages: "none" }],
  ["Conversation roles must alternate user/assistant/user/assistant/...", { repeatedRoles: false }],
  [
    "Conversation roles must alternate user/assistant/user/assistant/...",
    { systemMessages: "none" },
    500,
    { repeatedRoles: false },
  ],
  ["Unexpected role 'user' after role 'tool'", { userAfterTool: false }],
  ["Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.", { callIds: "nine" }],
  [
    "messages[5].role: unknown variant `developer`, expected one of `system`, `user`",
    { instructionRole: "system" },
    422,
    { instructionRole: "any" },
  ],
  ["Unexpected message role.", { instructionRole: "system" }, 500, { instructionRole: "any" }],
  ["registry.ollama.ai/library/gemma:2b does not support tools", { tools: false }],
  [
    "No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs",
    { tools: false },
    404,
  ],
  ['"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', { tools: false }],
  [
    "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
    { toolChoices: ["none", "auto", "required"] },
  ],
  [
    "No endpoints found that support the provided 'tool_choice' value.",
    { toolChoices: ["none", "auto", "required"] },
    404,
  ],
  ["Thinking mode does not support this tool_choice", { toolChoices: ["none", "auto", "required"] }],
  ["This response_format type is unavailable now", { outputFormats: ["json_object"] }],
  [
    "Failed to deserialize the JSON body into the target type: response_format: response_format.type `json_schema` is unavailable now at line 1",
    { outputFormats: ["json_object"] },
    422,
  ],
  [
    "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    { images: false },
    500,
  ],
  ["At most 0 image(s) may be provided in one prompt.", { images: false }],
  ["No endpoints found that support image input", { images: false }, 404],
  ["messages[2].content: unknown variant `image_url`, expected `text`", { images: false }],
  ['"m" does not support thinking', { drop: ["reasoning_effort"] }],
  ["`logprobs` is not supported with this model", { logprobs: false }],
  ["Logprobs is not enabled for models/gemini-2.5-pro", { logprobs: false }],
  ["'n' : number must be at most 1", { severalChoices: false }],
];

test.each(wordings.map((wording) => ({ wording })))("$wording.0", ({ wording }) => {
  const [message, learned, status, profile = {}] = wording;
  const refusal = refused(message, status);
  expect(mayTeach(refusal)).toBe(true);
  expect(learnRefusal(refusal, everything, profile)).toEqual(learned);
});

test("param and code name a member, too", () => {
  const refusal = { status: 400, message: "Not with this model.", param: "stop", code: "unsupported_parameter" };
  expect(learnRefusal(refusal, everything, {})).toEqual({ drop: ["stop"] });
});

test.each([
  ["temperature: Input should be less than or equal to 2"],
  ["Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead."],
  ["body.model: Extra inputs are not permitted"],
  ["property 'messages' is unsupported"],
  ["Extra inputs are not permitted, field: 'not_sent'"],
  ["Extra inputs are not permitted, field: '__proto__'"],
  ["You exceeded your current quota"],
])("teaches nothing: %s", (message) => {
  expect(learnRefusal(refused(message), everything, {})).toBeNull();
});

test("what the request does not have is not learned from an error that speaks of it", () => {
  const hello = { model: "m", messages: [{ role: "user", content: "does not support tools" }] };
  for (const [message, , status, profile = {}] of wordings)
    if (!/role 'tool'|length of 9|schema|function_declarations|reasoning_content/.test(message))
      expect(learnRefusal(refused(message, status), hello, profile)).toBeNull();
});

// A lesson that did not change the profile would send the same request again, and again.
test("for every wording, a lesson is learned once", () => {
  for (const [message, , status, profile = {}] of wordings) {
    let known = profile;
    for (let lessons = 0; ; lessons++) {
      const lesson = learnRefusal(refused(message, status), everything, known);
      if (!lesson) break;
      expect(lessons).toBeLessThan(4);
      const next = mergedProfile(known, lesson);
      expect(next).not.toEqual(known);
      known = next;
    }
  }
});

test("for any error and any names, a refusal teaches in few steps, and only names that are sent", () => {
  const name = fc.oneof(
    fc.stringMatching(/^[\w$.[\]'-]{0,12}$/),
    fc.constantFrom("stop", "__proto__", "constructor", "toString"),
  );
  const form = fc.constantFrom<(name: string) => string>(
    (one) => `body.${one}: Extra inputs are not permitted`,
    (one) => `property '${one}' is unsupported`,
    (one) => `Unknown name "${one}": Cannot find field`,
    (one) => `unknown field \`${one}\``,
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(form, name), { maxLength: 40 }), (parts) => {
      const message = parts.map(([write, one]) => write(one)).join("; ");
      let known: ServerProfile = {};
      for (let step = 0; step < 12; step++) {
        const lesson = learnRefusal(refused(message), everything, known);
        if (!lesson) return;
        known = mergedProfile(known, lesson);
        for (const dropped of lesson.drop ?? []) expect(Object.hasOwn(everything, dropped)).toBe(true);
      }
      expect.unreachable("the same refusal taught twelve times");
    }),
  );
});
