import fc from "fast-check";
import { expect, test } from "vitest";
import type { ChatPrompt, GenerationRequest } from "../core/request.ts";
import { chatParameters, readChatRequest } from "./chat/request.ts";
import { writeChatRequest } from "./chat/send.ts";
import { completionParameters, readCompletionRequest } from "./completions/request.ts";
import { writeCompletionsRequest } from "./completions/send.ts";
import type { RequestParameter } from "./request/parameter.ts";
import type { ServerProfile } from "./adapt/server-profile.ts";

type Members = Record<string, fc.Arbitrary<unknown>>;

const word = fc.stringMatching(/^[a-z]{1,8}$/);
const text = fc.string({ maxLength: 12 });
const schema = fc.constantFrom(
  { type: "object", properties: { a: { type: "integer" } }, required: ["a"], additionalProperties: false },
  { type: "array", items: { type: "string" } },
  {},
);
const nullable = (value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> => fc.option(value, { freq: 20 });
const unit = fc.double({ min: 0, max: 1, noNaN: true });
const penalty = fc.double({ min: -2, max: 2, noNaN: true });
const count = fc.integer({ min: 1, max: 500 });

const call = fc.oneof(
  fc.record({
    id: word,
    type: fc.constant("function"),
    function: fc.record({ name: word, arguments: fc.oneof(fc.json(), text) }),
  }),
  fc.record({ id: word, type: fc.constant("custom"), custom: fc.record({ name: word, input: text }) }),
);
const textPart = fc.record({ type: fc.constant("text"), text });
const userPart = fc.oneof(
  textPart,
  fc.record({
    type: fc.constant("image_url"),
    image_url: fc.record({ url: fc.webUrl(), detail: fc.constantFrom("low", "high") }, { requiredKeys: ["url"] }),
  }),
  fc.record({
    type: fc.constant("input_audio"),
    input_audio: fc.record({ data: fc.base64String(), format: fc.constantFrom("wav", "mp3") }),
  }),
  fc.record({
    type: fc.constant("file"),
    file: fc.record({ filename: word, file_data: fc.base64String(), file_id: word }, { requiredKeys: [] }),
  }),
);
const oneOrMore = (part: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof(text, fc.array(part, { minLength: 1, maxLength: 3 }));
const message = fc.oneof(
  fc.record(
    { role: fc.constantFrom("system", "developer"), content: oneOrMore(textPart), name: word },
    { requiredKeys: ["role", "content"] },
  ),
  fc.record(
    { role: fc.constant("user"), content: oneOrMore(userPart), name: word },
    { requiredKeys: ["role", "content"] },
  ),
  fc.record(
    {
      role: fc.constant("assistant"),
      content: nullable(oneOrMore(textPart)),
      name: word,
      refusal: text,
      reasoning_content: text,
      tool_calls: fc.array(call, { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: ["role", "content"] },
  ),
  fc.record({ role: fc.constant("tool"), content: oneOrMore(textPart), tool_call_id: word }),
);

const sampling: Members = {
  temperature: fc.double({ min: 0, max: 2, noNaN: true }),
  top_p: unit,
  top_k: fc.integer({ min: -1, max: 100 }),
  min_p: unit,
  frequency_penalty: penalty,
  presence_penalty: penalty,
  repeat_penalty: unit,
  repetition_penalty: unit,
  repeat_last_n: fc.integer({ min: -1, max: 64 }),
  xtc_probability: unit,
  xtc_threshold: unit,
  dry_multiplier: unit,
  dry_base: unit,
  dry_allowed_length: fc.integer({ min: 0, max: 9 }),
  dry_penalty_last_n: fc.integer({ min: -1, max: 64 }),
  dry_sequence_breakers: fc.oneof(
    fc.array(word),
    fc.array(word).map((list) => JSON.stringify(list)),
  ),
  logit_bias: fc.oneof(
    fc.dictionary(fc.oneof(fc.nat(999).map(String), word), fc.integer({ min: -100, max: 100 })),
    fc.array(fc.tuple(fc.oneof(fc.nat(999), word), fc.oneof(fc.integer({ min: -100, max: 100 }), fc.constant(false)))),
  ),
  return_token_ids: fc.boolean(),
  return_progress: fc.boolean(),
  seed: fc.maxSafeInteger(),
  min_tokens: fc.nat(9),
  n_predict: count,
  ignore_eos: fc.boolean(),
  stop: fc.oneof(word, fc.array(word, { maxLength: 3 })),
  stop_token_ids: fc.array(fc.nat(999)),
  cache_prompt: fc.boolean(),
  lora: fc.array(fc.record({ id: fc.nat(9), scale: unit })),
  n: fc.integer({ min: 1, max: 8 }),
  user: text,
  include_timings: fc.boolean(),
  timings_per_token: fc.boolean(),
  include_hosted_calls: fc.boolean(),
};

/** Ways to bind the answer, of which a request may have one. */
const outputs: Members = {
  response_format: fc.oneof(
    fc.constant({ type: "text" }),
    fc.constant({ type: "json_object" }),
    fc.record({ type: fc.constant("json_object"), schema }),
    fc.record({
      type: fc.constant("json_schema"),
      json_schema: fc.record(
        { name: word, description: text, schema, strict: fc.boolean() },
        { requiredKeys: ["name", "schema"] },
      ),
    }),
  ),
  grammar: word,
  json_schema: fc.oneof(
    schema,
    schema.map((value) => JSON.stringify(value)),
  ),
  guided_json: schema,
  guided_regex: word,
  regex: word,
  ebnf: word,
  guided_choice: fc.array(word, { minLength: 1 }),
  guided_grammar: word,
  structured_outputs: fc.oneof(
    schema.map((json) => ({ json })),
    word.map((regex) => ({ regex })),
    fc.array(word, { minLength: 1 }).map((choice) => ({ choice })),
    word.map((grammar) => ({ grammar })),
    fc.constant({ json_object: true }),
  ),
};

const chat: Members = {
  ...sampling,
  max_tokens: count,
  max_completion_tokens: count,
  reasoning_effort: fc.constantFrom("none", "minimal", "low", "medium", "high", "xhigh", "max"),
  thinking_token_budget: fc.nat(99),
  thinking_budget_tokens: fc.integer({ min: -1, max: 99 }),
  reasoning_format: fc.constantFrom("none", "auto", "deepseek"),
  verbosity: fc.constantFrom("low", "medium", "high"),
  chat_template_kwargs: fc.dictionary(word, fc.jsonValue()),
  template_vars: fc.dictionary(word, fc.jsonValue()),
  documents: fc.array(fc.dictionary(word, text)),
  response_prefix: text,
  service_tier: fc.constantFrom("auto", "default", "flex"),
  store: fc.boolean(),
  metadata: fc.dictionary(word, text),
  prediction: fc.record({ type: fc.constant("content"), content: text }),
  safety_identifier: word,
  prompt_cache_key: word,
  prompt_cache_retention: fc.constantFrom("in_memory", "24h"),
  prompt_cache_options: fc.dictionary(word, text),
  add_generation_prompt: fc.boolean(),
  // What nobody here knows goes along.
  vendor_member: fc.jsonValue(),
};

const definition = fc.record(
  { name: word, description: text, parameters: fc.constant({ type: "object", properties: {} }), strict: fc.boolean() },
  { requiredKeys: ["name"] },
);
const tool = fc.oneof(
  definition.map((value) => ({ type: "function", function: value })),
  fc
    .record({ name: word, description: text }, { requiredKeys: ["name"] })
    .map((value) => ({ type: "custom", custom: value })),
  fc
    .record({ name: word, syntax: fc.constant("regex"), definition: word })
    .map(({ name, ...grammar }) => ({ type: "custom", custom: { name, format: { type: "grammar", grammar } } })),
);
const nameOf = (one: { function?: { name: string }; custom?: { name: string } }): string =>
  one.function?.name ?? one.custom?.name ?? "";

/** Tools, or the legacy functions, with a choice that fits them. */
const tools = fc.oneof(
  fc.constant({}),
  fc
    .tuple(fc.uniqueArray(tool, { minLength: 1, maxLength: 3, selector: nameOf }), fc.nat(4), fc.option(fc.boolean()))
    .map(([list, choice, parallel]) => {
      const named = list.map((one) => ({ type: one.type, [one.type]: { name: nameOf(one) } }));
      const allowed = { type: "allowed_tools", allowed_tools: { mode: "required", tools: named } };
      return {
        tools: list,
        ...(choice > 0 && { tool_choice: ["none", "auto", "required", named[0], allowed][choice] }),
        ...(parallel !== null && { parallel_tool_calls: parallel }),
      };
    }),
  fc
    .tuple(fc.uniqueArray(definition, { minLength: 1, maxLength: 2, selector: ({ name }) => name }), fc.nat(3))
    .map(([functions, choice]) => ({
      functions,
      ...(choice > 0 && { function_call: ["none", "auto", { name: functions[0]?.name }][choice - 1] }),
    })),
);

const logprobs = fc.oneof(
  fc.constant({}),
  fc.nat(20).map((top) => ({ logprobs: true, top_logprobs: top })),
);
const output = fc.oneof(
  fc.constant({}),
  ...Object.entries(outputs).map(([name, value]) => value.map((one) => ({ [name]: one }))),
);
const some = (members: Members): fc.Arbitrary<Record<string, unknown>> => fc.record(members, { requiredKeys: [] });
const streamed = fc.constantFrom(
  {},
  { prompt_logprobs: 3 },
  { stream: true },
  { stream: true, stream_options: { include_usage: true } },
  { stream: true, stream_options: { include_usage: true, continuous_usage_stats: true } },
);
const continued = fc.constantFrom({}, {}, {}, { add_generation_prompt: false, continue_final_message: true });

const chatBody = fc
  .tuple(fc.array(message, { minLength: 1, maxLength: 4 }), some(chat), tools, logprobs, output, streamed, continued)
  .map(([messages, members, ...more]) => {
    const body = Object.assign({ model: "m", messages }, members, ...more) as Record<string, unknown>;
    if (body["continue_final_message"] !== true) return body;
    const { response_prefix: _, ...rest } = body;
    return { ...rest, messages: [...messages, { role: "assistant", content: "Once" }] };
  });

const completionBody = fc
  .tuple(
    fc.oneof(text, fc.array(text, { minLength: 1, maxLength: 3 }), fc.array(fc.nat(999), { minLength: 1 })),
    some({ ...sampling, max_tokens: count, echo: fc.boolean(), suffix: text, logprobs: fc.nat(20) }),
    output,
    streamed,
  )
  .map(([prompt, members, ...more]) => Object.assign({ model: "m", prompt }, members, ...more));

/**
 * What a request asks an engine for. Which of several spellings the client chose is not part of it: where a schema stood, whether the
 * client is answered in the legacy form, and whether a text is one string or a list of texts.
 */
function asked({ output, prompt, ...members }: GenerationRequest): unknown {
  const request = { ...members, passthrough: undefined };
  const content = { ...prompt, legacyFunctions: undefined, ...(prompt.kind === "chat" && { messages: plain(prompt) }) };
  return JSON.parse(
    JSON.stringify({ ...request, prompt: content, ...(output && { output: { ...output, path: "" } }) }),
  );
}

/** The messages with neighbouring texts as one, as chat servers get them, and without empty ones. */
function plain({ messages }: ChatPrompt): unknown {
  return messages.map(({ content, ...message }) => {
    const parts: { type: string; text?: string }[] = [];
    for (const part of typeof content === "string" ? [{ type: "text", text: content }] : (content ?? [])) {
      const last = parts.at(-1);
      if (part.type === "text" && last?.type === "text")
        parts[parts.length - 1] = { ...part, text: `${last.text}\n${part.text}` };
      else parts.push(part);
    }
    return { ...message, content: parts.filter(({ type, text }) => type !== "text" || text !== "") };
  });
}

/** The profile of a server that accepts whatever chat has. */
const acceptsAll: ServerProfile = {
  instructionRole: "any",
  systemMessages: "anywhere",
  customTools: true,
  anyArguments: true,
  toolImages: true,
  reasoningEffort: true,
  reasoningBudget: true,
};

test("for any chat request, the one built from neutral members asks for the same as the client's own", () => {
  fc.assert(
    fc.property(chatBody, (body) => {
      const { request } = readChatRequest(body, "req_1");
      const { passthrough: _, ...neutral } = request;
      const written: unknown = JSON.parse(JSON.stringify(writeChatRequest(neutral, acceptsAll)));
      expect(asked(readChatRequest(written, "req_1").request)).toEqual(asked(request));
    }),
    { numRuns: 400 },
  );
});

test("and for any completions request", () => {
  fc.assert(
    fc.property(completionBody, (body) => {
      const { request } = readCompletionRequest(body, "req_1");
      const { passthrough: _, ...neutral } = request;
      const written: unknown = JSON.parse(JSON.stringify(writeCompletionsRequest(neutral, {})));
      expect(asked(readCompletionRequest(written, "req_1").request)).toEqual(asked(request));
    }),
    { numRuns: 300 },
  );
});

test("the properties cover every parameter that has an effect on the engine", () => {
  // These are about the form of our own answer, which no upstream needs to know.
  const ofTheAnswer = ["include_reasoning", "include_stop_str", "reasoning_control"];
  const elsewhere = [
    "model",
    "messages",
    "prompt",
    "stream",
    "stream_options",
    "continue_final_message",
    "prompt_logprobs",
    // Truewire runs these itself: their tests are in test/hosted.
    "hosted_tools",
    // Spellings of the mode of reasoning, of which a server's profile chooses one: their tests are in chat/ and test/upstream.
    "enable_thinking",
    "think",
    "thinking",
  ];
  const choices = [
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "top_logprobs",
    "logprobs",
  ];
  const made = new Set([...Object.keys(chat), ...Object.keys(outputs), ...elsewhere, ...choices, ...ofTheAnswer]);
  const missing = (table: readonly RequestParameter[], known: ReadonlySet<string>): string[] =>
    table.filter(({ name, treatment }) => treatment !== "refused" && !known.has(name)).map(({ name }) => name);
  expect(missing(chatParameters, made)).toEqual([]);
  // best_of only goes with n, which the generator draws freely; its own test is in completions/.
  expect(missing(completionParameters, new Set([...made, "echo", "suffix", "best_of"]))).toEqual([]);
});
