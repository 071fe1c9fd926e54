import * as z from "zod";
import { membersOf, variantsOf } from "../members.ts";

/*
 * The objects that OpenAI's Responses API answers with. The keys of each shape are in the order of `wireOrder`, which is the order in
 * which OpenAI writes them.
 *
 * Members are required where the specification requires them; OpenAI sends more of them than that. Three notes say more:
 * - `.meta({ since })`: OpenAI's answers have had the member since that month.
 * - `.meta({ profile })`: only profile `exact` has the member: "exact" always, "exact body" in bodies that are not streamed,
 *   "exact, some" in some cases. "some": both profiles have it in some cases.
 * - `.meta({ passes: true })`: an upstream's own value takes the place of ours, in a profile that has the member. `"in both"`: in both
 *   profiles, as requests ask for it.
 * - `.meta({ float: true })`: the number is printed with a point even if it is whole.
 *
 * Where recordings differ from the specification, they are followed: `response.function_call_arguments.done` has no name, and an
 * `error` event has its members in an object (4 of 4). Source: OpenAI's OpenAPI document, `Response`, `OutputItem`, `ResponseUsage`,
 * `ResponseStreamEvent`; 1,100 recordings of 2025 and 2026; https://www.openresponses.org/specification.
 */

const first = ["id", "object", "created_at", "type", "status"];

/**
 * Sorts the members of an object into OpenAI's order: `id`, `object`, `created_at`, `type` and `status` first, then the alphabet.
 * The metadata of a response is last. Source: every object of 1,100 recordings of 2025 and 2026, except three of background responses.
 */
export function wireOrder(names: readonly string[], isResponse = false): string[] {
  const last = isResponse && names.includes("metadata") ? ["metadata"] : [];
  const rest = names.filter((name) => !first.includes(name) && !last.includes(name));
  return [...first.filter((name) => names.includes(name)), ...rest.toSorted(), ...last];
}

/** Members that contain JSON of the client's own, in the client's order. */
export const clientJsonMembers = [
  "parameters",
  "schema",
  "input_schema",
  "output_schema",
  "metadata",
  "variables",
] as const;

/** Members of `usage.attribution` whose names are ids, in the order of the items (ChatGPT's backend; recordings of 2026-09-27). */
export const attributionMembers = ["items"] as const;

/** Members of a moderation's result that list kinds of harm, in the order of `harms`. */
export const harmMembers = ["categories", "category_applied_input_types", "category_scores"] as const;

/** The order in which a moderation lists kinds of harm. Source: a recording of 2026-07. */
export const harms = [
  "harassment",
  "harassment/threatening",
  "sexual",
  "hate",
  "hate/threatening",
  "illicit",
  "illicit/violent",
  "self-harm/intent",
  "self-harm/instructions",
  "self-harm",
  "sexual/minors",
  "violence",
  "violence/graphic",
];

export const count = z.int().min(0);
const float = { float: true };
const passes = { passes: true };
const optionalNull = {
  string: z.string().nullable().optional(),
  boolean: z.boolean().nullable().optional(),
  number: z.number().nullable().optional(),
  integer: z.int().nullable().optional(),
};

export const itemStatus = z.enum(["in_progress", "completed", "incomplete"]);
export type ItemStatus = z.infer<typeof itemStatus>;

const bytes = z.array(z.int().min(0).max(255));
export const responseTopLogprob = z.object({ bytes, logprob: z.number().meta(float), token: z.string() });
export const responseLogprob = responseTopLogprob.extend({ top_logprobs: z.array(responseTopLogprob) });

/** An object whose type is one of the union's, or matches `others`: a type whose members are not described. */
function withOtherTypes<Union extends z.ZodDiscriminatedUnion>(union: Union, others: RegExp) {
  return z.union([union, z.looseObject({ type: z.string().regex(others, { abort: true }) })]);
}

export const urlCitation = z.object({
  type: z.literal("url_citation"),
  end_index: count,
  start_index: count,
  title: z.string(),
  url: z.string(),
});

