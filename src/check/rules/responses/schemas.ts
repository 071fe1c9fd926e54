/**
 * What the specification says of a response and its events, as JSON Schemas of our own words. Source: OpenAI's OpenAPI document,
 * `Response`, `OutputItem`, `ResponseUsage`, `ResponseStreamEvent`. Where recordings differ from it, they are followed:
 * `response.function_call_arguments.done` has no name, and an `error` event has its members in an object (4 of 4).
 */
type Schema = Readonly<Record<string, unknown>>;

const string: Schema = { type: "string" };
const nullableString: Schema = { type: ["string", "null"] };
const nullableNumber: Schema = { type: ["number", "null"] };
const nullableInteger: Schema = { type: ["integer", "null"] };
const nullableBoolean: Schema = { type: ["boolean", "null"] };
const count: Schema = { type: "integer", minimum: 0 };

function object(required: readonly string[], properties: Readonly<Record<string, Schema>>): Schema {
  return { type: "object", required, properties };
}

function list(items: Schema): Schema {
  return { type: "array", items };
}

/** An object whose further schema depends on its type. `type`: which there are; default: any, and of others nothing is said. */
function byType(schemas: Readonly<Record<string, Schema>>, type = string): Schema {
  return {
    ...object(["type"], { type }),
    allOf: Object.entries(schemas).map(([name, schema]) => ({
      if: { not: { type: "object", required: ["type"], properties: { type: { const: name } } } },
      else: schema,
    })),
  };
}

const itemStatus: Schema = { enum: ["in_progress", "completed", "incomplete"] };

const alternative = object(["token", "logprob", "bytes"], {
  token: string,
  logprob: { type: "number" },
  bytes: list({ type: "integer", minimum: 0, maximum: 255 }),
});
const token: Schema = { allOf: [alternative, object(["top_logprobs"], { top_logprobs: list(alternative) })] };

const annotation = byType({
  url_citation: object(["start_index", "end_index", "url", "title"], {
    start_index: count,
    end_index: count,
    url: string,
    title: string,
  }),
});

const contentPart = byType(
  {
    output_text: object(["text", "annotations", "logprobs"], {
      text: string,
      annotations: list(annotation),
      logprobs: list(token),
    }),
    refusal: object(["refusal"], { refusal: string }),
    reasoning_text: object(["text"], { text: string }),
  },
  { enum: ["output_text", "refusal", "reasoning_text"] },
);

const summaryPart = object(["type", "text"], { type: { const: "summary_text" }, text: string });

/** Of an item. Those of other vendors have their name before a colon (Open Responses). */
const itemType: Schema = {
  type: "string",
  pattern: `^(${[
    "message|reasoning|compaction|program|program_output|additional_tools",
    "(function|computer|custom_tool|local_shell|shell|apply_patch)_call(_output)?",
    "(file_search|web_search|image_generation|code_interpreter|mcp)_call",
    "tool_search_(call|output)|mcp_(list_tools|approval_request|approval_response)",
  ].join("|")})$|:`,
};

const item = byType(
  {
    message: object(["id", "role", "content", "status"], {
      id: string,
      role: { const: "assistant" },
      content: list(contentPart),
      status: itemStatus,
      phase: { enum: ["commentary", "final_answer", null] },
    }),
    function_call: object(["call_id", "name", "arguments"], {
      id: string,
      call_id: string,
      name: string,
      namespace: string,
      arguments: string,
      status: itemStatus,
    }),
    custom_tool_call: object(["call_id", "name", "input"], {
      id: string,
      call_id: string,
      name: string,
      namespace: string,
      input: string,
    }),
    reasoning: object(["id", "summary"], {
      id: string,
      summary: list(summaryPart),
      content: list(contentPart),
      encrypted_content: nullableString,
      status: itemStatus,
    }),
  },
  itemType,
);

const usage = object(
  ["input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details", "total_tokens"],
  {
    input_tokens: count,
    input_tokens_details: object(["cached_tokens"], { cached_tokens: count, cache_write_tokens: count }),
    output_tokens: count,
    output_tokens_details: object(["reasoning_tokens"], { reasoning_tokens: count }),
    total_tokens: count,
  },
);

const named = object(["name"], { name: string });
const toolChoices = {
  function: named,
  custom: named,
  allowed_tools: object(["mode", "tools"], { mode: { enum: ["auto", "required"] }, tools: list({ type: "object" }) }),
  mcp: object(["server_label"], { server_label: string }),
};

const reasoning = object([], {
  context: nullableString,
  effort: { enum: ["none", "minimal", "low", "medium", "high", "xhigh", "max", null] },
  mode: string,
  summary: { enum: ["auto", "concise", "detailed", null] },
});

