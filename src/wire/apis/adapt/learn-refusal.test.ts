import fc from "fast-check";
import { expect, test } from "vitest";
import { learnRefusal, mayTeach } from "./learn-refusal.ts";
import { mergedProfile } from "./lessons.ts";
import type { UpstreamRefusal } from "./member-refusals.ts";
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
    { role: "user", content: [{ type: "text", text: "T" }] },
    { role: "assistant", content: null, tool_calls: [{ id: "call_1", type: "function", function: { name: "f" } }] },
    { role: "tool", tool_call_id: "call_1", content: "R" },
    { role: "user", content: "U" },
  ],
  tools: [
    {
      type: "function",
      function: {
        name: "f",
        strict: true,
        parameters: { type: "object", properties: { a: { pattern: "x" } }, additionalProperties: false },
      },
    },
    { type: "function", function: { name: "a.b" } },
    { type: "custom", custom: { name: "patch" } },
  ],
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
    { drop: ["metadata"] },
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
    { drop: ["frequency_penalty"] },
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
    { drop: ["reasoning_effort"] },
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
  ['think value "low" is not supported for this model', { drop: ["reasoning_effort"] }],
  ["`logprobs` is not supported with this model", { logprobs: false }],
  ["Logprobs is not enabled for models/gemini-2.5-pro", { logprobs: false }],
  ["'n' : number must be at most 1", { severalChoices: false }],
  // Met: llama-server, vLLM 0.32, mellea 0.8, transformers 5.23.
  ["Field 'n': Value must be between 1 <= value <= 1, but got 2", { severalChoices: false }],
  [
    "Unable to generate parser for this template. Automatic parser generation failed: JSON schema error at #/properties/a: schema must be an object",
    { schemaCompiler: "llama.cpp" },
  ],
  ["n must be 1 when using greedy sampling, got 2.", { severalChoices: false }],
  ["Multiple completions (n=2) are not supported. Please set n=1 or omit the parameter.", { severalChoices: false }],
  ["Input should be 'system', 'user', 'assistant', 'tool' or 'function'", { instructionRole: "system" }],
  ["Input should be 'none' or 'auto'", { toolChoices: ["none", "auto", "required"] }],
  ["Unexpected fields in the request: {'metadata', 'stop'}", { drop: ["metadata"] }, 422],
  [
    "Failed to deserialize the JSON body into the target type: messages[6]: invalid type: sequence, expected a string at line 1 column 325",
    { contentParts: false },
    422,
  ],
  ["Upstream request failed: [invalid_request_error] Input should be a valid string", { contentParts: false }, 422],
  [
    "[{'loc': ('body', 'messages', 6, 'content'), 'msg': 'str type expected', 'type': 'type_error.str'}]",
    { contentParts: false },
  ],
  ["Invalid type for 'messages[6].content': expected a string, but got an array instead.", { contentParts: false }],
  ["'messages.6.content' : value must be a string", { contentParts: false }],
  ["messages[6].content: a list was sent, but this server takes a string", { contentParts: false }, 422],
  ["The `reasoning_content` in the thinking mode must be passed back to the API.", { reasoningDemand: "calls" }],
  [
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Additional data, function call `default_api:shell` , position 2.",
    { stateDemand: "extra_content" },
  ],
  [
    "Unable to submit request because function call `f` in the 5. content block is missing a `thought_signature`. Learn more: https://docs.cloud.google.com/vertex-ai",
    { stateDemand: "extra_content" },
  ],
  [
    "Gemini models require OpenRouter reasoning details to be preserved in each request. Upstream error: Function call is missing a thought_signature in functionCall parts.",
    { stateDemand: "reasoning_details" },
  ],
  [
    "litellm.BadRequestError: Vertex_aiException BadRequestError - Function call is missing a thought_signature in functionCall parts.",
    { stateDemand: "provider_specific_fields" },
  ],
  [
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index 7",
    { reasoningDemand: "calls" },
  ],
  ["Missing required field reasoning_content in messages[7]", { reasoningDemand: "calls" }],
  [
    "Thinking mode needs reasoning_content for all messages of the assistant.",
    { reasoningDemand: "all" },
    400,
    { reasoningDemand: "calls" },
  ],
  [
    "Invalid 'tools[1].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    { toolNames: "short" },
  ],
  ["tools.1.custom.name: String should have at most 64 characters", { toolNames: "short" }],
  ["tools[2].type: unknown tool type: custom", { customTools: false }],
  ["'type' of tool must be 'function'", { customTools: false }],
];

