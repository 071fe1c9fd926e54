import {
  call,
  chatTool,
  messagesTool,
  pdf,
  png,
  responsesTool,
  schema,
  spaced,
  strictSchema,
  unicode,
} from "./fact-values.ts";
import { type Api, baseBody, type Edit, type Fact, type Json } from "./facts.ts";
import { geminiEdits } from "./gemini-facts.ts";
import { memberFacts } from "./member-facts.ts";
import { ollamaEdits } from "./ollama-facts.ts";

/*
 * The requests of `truewire between`: each has the base body of its API, and one fact. What an API does not have is absent from its column.
 */

interface RequestFact {
  readonly title: string;
  readonly isQuick?: boolean;
  readonly isOfVendor?: boolean;
  readonly chat?: Edit;
  readonly responses?: Edit;
  readonly messages?: Edit;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Adds messages after those of the base body. */
function chatTurns(...turns: readonly Json[]): Edit {
  return (body) => ({ ...body, tools: [chatTool], messages: [...(body["messages"] as Json[]), ...turns] });
}
function responsesTurns(...turns: readonly Json[]): Edit {
  return (body) => ({ ...body, tools: [responsesTool], input: [...(body["input"] as Json[]), ...turns] });
}
function messagesTurns(...turns: readonly Json[]): Edit {
  return (body) => ({ ...body, tools: [messagesTool], messages: [...(body["messages"] as Json[]), ...turns] });
}

/** Puts content parts before the user's text, which has the marker. */
function chatParts(...parts: readonly Json[]): Edit {
  return userContent("messages", "text", parts);
}
function responsesParts(...parts: readonly Json[]): Edit {
  return userContent("input", "input_text", parts);
}
function messagesParts(...parts: readonly Json[]): Edit {
  return userContent("messages", "text", parts);
}
function userContent(member: string, type: string, parts: readonly Json[]): Edit {
  return (body) => {
    const list = body[member] as Json[];
    const last = list.at(-1) ?? {};
    const { content } = last;
    const own = Array.isArray(content) ? (content as Json[]) : [{ type, text: content }];
    return { ...body, [member]: [...list.slice(0, -1), { ...last, content: [...parts, ...own] }] };
  };
}

function systemText(text: string): Pick<RequestFact, "chat" | "responses" | "messages"> {
  return {
    chat: (body) => ({
      ...body,
      messages: [{ role: "system", content: text }, ...(body["messages"] as Json[]).slice(1)],
    }),
    responses: { instructions: text },
    messages: { system: text },
  };
}

const chatCall = { id: call.id, type: "function", function: { name: call.name, arguments: spaced } };
const toolUseId = "toolu_between00000000000001";

const requestFacts: Readonly<Record<string, RequestFact>> = {
  "system-unicode": { title: "system text in Unicode", isQuick: true, ...systemText(unicode) },
  "system-spaces": { title: "white space around the system text", ...systemText("\n  Indented.\n\n") },
  "system-long": { title: "system text of 100,000 characters", ...systemText("A long rule. ".repeat(7700)) },
  "system-blocks": {
    title: "several system texts",
    isQuick: true,
    chat: (body) => ({
      ...body,
      messages: [
        { role: "system", content: "First rule." },
        { role: "system", content: "Second rule." },
        (body["messages"] as Json[])[1],
      ],
    }),
    messages: {
      system: [
        { type: "text", text: "First rule." },
        { type: "text", text: "Second rule." },
      ],
    },
  },
  developer: {
    title: "developer message",
    chat: (body) => ({
      ...body,
      messages: [{ role: "developer", content: "Be brief." }, ...(body["messages"] as Json[]).slice(1)],
    }),
    responses: (body) => ({
      ...body,
      input: [{ role: "developer", content: "Be brief." }, ...(body["input"] as Json[])],
    }),
  },
  "user-unicode": {
    title: "user text in Unicode",
    isQuick: true,
    chat: chatParts({ type: "text", text: unicode }),
    responses: responsesParts({ type: "input_text", text: unicode }),
    messages: messagesParts({ type: "text", text: unicode }),
  },
  image: {
    title: "image as data",
    isQuick: true,
    chat: chatParts({ type: "image_url", image_url: { url: `data:image/png;base64,${png}`, detail: "low" } }),
    responses: responsesParts({ type: "input_image", image_url: `data:image/png;base64,${png}`, detail: "low" }),
    messages: messagesParts({ type: "image", source: { type: "base64", media_type: "image/png", data: png } }),
  },
  "image-url": {
    title: "image by address",
    chat: chatParts({ type: "image_url", image_url: { url: "https://example.com/a.png" } }),
    responses: responsesParts({ type: "input_image", image_url: "https://example.com/a.png" }),
    messages: messagesParts({ type: "image", source: { type: "url", url: "https://example.com/a.png" } }),
  },
  document: {
    title: "PDF",
    chat: chatParts({ type: "file", file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${pdf}` } }),
    responses: responsesParts({
      type: "input_file",
      filename: "a.pdf",
      file_data: `data:application/pdf;base64,${pdf}`,
    }),
    messages: messagesParts({
      type: "document",
      source: { type: "base64", media_type: "application/pdf", data: pdf },
      title: "a.pdf",
    }),
  },
  temperature: {
    title: "temperature",
    isQuick: true,
    chat: { temperature: 0.3 },
    responses: { temperature: 0.3 },
    messages: { temperature: 0.3 },
  },
  "top-p": { title: "top_p", chat: { top_p: 0.7 }, responses: { top_p: 0.7 }, messages: { top_p: 0.7 } },
  "top-k": { title: "top_k", messages: { top_k: 17 } },
  "max-tokens": {
    title: "limit of the answer",
    isQuick: true,
    chat: { max_completion_tokens: 777 },
    responses: { max_output_tokens: 777 },
    messages: { max_tokens: 777 },
  },
  stop: {
    title: "stop sequences",
    isQuick: true,
    chat: { stop: ["END", "\n\nHuman:"] },
    messages: { stop_sequences: ["END", "\n\nHuman:"] },
  },
  choices: { title: "several choices", chat: { n: 2 } },
  seed: { title: "seed", chat: { seed: 42 } },
  penalties: { title: "penalties", chat: { frequency_penalty: 0.5, presence_penalty: -0.5 } },
  "logit-bias": { title: "logit_bias", chat: { logit_bias: { "1234": -100 } } },
  logprobs: {
    title: "log probabilities",
    chat: { logprobs: true, top_logprobs: 3 },
    responses: { top_logprobs: 3, include: ["message.output_text.logprobs"] },
  },
  tools: {
    title: "tool with its schema",
    isQuick: true,
    chat: { tools: [chatTool] },
    responses: { tools: [responsesTool] },
    messages: { tools: [messagesTool] },
  },
  "many-tools": {
    title: "64 tools in their order",
    chat: { tools: numbered((name) => ({ type: "function", function: { name, parameters: schema } })) },
    responses: { tools: numbered((name) => ({ type: "function", name, parameters: schema, strict: false })) },
    messages: { tools: numbered((name) => ({ name, input_schema: schema })) },
  },
  "strict-tool": {
    title: "strict tool",
    chat: { tools: [{ type: "function", function: { name: "solve", parameters: strictSchema, strict: true } }] },
    responses: { tools: [{ type: "function", name: "solve", parameters: strictSchema, strict: true }] },
    messages: { tools: [{ name: "solve", input_schema: strictSchema, strict: true }] },
  },
  "custom-tool": {
    title: "custom tool with a grammar",
    chat: {
      tools: [
        {
          type: "custom",
          custom: { name: "patch", format: { type: "grammar", grammar: { syntax: "regex", definition: "[a-z]+" } } },
        },
      ],
    },
    responses: {
      tools: [{ type: "custom", name: "patch", format: { type: "grammar", syntax: "regex", definition: "[a-z]+" } }],
    },
  },
  "tool-choice": {
    title: "choice of one tool",
    isQuick: true,
    chat: { tools: [chatTool], tool_choice: { type: "function", function: { name: "get_weather" } } },
    responses: { tools: [responsesTool], tool_choice: { type: "function", name: "get_weather" } },
    messages: { tools: [messagesTool], tool_choice: { type: "tool", name: "get_weather" } },
  },
  "tool-required": {
    title: "a tool is required",
    chat: { tools: [chatTool], tool_choice: "required" },
    responses: { tools: [responsesTool], tool_choice: "required" },
    messages: { tools: [messagesTool], tool_choice: { type: "any" } },
  },
  "tool-none": {
    title: "no tool may be called",
    chat: { tools: [chatTool], tool_choice: "none" },
    responses: { tools: [responsesTool], tool_choice: "none" },
    messages: { tools: [messagesTool], tool_choice: { type: "none" } },
  },
  "one-call": {
    title: "one call at a time",
    chat: { tools: [chatTool], parallel_tool_calls: false },
    responses: { tools: [responsesTool], parallel_tool_calls: false },
    messages: { tools: [messagesTool], tool_choice: { type: "auto", disable_parallel_tool_use: true } },
  },
  "tool-round": {
    title: "earlier call and its result",
    isQuick: true,
    chat: chatTurns(
      { role: "assistant", content: "Let me look.", tool_calls: [chatCall] },
      { role: "tool", tool_call_id: call.id, content: unicode },
    ),
    responses: responsesTurns(
      { type: "function_call", call_id: call.id, name: call.name, arguments: spaced },
      { type: "function_call_output", call_id: call.id, output: unicode },
    ),
    messages: messagesTurns(
      {
        role: "assistant",
        content: [
          { type: "text", text: "Let me look." },
          { type: "tool_use", id: toolUseId, name: call.name, input: JSON.parse(spaced) as Json },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: toolUseId, content: unicode }] },
    ),
  },
  "parallel-round": {
    title: "two parallel calls and their results",
    isQuick: true,
    chat: chatTurns(
      { role: "assistant", content: null, tool_calls: [chatCall, { ...chatCall, id: `${call.id}b` }] },
      { role: "tool", tool_call_id: call.id, content: "first" },
      { role: "tool", tool_call_id: `${call.id}b`, content: "second" },
    ),
    responses: responsesTurns(
      { type: "function_call", call_id: call.id, name: call.name, arguments: spaced },
      { type: "function_call", call_id: `${call.id}b`, name: call.name, arguments: spaced },
      { type: "function_call_output", call_id: call.id, output: "first" },
      { type: "function_call_output", call_id: `${call.id}b`, output: "second" },
    ),
    messages: messagesTurns(
      {
        role: "assistant",
        content: ["", "b"].map((end) => ({
          type: "tool_use",
          id: toolUseId + end,
          name: call.name,
          input: { city: `A${end}` },
        })),
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: toolUseId, content: "first" },
          { type: "tool_result", tool_use_id: `${toolUseId}b`, content: "second" },
        ],
      },
    ),
  },
  "failed-result": {
    title: "failed call",
    messages: messagesTurns(
      { role: "assistant", content: [{ type: "tool_use", id: toolUseId, name: call.name, input: { city: "A" } }] },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: toolUseId, content: "no such city", is_error: true }],
      },
    ),
  },
  "image-result": {
    title: "image in the result of a call",
    responses: responsesTurns(
      { type: "function_call", call_id: call.id, name: call.name, arguments: "{}" },
      {
        type: "function_call_output",
        call_id: call.id,
        output: [{ type: "input_image", image_url: `data:image/png;base64,${png}` }],
      },
    ),
    messages: messagesTurns(
      { role: "assistant", content: [{ type: "tool_use", id: toolUseId, name: call.name, input: { city: "A" } }] },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: toolUseId,
            content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: png } }],
          },
        ],
      },
    ),
  },
  effort: {
    title: "effort of reasoning",
    isQuick: true,
    chat: { reasoning_effort: "high" },
    responses: { reasoning: { effort: "high", summary: "auto" } },
    messages: { output_config: { effort: "high" } },
  },
  "thinking-budget": {
    title: "budget of thinking",
    messages: { max_tokens: 4000, thinking: { type: "enabled", budget_tokens: 2048 } },
  },
  thinking: {
    title: "signed thinking of an earlier turn",
    isQuick: true,
    messages: (body) =>
      (
        messagesTurns(
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: "The user wants the weather.", signature: "c2lnbmF0dXJlLW9mLWJldHdlZW4=" },
              { type: "redacted_thinking", data: "cmVkYWN0ZWQ=" },
              { type: "tool_use", id: toolUseId, name: call.name, input: { city: "A" } },
            ],
          },
          { role: "user", content: [{ type: "tool_result", tool_use_id: toolUseId, content: "rain" }] },
        ) as (body: Json) => Json
      )({ ...body, max_tokens: 4000, thinking: { type: "enabled", budget_tokens: 2048 } }),
  },
  "encrypted-reasoning": {
    title: "encrypted reasoning of an earlier turn",
    isQuick: true,
    responses: (body) =>
      (
        responsesTurns(
          { type: "reasoning", id: "rs_between", summary: [], encrypted_content: "ZW5jcnlwdGVk" },
          { type: "function_call", call_id: call.id, name: call.name, arguments: "{}" },
          { type: "function_call_output", call_id: call.id, output: "rain" },
        ) as (body: Json) => Json
      )({ ...body, store: false, include: ["reasoning.encrypted_content"] }),
  },
  "call-signature": { title: "signature of an earlier call", isQuick: true },
  "text-signature": { title: "signature of an earlier text", isQuick: true },
  "thinking-text": { title: "thinking of an earlier turn" },
  "thinking-off": {
    title: "no thinking",
    chat: { reasoning_effort: "none" },
    responses: { reasoning: { effort: "none" } },
    messages: { thinking: { type: "disabled" } },
  },
  "answer-enum": { title: "answer of a list" },
  "json-object": {
    title: "answer in JSON",
    chat: { response_format: { type: "json_object" } },
    responses: { text: { format: { type: "json_object" } } },
  },
  "min-p": { title: "min_p" },
  "repeat-penalty": { title: "repeat_penalty" },
  "keep-alive": { title: "keep_alive", isOfVendor: true },
  context: { title: "size of the context", isOfVendor: true },
  schema: {
    title: "JSON schema of the answer",
    isQuick: true,
    chat: {
      response_format: { type: "json_schema", json_schema: { name: "steps", schema: strictSchema, strict: true } },
    },
    responses: { text: { format: { type: "json_schema", name: "steps", schema: strictSchema, strict: true } } },
    messages: { output_config: { format: { type: "json_schema", schema: strictSchema } } },
  },
  verbosity: { title: "verbosity", chat: { verbosity: "low" }, responses: { text: { verbosity: "low" } } },
  prediction: { title: "predicted output", chat: { prediction: { type: "content", content: "It rains." } } },
  user: {
    title: "id of the user",
    isQuick: true,
    chat: { safety_identifier: "user-17" },
    responses: { safety_identifier: "user-17" },
    messages: { metadata: { user_id: "user-17" } },
  },
  metadata: {
    title: "metadata",
    chat: { metadata: { run: "17" }, store: true },
    responses: { metadata: { run: "17" } },
  },
  "cache-key": {
    title: "prompt_cache_key",
    isQuick: true,
    chat: { prompt_cache_key: "session-17" },
    responses: { prompt_cache_key: "session-17" },
  },
  "cache-marks": {
    title: "cache marks",
    isQuick: true,
    messages: (body) => ({
      ...(
        messagesParts({ type: "text", text: "Read this.", cache_control: { type: "ephemeral" } }) as (
          body: Json,
        ) => Json
      )(body),
      system: [{ type: "text", text: "A rule.", cache_control: { type: "ephemeral", ttl: "1h" } }],
      tools: [{ ...messagesTool, cache_control: { type: "ephemeral", ttl: "1h" } }],
    }),
  },
  tier: {
    title: "service tier",
    chat: { service_tier: "flex" },
    responses: { service_tier: "flex" },
    messages: { service_tier: "standard_only" },
  },
  unstored: { title: "not stored", chat: { store: false }, responses: { store: false } },
  prefill: {
    title: "beginning of the answer",
    messages: (body) => ({
      ...body,
      messages: [...(body["messages"] as Json[]), { role: "assistant", content: "Once" }],
    }),
  },
  history: {
    title: "conversation of 100 turns",
    chat: (body) => ({ ...body, messages: [...longHistory(), ...(body["messages"] as Json[]).slice(1)] }),
    responses: (body) => ({ ...body, input: [...longHistory(), ...(body["input"] as Json[])] }),
    messages: (body) => ({ ...body, messages: [...longHistory(), ...(body["messages"] as Json[])] }),
  },
  "hosted-search": {
    title: "the vendor's web search",
    isOfVendor: true,
    responses: { tools: [{ type: "web_search" }] },
    messages: { tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 3 }] },
  },
  beta: {
    title: "header of a beta",
    isQuick: true,
    messages: (body) => body,
    headers: { "anthropic-beta": "interleaved-thinking-2025-05-14" },
  },
};

function numbered(tool: (name: string) => Json): Json[] {
  return Array.from({ length: 64 }, (_, at) => tool(`tool_${64 - at}`));
}

function longHistory(): Json[] {
  return Array.from({ length: 100 }, (_, at) => ({
    role: at % 2 === 0 ? "user" : "assistant",
    content: `Turn ${at}.`,
  }));
}

/** What a fact adds to the base body; undefined: the API cannot have it. */
export function editOf(api: Api, id: string): Edit | undefined {
  return api === "gemini" ? geminiEdits[id] : api === "ollama" ? ollamaEdits[id] : requestFacts[id]?.[api];
}

/** The requests of a client API, streamed and whole in turn. */
export function requestFactsOf(api: Api, model: string): Fact[] {
  const facts: Fact[] = [
    {
      id: "base",
      title: "plain request",
      side: "request",
      isQuick: true,
      stream: false,
      body: baseBody(api, model, "base", false),
    },
  ];
  for (const [at, [id, fact]] of Object.entries(requestFacts).entries()) {
    const edit = editOf(api, id);
    if (!edit) continue;
    const stream = at % 2 === 0;
    const base = baseBody(api, model, id, stream);
    const body = typeof edit === "function" ? edit(base) : { ...base, ...edit };
    const { title, isQuick, isOfVendor, headers } = fact;
    facts.push({
      id,
      title,
      side: "request",
      stream,
      body,
      ...(isQuick && { isQuick }),
      ...(isOfVendor && { isOfVendor }),
      ...(headers && { headers }),
    });
  }
  for (const [name, { body, headers }] of Object.entries(memberFacts[api])) {
    const id = `member-${name.toLowerCase().replaceAll("_", "-")}`;
    const stream = body["stream"] === true;
    facts.push({
      id,
      title: name,
      side: "request",
      stream,
      isOfVendor: true,
      body: { ...baseBody(api, model, id, stream), ...body },
      ...(headers && { headers }),
    });
  }
  return facts;
}