export const response: Schema = object(
  [
    "id",
    "object",
    "created_at",
    "error",
    "incomplete_details",
    "instructions",
    "model",
    "tools",
    "output",
    "parallel_tool_calls",
    "metadata",
    "tool_choice",
    "temperature",
    "top_p",
  ],
  {
    id: string,
    object: { const: "response" },
    created_at: { type: "number" },
    completed_at: nullableNumber,
    status: { enum: ["completed", "failed", "in_progress", "cancelled", "queued", "incomplete"] },
    error: { anyOf: [object(["code", "message"], { code: string, message: string }), { type: "null" }] },
    incomplete_details: {
      anyOf: [object([], { reason: { enum: ["max_output_tokens", "content_filter"] } }), { type: "null" }],
    },
    instructions: { type: ["string", "array", "null"], items: { type: "object" } },
    model: string,
    tools: list(object(["type"], { type: string })),
    output: list(item),
    parallel_tool_calls: { type: "boolean" },
    metadata: { type: ["object", "null"], additionalProperties: string },
    tool_choice: { anyOf: [{ enum: ["none", "auto", "required"] }, byType(toolChoices)] },
    temperature: { type: ["number", "null"], minimum: 0, maximum: 2 },
    top_p: { type: ["number", "null"], minimum: 0, maximum: 1 },
    top_logprobs: nullableInteger,
    max_output_tokens: nullableInteger,
    max_tool_calls: nullableInteger,
    background: nullableBoolean,
    store: nullableBoolean,
    moderation: { type: ["object", "null"] },
    previous_response_id: nullableString,
    prompt_cache_key: nullableString,
    prompt_cache_retention: { enum: ["in_memory", "in-memory", "24h", null] },
    safety_identifier: nullableString,
    user: nullableString,
    reasoning: { anyOf: [reasoning, { type: "null" }] },
    service_tier: { enum: ["auto", "default", "flex", "scale", "priority", "fast", null] },
    text: object([], {
      format: object(["type"], { type: string }),
      verbosity: { enum: ["low", "medium", "high", null] },
    }),
    truncation: { enum: ["auto", "disabled", null] },
    usage: { anyOf: [usage, { type: "null" }] },
  },
);

const compacted = byType(
  { compaction: object(["encrypted_content"], { id: string, encrypted_content: string }) },
  itemType,
);

export const compaction: Schema = object(["id", "object", "output", "created_at", "usage"], {
  id: string,
  object: { const: "response.compaction" },
  output: list(compacted),
  created_at: { type: "integer" },
  usage,
});

const inItem = { item_id: string, output_index: count };
const inContent = { ...inItem, content_index: count };
const inSummary = { ...inItem, summary_index: count };

function all(properties: Readonly<Record<string, Schema>>): Schema {
  return object([...Object.keys(properties), "sequence_number"], { ...properties, sequence_number: count });
}

/** By the type of the event; events of other types have none. */
export const events: Readonly<Record<string, Schema>> = {
  ...Object.fromEntries(
    ["created", "queued", "in_progress", "completed", "incomplete", "failed"].map((name) => [
      `response.${name}`,
      all({ response }),
    ]),
  ),
  "response.output_item.added": all({ item, output_index: count }),
  "response.output_item.done": all({ item, output_index: count }),
  "response.content_part.added": all({ ...inContent, part: contentPart }),
  "response.content_part.done": all({ ...inContent, part: contentPart }),
  "response.output_text.delta": all({ ...inContent, delta: string, logprobs: list(token) }),
  "response.output_text.done": all({ ...inContent, text: string, logprobs: list(token) }),
  "response.output_text.annotation.added": all({ ...inContent, annotation, annotation_index: count }),
  "response.refusal.delta": all({ ...inContent, delta: string }),
  "response.refusal.done": all({ ...inContent, refusal: string }),
  "response.reasoning_text.delta": all({ ...inContent, delta: string }),
  "response.reasoning_text.done": all({ ...inContent, text: string }),
  "response.reasoning_summary_part.added": all({ ...inSummary, part: summaryPart }),
  "response.reasoning_summary_part.done": all({ ...inSummary, part: summaryPart }),
  "response.reasoning_summary_text.delta": all({ ...inSummary, delta: string }),
  "response.reasoning_summary_text.done": all({ ...inSummary, text: string }),
  "response.function_call_arguments.delta": all({ ...inItem, delta: string }),
  "response.function_call_arguments.done": all({ ...inItem, arguments: string }),
  "response.custom_tool_call_input.delta": all({ ...inItem, delta: string }),
  "response.custom_tool_call_input.done": all({ ...inItem, input: string }),
};