test.each(wordings.map((wording) => ({ wording })))("$wording.0", ({ wording }) => {
  const [message, learned, status, profile = {}] = wording;
  const refusal = refused(message, status);
  expect(mayTeach(refusal)).toBe(true);
  expect(learnRefusal(refusal, everything, profile)).toEqual(learned);
});

/** A Responses request with items of earlier turns. */
const items: RequestBody = {
  model: "m",
  include: ["reasoning.encrypted_content"],
  input: [
    { role: "user", content: "Hi" },
    { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAA" },
    { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: "{}" },
    { type: "function_call_output", call_id: "call_1", output: "1" },
  ],
};
const itemWordings: readonly Wording[] = [
  ["Encrypted content is not supported with this model.", { encryptedReasoning: false }],
  ["Encrypted content is not supported.", { encryptedReasoning: false }, 500],
  ["include.0: Input should be 'message.output_text.logprobs'", { encryptedReasoning: false }, 422],
  [
    "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
    { itemIds: false },
  ],
  ["The `reasoning_text` in the thinking mode must be passed back to the API.", { reasoningHistory: true }],
  [
    "The `reasoning_text` in the thinking mode must be passed back to the API.",
    { reasoningDemand: "calls" },
    400,
    { reasoningHistory: true },
  ],
  ["item['content'] is not an array", { reasoningHistory: true }, 500],
];

test.each(itemWordings.map((wording) => ({ wording })))("of a Responses request: $wording.0", ({ wording }) => {
  const [message, learned, status, profile = {}] = wording;
  expect(mayTeach(refused(message, status))).toBe(true);
  expect(learnRefusal(refused(message, status), items, profile)).toEqual(learned);
  expect(learnRefusal(refused(message, status), items, { ...profile, ...learned, reasoningDemand: "all" })).toBeNull();
});

// One client's five stop sequences, next to an image, would have taken images from everybody: vLLM 0.32 has these words for many mistakes.
test.each([
  [
    "2 validation errors:\n  {'type': 'string_type', 'loc': 'body.stop', 'msg': 'Input should be a valid string', 'input': '<list of 5 items>'}\n  {'type': 'too_long', 'loc': 'body.stop', 'msg': 'List should have at most 4 items after validation, not 5'}",
  ],
  [
    "19 validation errors:\n  {'type': 'string_type', 'loc': 'body.messages.0.ChatCompletionUserMessageParam.content', 'msg': 'Input should be a valid string', 'input': 'None'}",
  ],
  ["[{'type': 'string_type', 'loc': ('body', 'seed'), 'msg': 'Input should be a valid string', 'input': 5}]"],
])("a text that is demanded in another place says nothing of contents: %s", (message) => {
  expect(learnRefusal(refused(message), everything, {})).toBeNull();
});

test("a Messages server that demands its thinking back is recognised", () => {
  const refusal = refused("The `content[].thinking` in the thinking mode must be passed back to the API.");
  const use = { type: "tool_use", id: "toolu_1", name: "f", input: {} };
  const messages = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: [use] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "ok" }] },
  ];
  expect(mayTeach(refusal)).toBe(true);
  const both = { reasoningHistory: true, reasoningDemand: "calls" } as const;
  expect(learnRefusal(refusal, { messages }, {})).toEqual(both);
  expect(learnRefusal(refusal, { messages }, { reasoningHistory: true })).toEqual(both);
  expect(learnRefusal(refusal, { messages }, both)).toBeNull();
  const said = [...messages.slice(0, 1), { role: "assistant", content: "Hi" }, ...messages.slice(0, 1)];
  expect(learnRefusal(refusal, { messages: said }, {})).toEqual({ reasoningHistory: true });
  expect(learnRefusal(refusal, { messages: said }, { reasoningHistory: true })).toBeNull();
  expect(learnRefusal(refusal, { messages: messages.slice(0, 1) }, {})).toBeNull();
});