export const annotation = withOtherTypes(
  z.discriminatedUnion("type", [
    urlCitation,
    z.object({ type: z.literal("file_citation"), file_id: z.string(), filename: z.string(), index: count }),
    z.object({
      type: z.literal("container_file_citation"),
      container_id: z.string(),
      end_index: count,
      file_id: z.string(),
      filename: z.string(),
      start_index: count,
    }),
    z.object({ type: z.literal("file_path"), file_id: z.string(), index: count }),
  ]),
  /^(?!(url_citation|file_citation|container_file_citation|file_path)$)/,
);

export const outputText = z.object({
  type: z.literal("output_text"),
  annotations: z.array(annotation),
  logprobs: z.array(responseLogprob),
  text: z.string(),
});
export const outputRefusal = z.object({ type: z.literal("refusal"), refusal: z.string() });
export const reasoningText = z.object({ type: z.literal("reasoning_text"), text: z.string() });
export const summaryText = z.object({ type: z.literal("summary_text"), text: z.string() });

export const contentPart = z.discriminatedUnion("type", [outputText, outputRefusal, reasoningText]);

export const outputMessage = z.object({
  id: z.string(),
  type: z.literal("message"),
  status: itemStatus,
  content: z.array(contentPart),
  phase: z.enum(["commentary", "final_answer"]).nullable().optional(),
  role: z.literal("assistant"),
});
export const functionCall = z.object({
  id: z.string().optional(),
  type: z.literal("function_call"),
  status: itemStatus.optional(),
  arguments: z.string(),
  async: z.boolean().optional(),
  call_id: z.string(),
  name: z.string(),
  namespace: z.string().optional(),
});
export const customToolCall = z.object({
  id: z.string().optional(),
  type: z.literal("custom_tool_call"),
  // The specification has none; OpenAI's answers do.
  status: z.unknown().optional(),
  async: z.boolean().optional(),
  call_id: z.string(),
  input: z.string(),
  name: z.string(),
  namespace: z.string().optional(),
});
export const outputReasoning = z.object({
  id: z.string(),
  type: z.literal("reasoning"),
  status: itemStatus.optional(),
  content: z.array(contentPart).optional(),
  encrypted_content: optionalNull.string,
  summary: z.array(summaryText),
});

const writtenItem = z.discriminatedUnion("type", [outputMessage, functionCall, customToolCall, outputReasoning]);

/** The items that a model writes, by their type. */
export const writtenItems: ReadonlyMap<unknown, z.ZodObject> = variantsOf(writtenItem);

/** A search for tools. With `execution` "client", the client runs it. */
export const toolSearchCall = z.object({
  id: z.string(),
  type: z.literal("tool_search_call"),
  status: itemStatus,
  arguments: z.looseObject({}),
  call_id: z.string(),
  execution: z.literal("client"),
});

/** Items of tools that OpenAI runs. Source: the specification's `InputItem` and `OutputItem`. */
export const hostedItemTypes = [
  "file_search_call",
  "computer_call",
  "computer_call_output",
  "web_search_call",
  "tool_search_call",
  "tool_search_output",
  "image_generation_call",
  "code_interpreter_call",
  "local_shell_call",
  "local_shell_call_output",
  "shell_call",
  "shell_call_output",
  "apply_patch_call",
  "apply_patch_call_output",
  "mcp_list_tools",
  "mcp_approval_request",
  "mcp_approval_response",
  "mcp_call",
  "compaction_trigger",
  "program",
  "program_output",
] as const;

/** Further items of an answer, in an alternation. A type of another vendor has the vendor's name before a colon (Open Responses). */
const otherItems = [
  ...hostedItemTypes.filter((type) => type !== "compaction_trigger"),
  "additional_tools",
  "function_call_output",
  "custom_tool_call_output",
].join("|");

export const item = withOtherTypes(writtenItem, new RegExp(`^(compaction|${otherItems})$|:`));

export const responseUsage = z.object({
  // ChatGPT's backend says which item cost what.
  attribution: z.unknown().optional(),
  input_tokens: count,
  input_tokens_details: z.object({
    cache_write_tokens: count.optional().meta({ since: "2026-07" }),
    cache_write_tokens_details: z.object({ ttl_12h_tokens: count, ttl_30m_tokens: count }).optional(),
    cached_tokens: count,
  }),
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

export const responseReasoning = z.object({
  context: z.enum(["auto", "current_turn", "all_turns"]).nullable().optional(),
  effort: z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]).nullable().optional(),
  mode: z.string().optional(),
  summary: z.enum(["auto", "concise", "detailed"]).nullable().optional(),
});

