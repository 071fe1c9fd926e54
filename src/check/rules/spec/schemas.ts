/**
 * What the specification says of answers, as JSON Schemas of our own words: required members, types, constants. Source: OpenAI's
 * OpenAPI document, `CreateChatCompletionStreamResponse`, `CreateChatCompletionResponse`, `CreateCompletionResponse`,
 * `CreateEmbeddingResponse`, `ListModelsResponse`, `Model`, `Error`. Members that the specification does not name are allowed, as it allows them.
 */
type Schema = Readonly<Record<string, unknown>>;

const string: Schema = { type: "string" };
const nullableString: Schema = { type: ["string", "null"] };
const integer: Schema = { type: "integer" };
const count: Schema = { type: "integer", minimum: 0 };

function object(required: readonly string[], properties: Readonly<Record<string, Schema>>): Schema {
  return { type: "object", required, properties };
}

function list(items: Schema): Schema {
  return { type: "array", items };
}

function nullable(schema: Schema): Schema {
  return { anyOf: [schema, { type: "null" }] };
}

const usage = object(["prompt_tokens", "total_tokens"], {
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: object([], { cached_tokens: count, audio_tokens: count }),
  completion_tokens_details: object([], {
    reasoning_tokens: count,
    audio_tokens: count,
    accepted_prediction_tokens: count,
    rejected_prediction_tokens: count,
  }),
});

const alternative = object(["token", "logprob", "bytes"], {
  token: string,
  logprob: { type: "number" },
  bytes: { type: ["array", "null"], items: { type: "integer", minimum: 0, maximum: 255 } },
});

const token: Schema = {
  allOf: [alternative, object(["top_logprobs"], { top_logprobs: list(alternative) })],
};

const logprobs = nullable(
  object(["content", "refusal"], {
    content: { type: ["array", "null"], items: token },
    refusal: { type: ["array", "null"], items: token },
  }),
);

const finishReason: Schema = { enum: ["stop", "length", "tool_calls", "content_filter", "function_call", null] };
const tier: Schema = { enum: ["auto", "default", "flex", "scale", "priority", null] };

const deltaCall = object(["index"], {
  index: count,
  id: string,
  type: { enum: ["function", "custom"] },
  function: object([], { name: string, arguments: string }),
});

const chunkChoice: Schema = {
  ...object(["index", "delta"], {
    index: count,
    delta: object([], {
      role: { enum: ["developer", "system", "user", "assistant", "tool"] },
      content: nullableString,
      refusal: nullableString,
      tool_calls: list(deltaCall),
      function_call: object([], { name: string, arguments: string }),
    }),
    logprobs,
    finish_reason: finishReason,
  }),
  // The specification requires finish_reason; OpenAI's own last chunk of an audio answer is without it.
  anyOf: [{ required: ["finish_reason"] }, { properties: { delta: { type: "object", required: ["audio"] } } }],
};

export const chatChunk: Schema = object(["id", "object", "created", "model", "choices"], {
  id: string,
  object: { const: "chat.completion.chunk" },
  created: integer,
  model: string,
  service_tier: tier,
  system_fingerprint: nullableString,
  choices: list(chunkChoice),
  usage: nullable(usage),
});

const call: Schema = {
  anyOf: [
    object(["id", "type", "function"], {
      id: string,
      type: { const: "function" },
      function: object(["name", "arguments"], { name: string, arguments: string }),
    }),
    object(["id", "type", "custom"], {
      id: string,
      type: { const: "custom" },
      custom: object(["name", "input"], { name: string, input: string }),
    }),
  ],
};

export const chatCompletion: Schema = object(["id", "object", "created", "model", "choices"], {
  id: string,
  object: { const: "chat.completion" },
  created: integer,
  model: string,
  service_tier: tier,
  system_fingerprint: nullableString,
  choices: list(
    object(["index", "message", "finish_reason"], {
      index: count,
      message: object(["role", "content"], {
        role: { const: "assistant" },
        content: nullableString,
        refusal: nullableString,
        tool_calls: list(call),
        function_call: object(["name", "arguments"], { name: string, arguments: string }),
        annotations: list({ type: "object" }),
      }),
      logprobs,
      finish_reason: { enum: ["stop", "length", "tool_calls", "content_filter", "function_call"] },
    }),
  ),
  usage,
});

const textLogprobs = nullable(
  object([], {
    tokens: list(string),
    token_logprobs: list({ type: ["number", "null"] }),
    top_logprobs: {
      type: ["array", "null"],
      items: { type: ["object", "null"], additionalProperties: { type: "number" } },
    },
    text_offset: list(integer),
  }),
);

/** Chunks and whole answers of the legacy endpoint have one form; a chunk's finish_reason may be null. */
export const completion: Schema = object(["id", "object", "created", "model", "choices"], {
  id: string,
  object: { const: "text_completion" },
  created: integer,
  model: string,
  system_fingerprint: nullableString,
  choices: list(
    object(["index", "text", "finish_reason"], {
      index: count,
      text: string,
      logprobs: textLogprobs,
      finish_reason: { enum: ["stop", "length", "content_filter", null] },
    }),
  ),
  usage: nullable(usage),
});

export const model: Schema = object(["id", "object", "created", "owned_by"], {
  id: string,
  object: { const: "model" },
  created: integer,
  owned_by: string,
});

export const modelList: Schema = object(["object", "data"], { object: { const: "list" }, data: list(model) });

/** `encoding_format: "base64"` makes a text of the numbers. */
export const embeddings: Schema = object(["object", "data", "model", "usage"], {
  object: { const: "list" },
  data: list(
    object(["object", "index", "embedding"], {
      object: { const: "embedding" },
      index: count,
      embedding: { type: ["array", "string"], items: { type: "number" } },
    }),
  ),
  model: string,
  usage: object(["prompt_tokens", "total_tokens"], { prompt_tokens: count, total_tokens: count }),
});

export const failure: Schema = object(["error"], {
  error: object(["message", "type", "param", "code"], {
    message: string,
    type: string,
    param: nullableString,
    code: nullableString,
  }),
});
