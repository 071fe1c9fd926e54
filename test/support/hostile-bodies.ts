/** JSON of any shape. */
type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Names that every object of JavaScript inherits, or that the language itself looks for. */
const names = [
  "toString",
  "toJSON",
  "then",
  "constructor",
  "__proto__",
  "prototype",
  "hasOwnProperty",
  "isPrototypeOf",
  "length",
  "valueOf",
  "get",
  "next",
];

/** An object with one own member, `__proto__` included. */
function objectWith(name: string, value: Json): Json {
  return JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(value)}}`) as Json;
}

const values: readonly Json[] = [
  ...names.map((name) => objectWith(name, 1)),
  JSON.parse('{"toString":1,"valueOf":1,"toJSON":null,"__proto__":null}') as Json,
  { length: -1 },
  { length: 4_294_967_295 },
  [objectWith("toString", 1)],
  [[]],
  [null],
  "__proto__",
  "constructor",
  "toString",
  "",
  null,
  true,
  -1,
  1e308,
];

/** A body, as JSON, that is valid but for one place. */
export interface HostileBody {
  /** What is wrong with it: `messages.0.content: {"toString":1}`. */
  readonly name: string;
  readonly text: string;
}

/** Each place of a valid body, replaced by each hostile value; and each object of it with each hostile member. */
export function* hostileBodies(body: Json): Generator<HostileBody> {
  const whole = JSON.stringify(body);
  for (const path of placesOf(body)) {
    const text = JSON.stringify(valueAt(body, path));
    const [before, after] = around(whole, body, path);
    for (const value of values) {
      const hostile = JSON.stringify(value);
      yield { name: `${path.join(".")}: ${hostile}`, text: before + hostile + after };
    }
    if (!text.startsWith("{")) continue;
    for (const name of names) {
      const member = `${JSON.stringify(name)}:1`;
      const inside = text === "{}" ? `{${member}}` : `{${member},${text.slice(1)}`;
      yield { name: `${path.join(".")} with ${member}`, text: before + inside + after };
    }
  }
}

type Path = readonly (string | number)[];

function* placesOf(value: Json, path: Path = []): Generator<Path> {
  yield path;
  if (Array.isArray(value)) for (const [at, item] of value.entries()) yield* placesOf(item as Json, [...path, at]);
  else if (typeof value === "object" && value !== null)
    for (const [name, member] of Object.entries(value)) yield* placesOf(member as Json, [...path, name]);
}

function valueAt(value: Json, path: Path): Json {
  let found = value as never;
  for (const key of path) found = found[key];
  return found;
}

/** The text of a body before and after the value at a path: `__proto__` cannot be set as other members can. */
function around(whole: string, body: Json, path: Path): readonly [string, string] {
  if (path.length === 0) return ["", ""];
  const mark = "\u0000";
  const copy = structuredClone(body) as never;
  const last = path.at(-1) as never;
  (valueAt(copy, path.slice(0, -1)) as never)[last] = mark as never;
  const marked = JSON.stringify(copy);
  const at = marked.indexOf(JSON.stringify(mark));
  if (at === -1) throw new Error(`There is no ${path.join(".")} in ${whole}`);
  return [marked.slice(0, at), marked.slice(at + JSON.stringify(mark).length)];
}

const schema = {
  type: "object",
  properties: { city: { type: "string", enum: ["Paris"] }, unit: { anyOf: [{ type: "integer" }, { type: "null" }] } },
  required: ["city"],
  additionalProperties: false,
};
const functionTool = { type: "function", function: { name: "look", description: "Looks.", parameters: schema } };
const format = { type: "json_schema", json_schema: { name: "place", schema } };
const image = "data:image/png;base64,iVBORw0KGgo=";
const common = { max_tokens: 3, temperature: 0, stop: ["x"], seed: 1, metadata: { a: "b" }, logit_bias: { "5": 1 } };

/** A valid body for every path with a form, as the server reads it. */
export function validForms(model: string): readonly { readonly path: string; readonly body: Json }[] {
  const file = { name: "a.flac", data: "ZkxhQwAAAAAAAAAA" };
  const common = { file, model, prompt: "Hm.", response_format: "json", temperature: "0.5" };
  const lists = { languages: ["en"], keywords: ["Hm"], include: ["logprobs"] };
  return [
    { path: "/v1/audio/transcriptions", body: { ...common, language: "en", ...lists, stream: "true" } },
    { path: "/v1/audio/translations", body: common },
  ];
}

/** A valid body for each path of each API, with as many of its members as go together. `model` is the caller's. */
export function validBodies(model: string): readonly { readonly path: string; readonly body: Json }[] {
  return [
    {
      path: "/v1/chat/completions",
      body: {
        model,
        ...common,
        n: 1,
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: [{ type: "text", text: "Hi" }], name: "ann" },
          {
            role: "assistant",
            content: null,
            tool_calls: [{ id: "call_1", type: "function", function: { name: "look", arguments: '{"city":"Paris"}' } }],
          },
          { role: "tool", tool_call_id: "call_1", content: "seen" },
          { role: "assistant", content: "Hm", ...states, tool_calls: [{ ...statefulCall, id: "call_2" }] },
          {
            role: "tool",
            tool_call_id: "call_2",
            content: [{ type: "text", text: "x", cache_control: { type: "ephemeral" } }],
          },
          { role: "user", content: "And?" },
        ],
        tools: [functionTool, { type: "custom", custom: { name: "run", format: { type: "text" } } }],
        tool_choice: { type: "function", function: { name: "look" } },
        parallel_tool_calls: true,
        reasoning_effort: "low",
        chat_template_kwargs: { a: { b: 1 } },
        stream_options: { include_usage: true },
        stream: true,
        user: "u",
      },
    },
    {
      path: "/v1/chat/completions",
      body: {
        model,
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "Look" },
              { type: "image_url", image_url: { url: image, detail: "low" } },
            ],
          },
        ],
        response_format: format,
        prediction: { type: "content", content: [{ type: "text", text: "a" }] },
        logprobs: true,
        top_logprobs: 1,
        max_completion_tokens: 3,
      },
    },
    {
      path: "/v1/completions",
      body: { model, ...common, prompt: ["Hi", "Ho"], echo: false, logprobs: 1, suffix: null },
    },
    {
      path: "/v1/responses",
      body: {
        model,
        instructions: "Be brief.",
        input: [
          { role: "user", content: [{ type: "input_text", text: "Hi" }] },
          { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }] },
          { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" },
          { type: "function_call_output", call_id: "call_1", output: [{ type: "input_text", text: "seen" }] },
          { type: "message", role: "assistant", content: [{ type: "output_text", text: "Yes.", annotations: [] }] },
          { role: "user", content: "And?" },
        ],
        tools: [
          { type: "function", name: "look", parameters: schema, strict: false },
          { type: "custom", name: "run", format: { type: "grammar", syntax: "regex", definition: "a+" } },
          { type: "namespace", name: "space", description: "A space.", tools: [{ type: "function", name: "f" }] },
        ],
        tool_choice: { type: "function", name: "look" },
        text: { format: { type: "text" }, verbosity: "low" },
        reasoning: { effort: "low", summary: "auto" },
        include: ["message.output_text.logprobs"],
        metadata: { a: "b" },
        max_output_tokens: 20,
        store: false,
        stream: true,
      },
    },
    {
      path: "/v1/responses",
      body: { model, input: "Hi", text: { format: { type: "json_schema", name: "place", schema } }, store: false },
    },
    {
      path: "/v1/messages",
      body: {
        model,
        max_tokens: 3,
        system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
        messages: [
          { role: "user", content: [{ type: "text", text: "Hi" }] },
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: "Hm.", signature: "sig" },
              { type: "tool_use", id: "toolu_1", name: "look", input: { city: "Paris" } },
            ],
          },
          {
            role: "user",
            content: [
              {
                type: "tool_result",
                tool_use_id: "toolu_1",
                content: [{ type: "text", text: "seen" }],
                is_error: false,
              },
              { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } },
            ],
          },
        ],
        tools: [{ name: "look", description: "Looks.", input_schema: schema }],
        tool_choice: { type: "auto", disable_parallel_tool_use: true },
        stop_sequences: ["x"],
        temperature: 0,
        top_k: 1,
        metadata: { user_id: "u" },
        diagnostics: { previous_message_id: "msg_1" },
        stream: true,
      },
    },
    {
      path: "/v1/messages/count_tokens",
      body: {
        model,
        messages: [
          { role: "user", content: [{ type: "text", text: "Hi" }] },
          { role: "system", content: "Be kind.", clear_at: "next_user_message" },
        ],
        system: "Be brief.",
        thinking: {
          type: "adaptive",
          display: "updates",
          block_binding: { prefix_mismatch_behavior: "drop_block" },
        },
      },
    },
    {
      path: "/v1/responses/input_tokens",
      body: { model, input: [{ role: "user", content: "Hi" }], instructions: "Be brief." },
    },
    {
      path: "/v1/responses/compact",
      body: { model, input: [{ role: "user", content: [{ type: "input_text", text: "Hi" }] }], instructions: "x" },
    },
    {
      path: "/v1/embeddings",
      body: { model, input: ["Hi", "Ho"], encoding_format: "base64", dimensions: 4, user: "u" },
    },
    {
      path: "/v1/rerank",
      body: { model, query: "Hi", documents: ["a", { text: "b" }], top_n: 1, return_documents: true },
    },
    {
      path: "/v1/api/chat",
      body: {
        model,
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hi" },
          {
            role: "assistant",
            content: "",
            thinking: "Hm.",
            tool_calls: [{ id: "c", function: { index: 0, name: "f", arguments: { a: 1 } } }],
          },
          { role: "tool", content: "1", tool_name: "f", tool_call_id: "c" },
          { role: "user", content: "Go on" },
        ],
        tools: [functionTool],
        format: { type: "object" },
        options: { temperature: 0.5, top_k: 40, seed: 1, num_predict: 3, stop: ["x"], num_ctx: 2048, typical_p: 1 },
        think: true,
        keep_alive: "5m",
        logprobs: true,
        top_logprobs: 1,
        truncate: true,
        stream: false,
      },
    },
    {
      path: "/v1/api/generate",
      body: {
        model,
        prompt: "Hi",
        system: "Be brief.",
        context: [],
        images: [],
        options: {},
        keep_alive: 60,
        stream: false,
      },
    },
    {
      path: "/v1/api/embed",
      body: { model, input: ["Hi"], dimensions: 2, options: {}, keep_alive: 0, truncate: true },
    },
    { path: "/v1/api/embeddings", body: { model, prompt: "Hi", keep_alive: "1m" } },
    { path: "/v1/api/show", body: { model, verbose: false } },
    {
      path: "/v1/v1beta/models:generateContent",
      body: {
        model,
        systemInstruction: { parts: [{ text: "Be brief." }] },
        contents: [
          { role: "user", parts: [{ text: "Hi" }, { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } }] },
          {
            role: "model",
            parts: [
              { text: "Hm.", thought: true },
              { text: "So", thoughtSignature: "c2ln" },
              { functionCall: { id: "1", name: "look", args: { city: "Paris" } }, thoughtSignature: "c2ln" },
            ],
          },
          {
            role: "user",
            parts: [
              { functionResponse: { id: "1", name: "look", response: { output: "seen" } } },
              { executableCode: { language: "PYTHON", code: "1" } },
            ],
          },
        ],
        tools: [{ functionDeclarations: [{ name: "look", parametersJsonSchema: schema }], googleSearch: {} }],
        tool_config: { function_calling_config: { mode: "ANY", allowed_function_names: ["look"] } },
        generationConfig: {
          maxOutputTokens: 3,
          temperature: 0,
          stopSequences: ["x"],
          thinkingConfig: { thinkingBudget: 1 },
        },
        safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" }],
        stream: true,
      },
    },
    {
      path: "/v1/v1beta/models:generateContent",
      body: {
        model,
        contents: [{ parts: [{ fileData: { mimeType: "image/png", fileUri: "data:image/png;base64,iVBORw0KGgo=" } }] }],
        generationConfig: {
          responseMimeType: "application/json",
          responseSchema: {
            type: "OBJECT",
            properties: { a: { type: "STRING", nullable: true } },
            propertyOrdering: ["a"],
          },
        },
      },
    },
    {
      path: "/v1/v1beta/models:countTokens",
      body: { model, generateContentRequest: { contents: [{ parts: [{ text: "Hi" }] }] } },
    },
    {
      path: "/v1/v1beta/models:embedContent",
      body: { model, content: { parts: [{ text: "Hi" }] }, outputDimensionality: 2, taskType: "RETRIEVAL_QUERY" },
    },
    {
      path: "/v1/v1beta/models:batchEmbedContents",
      body: { model, requests: [{ model, content: { parts: [{ text: "Hi" }] }, outputDimensionality: 2 }] },
    },
    { path: "/tokenize", body: { model, content: "Hi", with_pieces: true, add_special: false } },
    { path: "/tokenize", body: { model, messages: [{ role: "user", content: "Hi" }], return_token_strs: true } },
    { path: "/detokenize", body: { model, tokens: [1, 2] } },
    { path: "/apply-template", body: { model, messages: [{ role: "user", content: "Hi" }], tools: [functionTool] } },
  ];
}

const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, prompt_tokens_details: { cached_tokens: 0 } };
const call = { id: "call_1", type: "function", function: { name: "look", arguments: "{}" } };
/** What servers demand back with the next request. */
const states = {
  reasoning_details: [{ type: "reasoning.text", text: "Hm.", signature: "sig", format: "f", id: "r_1", index: 0 }],
  thinking_blocks: [{ type: "thinking", thinking: "Hm.", signature: "sig" }],
};
const statefulCall = { ...call, extra_content: { google: { thought_signature: "sig" } } };
const chunk = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m" };
const token = { token: "Hi", logprob: -1, bytes: [72, 105], top_logprobs: [{ token: "Ho", logprob: -2, bytes: null }] };
const item: Json = {
  type: "message",
  id: "msg_1",
  role: "assistant",
  status: "completed",
  content: [
    { type: "output_text", text: "Hi", annotations: [{ type: "url_citation", url: "http://a" }], logprobs: [token] },
  ],
};
const response: Json = {
  id: "resp_1",
  object: "response",
  created_at: 1,
  model: "m",
  status: "completed",
  output: [
    { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: "x" },
    item,
    { type: "function_call", id: "fc_1", call_id: "call_1", name: "look", arguments: "{}" },
  ],
  usage: { input_tokens: 1, output_tokens: 1, output_tokens_details: { reasoning_tokens: 0 } },
};
const place = { item_id: "msg_1", output_index: 0, content_index: 0 };
const message: Json = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "m",
  content: [
    { type: "thinking", thinking: "Hm.", signature: "sig" },
    { type: "text", text: "Hi", citations: [{ type: "char_location", cited_text: "Hi", document_title: "t" }] },
    { type: "tool_use", id: "toolu_1", name: "look", input: { a: 1 } },
  ],
  stop_reason: "tool_use",
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1, cache_read_input_tokens: 0 },
};

/** Valid answers of another server, by the API that it speaks: whole ones, and the events of streams. */
export const validAnswers: Readonly<
  Record<
    "chat" | "completions" | "responses" | "messages" | "gemini",
    { readonly whole: Json; readonly stream: readonly Json[] }
  >
> = {
  chat: {
    whole: {
      ...chunk,
      object: "chat.completion",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "Hi",
            reasoning_content: "Hm.",
            ...states,
            tool_calls: [statefulCall],
          },
          logprobs: { content: [token] },
          finish_reason: "tool_calls",
        },
      ],
      usage,
    },
    stream: [
      {
        ...chunk,
        choices: [{ index: 0, delta: { role: "assistant", content: "Hi" }, logprobs: { content: [token] } }],
      },
      { ...chunk, choices: [{ index: 0, delta: { reasoning: "Hm.", ...states } }] },
      { ...chunk, choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...statefulCall }] } }] },
      { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: "tool_calls", stop_reason: "x" }] },
      { ...chunk, choices: [], usage },
      { error: { message: "No.", type: "server_error", param: null, code: "x" } },
    ],
  },
  gemini: {
    whole: {
      candidates: [
        {
          content: {
            parts: [
              { text: "Hm.", thought: true, thoughtSignature: "sig" },
              { text: "Hi", thoughtSignature: "sig" },
              { executableCode: { language: "PYTHON", code: "1", id: "c" } },
              { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1", id: "c" } },
              { functionCall: { name: "look", args: { a: 1 }, id: "call_1" }, thoughtSignature: "sig" },
            ],
            role: "model",
          },
          finishReason: "STOP",
          index: 0,
          groundingMetadata: { groundingChunks: [{ web: { uri: "http://a", title: "A" } }] },
          logprobsResult: {
            chosenCandidates: [{ token: "Hi", logProbability: -1 }],
            topCandidates: [{ candidates: [{ token: "Ho", logProbability: -2 }] }],
          },
        },
      ],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2, thoughtsTokenCount: 1 },
      modelVersion: "m",
      responseId: "r",
    },
    stream: [
      { candidates: [{ content: { parts: [{ text: "Hm.", thought: true }], role: "model" }, index: 0 }] },
      { candidates: [{ content: { parts: [{ text: "Hi" }] } }], usageMetadata: { promptTokenCount: 1 } },
      { promptFeedback: { blockReason: "SAFETY" } },
      { candidates: [{ content: { parts: [{ functionCall: { name: "f" } }] }, finishReason: "STOP" }] },
      { error: { code: 503, message: "No.", status: "UNAVAILABLE", details: [{ "@type": "x" }] } },
    ],
  },
  completions: {
    whole: {
      ...chunk,
      object: "text_completion",
      choices: [
        {
          index: 0,
          text: "Hi",
          logprobs: { tokens: ["Hi"], token_logprobs: [-1], top_logprobs: [{ Hi: -1 }], text_offset: [0] },
          finish_reason: "stop",
        },
      ],
      usage,
    },
    stream: [
      { ...chunk, object: "text_completion", choices: [{ index: 0, text: "Hi", logprobs: null, finish_reason: null }] },
      { ...chunk, object: "text_completion", choices: [{ index: 0, text: "", finish_reason: "stop" }], usage },
    ],
  },
  responses: {
    whole: response,
    stream: [
      {
        type: "response.created",
        sequence_number: 0,
        response: { ...(response as object), status: "in_progress", output: [] },
      },
      { type: "response.output_item.added", output_index: 0, item: { ...(item as object), content: [] } },
      { type: "response.content_part.added", ...place, part: { type: "output_text", text: "", annotations: [] } },
      { type: "response.output_text.delta", ...place, delta: "Hi", logprobs: [token] },
      {
        type: "response.output_text.annotation.added",
        ...place,
        annotation_index: 0,
        annotation: { type: "url_citation" },
      },
      { type: "response.output_text.done", ...place, text: "Hi" },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.reasoning_summary_text.delta", item_id: "rs_1", output_index: 1, summary_index: 0, delta: "a" },
      { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 2, delta: "{}" },
      {
        type: "response.incomplete",
        response: { ...(response as object), incomplete_details: { reason: "max_output_tokens" } },
      },
    ],
  },
  messages: {
    whole: message,
    stream: [
      { type: "message_start", message: { ...(message as object), content: [], stop_reason: null } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hi" } },
      {
        type: "content_block_delta",
        index: 0,
        delta: { type: "citations_delta", citation: { type: "page_location" } },
      },
      { type: "content_block_stop", index: 0 },
      {
        type: "content_block_start",
        index: 1,
        content_block: { type: "tool_use", id: "toolu_1", name: "look", input: {} },
      },
      { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: "{}" } },
      { type: "content_block_stop", index: 1 },
      {
        type: "content_block_start",
        index: 2,
        content_block: { type: "server_tool_use", id: "s", name: "web", input: {} },
      },
      { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 1 } },
      { type: "error", error: { type: "overloaded_error", message: "No." } },
    ],
  },
};