/** The error of a response that failed. */
export const responseError = z.object({
  type: optionalNull.string,
  code: z.string(),
  message: z.string(),
  misalignment: z
    .object({
      detailed_explanation: z.string().optional(),
      error_type: z.string().optional(),
      review_target: optionalNull.string,
      steer: z.object({ message: z.string() }).optional(),
    })
    .optional(),
  param: optionalNull.string,
});

export const incompleteDetails = z.object({
  reason: z.enum(["max_output_tokens", "max_messages", "content_filter", "steered"]).optional(),
});

/** Reasoning of the input that the server has left out. The order of the members is predicted: no recording has any. */
const inputTransformation = z.object({
  id: z.string(),
  type: z.literal("reasoning"),
  action: z.literal("removed"),
  reason: z.string(),
});

export const accessPrograms = z.object({ cyber: z.enum(["standard", "daybreak_blue", "daybreak_red"]) });

/** Source: openai-node 7.58, `ResponseCreateParams.BackgroundOptions`. */
export const backgroundOptions = z.object({
  completion_window: z.enum(["soonest", "2h", "8h"]).optional(),
  continuation_id: z.string().optional(),
});

export const cacheModes = ["implicit", "explicit"] as const;
/** How long a prompt stays in the cache at least. */
export const cacheTtls = ["30m", "12h"] as const;

/** Returns a time in the cache in minutes, or `undefined` for one that OpenAI does not have. */
export function minutesOfTtl(ttl: unknown): number | undefined {
  return ttl === "30m" ? 30 : ttl === "12h" ? 720 : undefined;
}

export const cacheDiagnosticsType = z.enum(["cache_hit", "cache_miss", "comparison_response_not_found", "unavailable"]);
export const cacheMissReason = z.enum([
  "model_changed",
  "service_tier_changed",
  "prompt_cache_key_changed",
  "tools_changed",
  "text_format_changed",
  "reasoning_effort_changed",
  "verbosity_changed",
  "context_compacted",
  "input_changed",
]);

/** Why the prompt cache had less than a client expected; for a request with `prompt_cache_options.comparison_response_id`. */
export const cacheDiagnostics = z.object({
  // OpenAI may add types and reasons.
  type: z.string(),
  cache_missed_tokens: count.optional(),
  comparison_reusable_tokens: count.optional(),
  reason: z.string().optional(),
});
export type CacheDiagnostics = z.infer<typeof cacheDiagnostics> & {
  readonly type: z.infer<typeof cacheDiagnosticsType>;
  readonly reason?: z.infer<typeof cacheMissReason>;
};

/** The tiers that a request may name. */
export const serviceTiers = ["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"] as const;

