import * as z from "zod";

/*
 * The objects that OpenAI's Responses API answers with. The keys of each shape are in the order in which OpenAI writes them: `id`,
 * `object`, `created_at`, `type` and `status` first, then the alphabet, a response's metadata last.
 *
 * Members are required where the specification requires them; OpenAI sends more of them than that. Where recordings differ from the
 * specification, they are followed: `response.function_call_arguments.done` has no name, and an `error` event has its members in an
 * object (4 of 4). Source: OpenAI's OpenAPI document, `Response`, `OutputItem`, `ResponseUsage`, `ResponseStreamEvent`; 1,100 recordings
 * of 2025 and 2026; https://www.openresponses.org/specification.
 */

const count = z.int().min(0);
const optionalNull = {
  string: z.string().nullable().optional(),
  boolean: z.boolean().nullable().optional(),
  number: z.number().nullable().optional(),
  integer: z.int().nullable().optional(),
};

const itemStatus = z.enum(["in_progress", "completed", "incomplete"]);

const tokenAlternative = z.object({ token: z.string(), bytes: z.array(z.int().min(0).max(255)), logprob: z.number() });
const token = tokenAlternative.extend({ top_logprobs: z.array(tokenAlternative) });

/** An object whose type is one of the union's, or matches `others`: a type whose members are not described. */
function withOtherTypes<Union extends z.ZodDiscriminatedUnion>(union: Union, others: RegExp) {
  return z.union([union, z.looseObject({ type: z.string().regex(others, { abort: true }) })]);
}

const annotation = withOtherTypes(
  z.discriminatedUnion("type", [
    z.object({
      type: z.literal("url_citation"),
      end_index: count,
      start_index: count,
      title: z.string(),
      url: z.string(),
    }),
  ]),
  /^(?!url_citation$)/,
);

const contentPart = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("output_text"),
    annotations: z.array(annotation),
    logprobs: z.array(token),
    text: z.string(),
  }),
  z.object({ type: z.literal("refusal"), refusal: z.string() }),
  z.object({ type: z.literal("reasoning_text"), text: z.string() }),
]);

const summaryPart = z.object({ type: z.literal("summary_text"), text: z.string() });

const describedItem = z.discriminatedUnion("type", [
  z.object({
    id: z.string(),
    type: z.literal("message"),
    status: itemStatus,
    content: z.array(contentPart),
    phase: z.enum(["commentary", "final_answer"]).nullable().optional(),
    role: z.literal("assistant"),
  }),
  z.object({
    id: z.string().optional(),
    type: z.literal("function_call"),
    status: itemStatus.optional(),
    arguments: z.string(),
    call_id: z.string(),
    name: z.string(),
    namespace: z.string().optional(),
  }),
  z.object({
    id: z.string().optional(),
    type: z.literal("custom_tool_call"),
    call_id: z.string(),
    input: z.string(),
    name: z.string(),
    namespace: z.string().optional(),
  }),
  z.object({
    id: z.string(),
    type: z.literal("reasoning"),
    status: itemStatus.optional(),
    content: z.array(contentPart).optional(),
    encrypted_content: optionalNull.string,
    summary: z.array(summaryPart),
  }),
]);

/** Items of OpenAI's own tools. The types of other vendors have the vendor's name before a colon (Open Responses). */
const otherItems = [
  "program|program_output|additional_tools",
  "(computer|local_shell|shell|apply_patch)_call(_output)?|(function|custom_tool)_call_output",
  "(file_search|web_search|image_generation|code_interpreter|mcp)_call",
  "tool_search_(call|output)|mcp_(list_tools|approval_request|approval_response)",
].join("|");

const item = withOtherTypes(describedItem, new RegExp(`^(compaction|${otherItems})$|:`));

const usage = z.object({
  input_tokens: count,
  input_tokens_details: z.object({ cache_write_tokens: count.optional(), cached_tokens: count }),
  output_tokens: count,
  output_tokens_details: z.object({ reasoning_tokens: count }),
  total_tokens: count,
});

const toolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  withOtherTypes(
    z.discriminatedUnion("type", [
      z.object({ type: z.literal("function"), name: z.string() }),
      z.object({ type: z.literal("custom"), name: z.string() }),
      z.object({
        type: z.literal("allowed_tools"),
        mode: z.enum(["auto", "required"]),
        tools: z.array(z.looseObject({})),
      }),
      z.object({ type: z.literal("mcp"), server_label: z.string() }),
    ]),
    /^(?!(function|custom|allowed_tools|mcp)$)/,
  ),
]);