test("a value of include that a server does not know is named by param", () => {
  const refusal = { ...refused("Invalid value."), param: "include[0]", code: "invalid_value" };
  expect(learnRefusal(refusal, items, {})).toEqual({ encryptedReasoning: false });
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

test("a refusal that names several members teaches one after another, as each is confirmed alone", () => {
  const refusal = refused("Unrecognized request arguments supplied: metadata, stop, unsent");
  const first = learnRefusal(refusal, everything, {});
  expect(first).toEqual({ drop: ["metadata"] });
  expect(learnRefusal(refusal, everything, first ?? {})).toEqual({ drop: ["stop"] });
  expect(learnRefusal(refusal, everything, { drop: ["metadata", "stop"] })).toBeNull();
});

test("what the request does not have is not learned from an error that speaks of it", () => {
  const hello = { model: "m", messages: [{ role: "user", content: "Hi" }] };
  for (const [message, , status, profile = {}] of wordings)
    expect([message, learnRefusal(refused(message, status), hello, profile)]).toEqual([message, null]);
});

// The place was not compared with the request: a refusal of one message's image taught that the model takes none, although another message had it.
test.each([
  ["messages[1].content: unknown variant `image_url`, expected `text`", {}],
  ["'messages[1].role' does not support 'system' with this model", {}],
  ["body.messages.1.user.name: Extra inputs are not permitted", {}],
  ["body.messages.0.system.content.0.stop: Extra inputs are not permitted", {}],
  ["body.metadata.stop: Extra inputs are not permitted", {}],
  ["tools.0.function.parameters.properties.a.minLength: Extra inputs are not permitted", {}],
  ["tools.0.function.parameters.properties.type: Extra inputs are not permitted", {}],
  ["messages[1].content: invalid type: sequence, expected a string", {}],
])("teaches nothing about another place: %s", (message, profile) => {
  expect(learnRefusal(refused(message), everything, profile)).toBeNull();
});

/** Ways in which servers repeat a request in their errors. */
const quotes: readonly (readonly [name: string, quote: (text: string) => string])[] = [
  ["as it is", (text) => text],
  ["as JSON", (text) => JSON.stringify(text)],
  ["as JSON in JSON", (text) => JSON.stringify(JSON.stringify({ input: text }))],
  ["in upper case", (text) => text.toUpperCase()],
  ["in lower case", (text) => text.toLowerCase()],
  ["as Python does", (text) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", "\\n")}'`],
  ["as HTML", (text) => text.replaceAll("&", "&amp;").replaceAll("'", "&#39;").replaceAll('"', "&quot;")],
  ["with other white space", (text) => text.replaceAll(/\s+/g, "  ")],
];

// One client's words, quoted by a server, dropped tools and members from the requests of all others, for ever. The tests of refusals had only
// texts that no server quotes.
test.each(quotes)(
  "for every wording in a client's value, a refusal that quotes it %s teaches nothing, however it is cut off",
  (_, quote) => {
    const around = fc.constantFrom("", " ", "Say: ", "ſ ", "\n", '"', "\\", "x".repeat(50));
    const place = fc.constantFrom<(text: string) => RequestBody>(
      (text) => ({ messages: [...(everything["messages"] as object[]), { role: "user", content: text }] }),
      (text) => ({ stop: [text] }),
      (text) => ({ user: text }),
      (text) => ({ metadata: { [text]: "1" } }),
    );
    const server = fc.constantFrom<(text: string) => string>(
      (text) => text,
      (text) => `Invalid value: ${text}`,
      (text) => `body.messages.10.content: Value error, got ${text} at line 1`,
      (text) => `{"error": "bad request", "input": ${text}}`,
    );
    const cut = fc.tuple(fc.nat(40), fc.nat(40));
    fc.assert(
      fc.property(
        fc.constantFrom(...wordings),
        around,
        around,
        place,
        server,
        fc.option(cut),
        ([wording, , status, profile = {}], before, after, at, write, cuts) => {
          const value = `${before}${wording}${after}`;
          const whole = quote(value);
          const quoted = cuts ? whole.slice(cuts[0], whole.length - cuts[1]) : whole;
          // Of fewer letters, nobody can tell whose they are: "must be a string".
          if (quoted !== whole && quoted.replaceAll(/[^\p{L}\p{N}]/gu, "").length < 16) return;
          const body = { ...everything, ...at(value) };
          expect(learnRefusal(refused(write(quoted), status), body, profile)).toBeNull();
        },
      ),
      { numRuns: 500 },
    );
  },
);

test("a server's own words teach beside a quoted text that says something else", () => {
  const body = { ...everything, user: "property 'stop' is unsupported" };
  const message = "property 'metadata' is unsupported (user: 'property 'stop' is unsupported')";
  expect(learnRefusal(refused(message), body, {})).toEqual({ drop: ["metadata"] });
});

test("a short value that a server puts into its sentence is no word of its own", () => {
  const choice = { type: "function", function: { name: "unsupported" } };
  const tools = [{ type: "function", function: { name: "unsupported" } }];
  const body = { ...everything, tools, tool_choice: choice };
  expect(learnRefusal(refused("tool_choice: 'unsupported' is another tool"), body, {})).toBeNull();
  expect(
    learnRefusal(refused("tool_choice of this form is unsupported"), { ...body, tools: everything["tools"] }, {}),
  ).toBeNull();
});

test("a long conversation about APIs does not hide what a server refuses", () => {
  const talk =
    "The parameter frequency_penalty is not supported there. Use tool_choice, response_format or a string. ".repeat(50);
  const body = { ...everything, messages: [{ role: "user", content: talk }] };
  expect(learnRefusal(refused("property 'frequency_penalty' is unsupported"), body, {})).toEqual({
    drop: ["frequency_penalty"],
  });
});

test("the words of a client are found in time linear in its request and in the refusal", () => {
  const messageOf = (count: number): string => "property 'stop' is unsupported ".repeat(count);
  const bodyOf = (count: number): RequestBody => ({
    stop: "x",
    messages: [{ content: "stop is unsup & \\u0041 é".repeat(count) }],
  });
  const cpu = (run: () => void): number => {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  const cost = (size: number): number =>
    Math.min(...[1, 2, 3].map(() => cpu(() => void learnRefusal(refused(messageOf(120)), bodyOf(size), {}))));
  cost(1000);
  expect(cost(160_000)).toBeLessThan(cost(40_000) * 12);
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

// The names of llama-cpp-python 0.3.36 are long: their places were read in exponential time, and the process answered nobody any more.
test("a place with long names that is refused for another reason is read once", () => {
  const name = "ChatCompletionRequestFunctionMessage";
  const place = `('body', 'messages', 1, '${name}', '${name}', '${name}')`;
  const message = `{'type': 'missing', 'loc': ${place}, 'msg': 'Field required', 'input': {'role': 'assistant'}}`;
  expect(learnRefusal({ status: 500, message, param: null, code: null }, everything, {})).toBeNull();
});

/** A server that refuses the value that stands in is not asked by turns with each member that is known. */
test("a demanded state is learned once, and only from a request with calls", () => {
  const message = "Function call is missing a thought_signature in functionCall parts.";
  expect(learnRefusal(refused(message), everything, { stateDemand: "extra_content" })).toBeNull();
  expect(learnRefusal(refused(message), { messages: [{ role: "user", content: "a" }] }, {})).toBeNull();
});

/** Xiaomi's refusal has its words in `param` only, which was not read: no test had one. */
test("words in param teach, too", () => {
  const param = "The reasoning_content in the thinking mode must be passed back to the API.";
  const refusal: UpstreamRefusal = { status: 400, message: "Param Incorrect", param, code: null };
  expect(mayTeach(refusal)).toBe(true);
  expect(learnRefusal(refusal, everything, {})).toEqual({ reasoningDemand: "calls" });
});