export const response = z.object({
  id: z.string(),
  object: z.literal("response"),
  created_at: z.number(),
  status: z.enum(["completed", "failed", "in_progress", "cancelled", "queued", "incomplete"]).optional(),
  access_programs: accessPrograms
    .nullable()
    .optional()
    .meta({ since: "2026-09", profile: "exact", ...passes }),
  background: optionalNull.boolean.meta({ since: "2025-05" }),
  // Where the request has them.
  background_options: backgroundOptions
    .nullable()
    .optional()
    .meta({ since: "2026-11", profile: "some", ...passes }),
  billing: z.unknown().optional().meta({ since: "2025-10", profile: "exact body" }),
  completed_at: optionalNull.number.meta({ since: "2025-12" }),
  // Where the response belongs to a conversation.
  conversation: z.object({ id: z.string() }).nullable().optional().meta({ profile: "some" }),
  error: responseError.nullable(),
  frequency_penalty: z
    .unknown()
    .optional()
    .meta({ since: "2026-01", ...float }),
  image: z
    .object({ context_compression: z.enum(["enabled", "disabled"]) })
    .optional()
    .meta({ profile: "exact, some", ...passes }),
  incomplete_details: incompleteDetails.nullable().meta(passes),
  input_transformations: z
    .array(inputTransformation)
    .optional()
    .meta({ profile: "some", ...passes }),
  instructions: z.union([z.string(), z.array(z.looseObject({}))]).nullable(),
  max_output_tokens: optionalNull.integer,
  max_tool_calls: optionalNull.integer.meta({ since: "2025-06" }),
  model: z.string(),
  moderation: z.looseObject({}).nullable().optional().meta({ since: "2026-04", profile: "exact", passes: "in both" }),
  output: z.array(item),
  parallel_tool_calls: z.boolean(),
  presence_penalty: z
    .unknown()
    .optional()
    .meta({ since: "2026-01", ...float }),
  previous_response_id: optionalNull.string,
  prompt: z.unknown().optional().meta({ profile: "exact, some" }),
  prompt_cache_diagnostics: cacheDiagnostics.optional().meta({ profile: "some", ...passes }),
  prompt_cache_key: optionalNull.string.meta({ since: "2025-07" }),
  prompt_cache_options: z
    .object({
      comparison_response_id: optionalNull.string,
      mode: z.enum(cacheModes),
      ttl: z.enum(cacheTtls),
    })
    .optional()
    .meta({ profile: "some", ...passes }),
  prompt_cache_retention: z.enum(["in_memory", "in-memory", "24h"]).nullable().optional().meta({ since: "2025-11" }),
  reasoning: responseReasoning.nullable().optional(),
  safety_identifier: optionalNull.string.meta({ since: "2025-07" }),
  service_tier: z.enum(serviceTiers).nullable().optional().meta({ since: "2025-05" }),
  store: optionalNull.boolean,
  temperature: z.number().min(0).max(2).nullable().meta(float),
  text: z
    .object({
      format: z.looseObject({ type: z.string() }).optional(),
      verbosity: z.enum(["low", "medium", "high"]).nullable().optional(),
    })
    .optional(),
  tool_choice: toolChoice,
  tool_usage: z.unknown().optional().meta({ since: "2026-07", profile: "exact" }),
  tools: z.array(z.looseObject({ type: z.string() })),
  top_logprobs: optionalNull.integer.meta({ since: "2025-06" }),
  top_p: z.number().min(0).max(1).nullable().meta(float),
  truncation: z.enum(["auto", "disabled"]).nullable().optional(),
  usage: responseUsage.nullable().optional(),
  user: optionalNull.string,
  metadata: z.record(z.string(), z.string()).nullable(),
});

/** The members of a response that are passed on from an upstream's. */
export const passedMembers = membersOf(response).filter(({ schema }) => schema.meta()?.["passes"] !== undefined);

/** Members whose numbers are floats, wherever they are. */
export const floatMembers: readonly string[] = [response, responseTopLogprob].flatMap((object) =>
  membersOf(object).flatMap(({ name, schema }) => (schema.meta()?.["float"] === true ? [name] : [])),
);

export const compactionItem = z.object({
  id: z.string().optional(),
  type: z.literal("compaction"),
  encrypted_content: z.string(),
});

/** The answer of `POST /v1/responses/compact`. */
export const compaction = z.object({
  id: z.string(),
  object: z.literal("response.compaction"),
  created_at: z.int(),
  output: z.array(
    withOtherTypes(
      z.discriminatedUnion("type", [compactionItem]),
      new RegExp(`^(message|reasoning|function_call|custom_tool_call|${otherItems})$|:`),
    ),
  ),
  usage: responseUsage,
});

/** The answer of `DELETE /v1/responses/{id}`. */
export const responseDeletion = z.object({
  id: z.string(),
  object: z.literal("response"),
  deleted: z.literal(true),
});

/** The answer of `POST /v1/responses/input_tokens`. */
export const inputTokenCount = z.object({ object: z.literal("response.input_tokens"), input_tokens: z.int().min(1) });

/** The answer of `GET /v1/responses/{id}/input_items`. */
export const inputItemList = z.object({
  object: z.literal("list"),
  data: z.array(z.unknown()),
  first_id: z.string().nullable(),
  has_more: z.boolean(),
  last_id: z.string().nullable(),
});

/**
 * The answer to an image of another type, and to a damaged one. Source: the issues openai/codex#4946 and #7459, whose client looks for the
 * beginning of the words.
 */
export const invalidImageError = {
  message:
    "The image data you provided does not represent a valid image. Please check your input and try again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
  param: "input",
  code: "invalid_value",
} as const;