const reasoning = z.object({
  context: optionalNull.string,
  effort: z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]).nullable().optional(),
  mode: z.string().optional(),
  summary: z.enum(["auto", "concise", "detailed"]).nullable().optional(),
});

export const response = z.object({
  id: z.string(),
  object: z.literal("response"),
  created_at: z.number(),
  status: z.enum(["completed", "failed", "in_progress", "cancelled", "queued", "incomplete"]).optional(),
  background: optionalNull.boolean,
  completed_at: optionalNull.number,
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  incomplete_details: z.object({ reason: z.enum(["max_output_tokens", "content_filter"]).optional() }).nullable(),
  instructions: z.union([z.string(), z.array(z.looseObject({}))]).nullable(),
  max_output_tokens: optionalNull.integer,
  max_tool_calls: optionalNull.integer,
  model: z.string(),
  moderation: z.looseObject({}).nullable().optional(),
  output: z.array(item),
  parallel_tool_calls: z.boolean(),
  previous_response_id: optionalNull.string,
  prompt_cache_key: optionalNull.string,
  prompt_cache_retention: z.enum(["in_memory", "in-memory", "24h"]).nullable().optional(),
  reasoning: reasoning.nullable().optional(),
  safety_identifier: optionalNull.string,
  service_tier: z.enum(["auto", "default", "flex", "scale", "priority", "fast"]).nullable().optional(),
  store: optionalNull.boolean,
  temperature: z.number().min(0).max(2).nullable(),
  text: z
    .object({
      format: z.looseObject({ type: z.string() }).optional(),
      verbosity: z.enum(["low", "medium", "high"]).nullable().optional(),
    })
    .optional(),
  tool_choice: toolChoice,
  tools: z.array(z.looseObject({ type: z.string() })),
  top_logprobs: optionalNull.integer,
  top_p: z.number().min(0).max(1).nullable(),
  truncation: z.enum(["auto", "disabled"]).nullable().optional(),
  usage: usage.nullable().optional(),
  user: optionalNull.string,
  metadata: z.record(z.string(), z.string()).nullable(),
});

/** The answer of `/v1/responses/compact`. */
export const compaction = z.object({
  id: z.string(),
  object: z.literal("response.compaction"),
  created_at: z.int(),
  output: z.array(
    withOtherTypes(
      z.discriminatedUnion("type", [
        z.object({ id: z.string().optional(), type: z.literal("compaction"), encrypted_content: z.string() }),
      ]),
      new RegExp(`^(message|reasoning|function_call|custom_tool_call|${otherItems})$|:`),
    ),
  ),
  usage,
});

const inItem = { item_id: z.string(), output_index: count };
const inContent = { content_index: count, ...inItem };
const inSummary = { ...inItem, summary_index: count };

function event<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.object({ ...shape, sequence_number: count });
}

/** The events of a stream by their type; events of other types are not described. */
export const events: ReadonlyMap<unknown, z.ZodObject> = new Map<unknown, z.ZodObject>([
  ...["created", "queued", "in_progress", "completed", "incomplete", "failed"].map(
    (name) => [`response.${name}`, event({ response })] as const,
  ),
  ["response.output_item.added", event({ item, output_index: count })],
  ["response.output_item.done", event({ item, output_index: count })],
  ["response.content_part.added", event({ ...inContent, part: contentPart })],
  ["response.content_part.done", event({ ...inContent, part: contentPart })],
  ["response.output_text.delta", event({ ...inContent, delta: z.string(), logprobs: z.array(token) })],
  ["response.output_text.done", event({ ...inContent, text: z.string(), logprobs: z.array(token) })],
  ["response.output_text.annotation.added", event({ ...inContent, annotation, annotation_index: count })],
  ["response.refusal.delta", event({ ...inContent, delta: z.string() })],
  ["response.refusal.done", event({ ...inContent, refusal: z.string() })],
  ["response.reasoning_text.delta", event({ ...inContent, delta: z.string() })],
  ["response.reasoning_text.done", event({ ...inContent, text: z.string() })],
  ["response.reasoning_summary_part.added", event({ ...inSummary, part: summaryPart })],
  ["response.reasoning_summary_part.done", event({ ...inSummary, part: summaryPart })],
  ["response.reasoning_summary_text.delta", event({ ...inSummary, delta: z.string() })],
  ["response.reasoning_summary_text.done", event({ ...inSummary, text: z.string() })],
  ["response.function_call_arguments.delta", event({ ...inItem, delta: z.string() })],
  ["response.function_call_arguments.done", event({ ...inItem, arguments: z.string() })],
  ["response.custom_tool_call_input.delta", event({ ...inItem, delta: z.string() })],
  ["response.custom_tool_call_input.done", event({ ...inItem, input: z.string() })],
]);
