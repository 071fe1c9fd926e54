import * as z from "zod";
import type { GenerationFailure, ImageProblem } from "../../core/events.ts";
import { membersOf, variantsOf } from "../members.ts";
import type { EarlierOrder } from "../members.ts";

/*
 * The objects that Anthropic's Messages API answers with. The keys of each shape are in the order in which Anthropic writes them.
 *
 * Two notes say when a member is there:
 * - `.optional()`: today's answers have it in some cases only, which the comment names.
 * - `.meta({ since })`: every answer has had it since that month; older recordings do not.
 * - both: every answer has had it since that month, and the checker accepts answers of before.
 * - `.meta(nullInExact)`: profile `exact` writes `null` where an answer has no value for it, and `lean` leaves the member out.
 *
 * Source: 489 recorded streams and 968 recorded bodies of api.anthropic.com, April 2024 to October 2026; the types of Anthropic's
 * TypeScript SDK 1.12.0; https://platform.claude.com/docs/en/api/messages.
 */

const count = z.int().min(0);

const nullInExact = { exact: "always" };

const cacheCreation = z.object({
  ephemeral_5m_input_tokens: count,
  ephemeral_1h_input_tokens: count,
});

/** How often the tools on Anthropic's servers were used. */
const serverToolUse = z.object({
  web_search_requests: count.optional(),
  web_fetch_requests: count.optional(),
});

/** One sampling step of a message that took several: compaction, the advisor tool. */
const iteration = z.object({
  input_tokens: count,
  output_tokens: count,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
  cache_creation: cacheCreation,
  type: z.string(),
});

/** The usage of a message. `input_tokens` does not include the two counts of cached tokens. */
export const messageUsage = z.object({
  input_tokens: count,
  cache_creation_input_tokens: count.nullable().meta({ since: "2024-08" }),
  cache_read_input_tokens: count.nullable().meta({ since: "2024-08" }),
  cache_creation: cacheCreation.meta({ since: "2025-08" }),
  // Here in a body; the last member in a stream (recordings of 2026).
  iterations: z.array(iteration).optional(),
  output_tokens: count,
  // Where the request enables thinking, and always for models since Claude Opus 4.8; not in `message_start`. Since 2026-05.
  output_tokens_details: z.object({ thinking_tokens: count }).optional(),
  service_tier: z.enum(["standard", "priority", "batch"]).meta({ since: "2025-05" }),
  // `global` for models since Claude Opus 4.6, `not_available` for older ones and for those of this server.
  inference_geo: z.string().meta({ since: "2026-02" }),
  server_tool_use: serverToolUse.optional(),
});

/** The counts of a usage whose sum is the number of the prompt's tokens. They do not overlap. */
export const promptCounts = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"] as const;

/** The usage of `message_start`. */
export const messageStartUsage = messageUsage
  .omit({ output_tokens_details: true, iterations: true })
  .extend({ iterations: messageUsage.shape.iterations });

/** The usage of `message_delta`: cumulative since August 2025, `output_tokens` alone before. */
export const messageDeltaUsage = messageUsage
  .omit({ cache_creation: true, service_tier: true, inference_geo: true, iterations: true })
  .extend({
    input_tokens: count.meta({ since: "2025-08" }),
    cache_creation_input_tokens: count.nullable().meta({ since: "2025-08" }),
    cache_read_input_tokens: count.nullable().meta({ since: "2025-08" }),
    iterations: messageUsage.shape.iterations,
  });

export const citation = z.object({
  type: z.enum([
    "char_location",
    "page_location",
    "content_block_location",
    "web_search_result_location",
    "search_result_location",
  ]),
  cited_text: z.string(),
  source: z.string().optional(),
  url: z.string().optional(),
  document_index: count.optional(),
  document_title: z.string().nullable().optional(),
  title: z.string().nullable().optional(),
  search_result_index: count.optional(),
  start_char_index: count.optional(),
  end_char_index: count.optional(),
  start_page_number: count.optional(),
  end_page_number: count.optional(),
  start_block_index: count.optional(),
  end_block_index: count.optional(),
  encrypted_index: z.string().optional(),
  file_id: z.string().nullable().optional(),
});

const caller = z.looseObject({ type: z.string() });

/** The caller of a tool that the model itself called, not its code. */
export const directCaller = { type: "direct" };

/** A call of a tool that runs on Anthropic's servers. Each tool may add members. */
export const serverToolUseBlock = z.looseObject({
  type: z.literal(["server_tool_use", "mcp_tool_use"]),
  id: z.string(),
  name: z.string(),
  input: z.record(z.string(), z.unknown()),
  caller: caller.optional(),
  server_name: z.string().optional(),
});

const recordedMember = z.unknown().optional();

/** The members of `content` of a server tool's result, in the order of the recordings. An error has `error_code` after its type. */
const serverToolResult = z.discriminatedUnion("type", [
  z.looseObject({
    type: z.literal("web_search_result"),
    title: recordedMember,
    url: recordedMember,
    encrypted_content: recordedMember,
    page_age: recordedMember,
  }),
  z.looseObject({
    type: z.literal("web_fetch_result"),
    url: recordedMember,
    retrieved_at: recordedMember,
    content: z
      .looseObject({
        type: recordedMember,
        source: z.looseObject({ type: recordedMember, media_type: recordedMember, data: recordedMember }).optional(),
        title: recordedMember,
        citations: recordedMember,
      })
      .optional(),
  }),
  z.looseObject({
    type: z.literal(["bash_code_execution_result", "code_execution_result"]),
    stdout: recordedMember,
    stderr: recordedMember,
    return_code: recordedMember,
    content: recordedMember,
  }),
  z.looseObject({
    type: z.literal("text_editor_code_execution_view_result"),
    file_type: recordedMember,
    content: recordedMember,
    num_lines: recordedMember,
    start_line: recordedMember,
    total_lines: recordedMember,
  }),
  z.looseObject({ type: z.literal("text_editor_code_execution_create_result"), is_file_update: recordedMember }),
  z.looseObject({
    type: z.literal("tool_search_tool_search_result"),
    tool_references: z.array(z.looseObject({ type: recordedMember, tool_name: recordedMember })).optional(),
  }),
  z.looseObject({ type: z.literal("text"), text: recordedMember }),
  z.looseObject({
    type: z.literal([
      "web_search_tool_result_error",
      "web_fetch_tool_result_error",
      "code_execution_tool_result_error",
      "bash_code_execution_tool_result_error",
      "text_editor_code_execution_tool_result_error",
      "tool_search_tool_result_error",
    ]),
    error_code: recordedMember,
    error_message: recordedMember,
  }),
]);

/** The result of a tool that runs on Anthropic's servers. */
export const serverToolResultBlock = z.looseObject({
  type: z.literal([
    "mcp_tool_result",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
  ]),
  tool_use_id: z.string(),
  is_error: z.boolean().optional(),
  content: z.union([z.array(serverToolResult), serverToolResult, z.unknown()]),
  caller: caller.optional(),
});

export const textBlock = z.object({
  // `[]` where citations are enabled.
  citations: z.array(citation).optional(),
  type: z.literal("text"),
  text: z.string(),
});

export const thinkingBlock = z.object({ type: z.literal("thinking"), thinking: z.string(), signature: z.string() });

export const redactedThinkingBlock = z.object({ type: z.literal("redacted_thinking"), data: z.string().min(1) });

export const toolUseBlock = z.object({
  type: z.literal("tool_use"),
  id: z.string(),
  name: z.string(),
  input: z.record(z.string(), z.unknown()),
  caller: caller.meta({ since: "2026-03" }),
  // Of a call to `computer_toolset_20260801` or `browser_toolset_20260801`. Its place is predicted: no recording has it.
  toolset_name: z.string().nullable().optional(),
});

/** The functions of an MCP server, with the beta mcp-client-2026-09-15. The order of the members is predicted: no recording has it. */
export const mcpToolListingBlock = z.object({
  type: z.literal("mcp_tool_listing"),
  mcp_server_name: z.string(),
  tools: z.array(
    z.looseObject({ name: z.string(), description: z.string().nullable().optional(), input_schema: z.looseObject({}) }),
  ),
});

/** The blocks of a message's content. A stream's `content_block_start` has the same members, with empty values. */
export const contentBlock = z.discriminatedUnion("type", [
  textBlock,
  thinkingBlock,
  redactedThinkingBlock,
  toolUseBlock,
  z.looseObject({ type: z.literal("compaction") }),
  z.looseObject({ type: z.literal("container_upload") }),
  serverToolUseBlock,
  serverToolResultBlock,
  mcpToolListingBlock,
]);

/** The delta of a `content_block_delta` event. */
export const contentDelta = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text_delta"), text: z.string() }),
  z.object({
    type: z.literal("thinking_delta"),
    thinking: z.string(),
    // With the beta thinking-token-count.
    estimated_tokens: count.optional(),
  }),
  z.object({ type: z.literal("signature_delta"), signature: z.string() }),
  z.object({ type: z.literal("input_json_delta"), partial_json: z.string() }),
  z.object({ type: z.literal("citations_delta"), citation }),
  z.looseObject({ type: z.literal("compaction_delta") }),
]);

/** The member of each delta that is appended to its block's text, by the delta's type. */
export const deltaTexts: ReadonlyMap<unknown, string> = new Map(
  [...variantsOf(contentDelta)].flatMap(([type, delta]) =>
    membersOf(delta).flatMap(({ name, schema }) => (schema instanceof z.ZodString ? [[type, name] as const] : [])),
  ),
);

/** The types of block that each delta extends, by the delta's type. */
export const extendedBlocks: ReadonlyMap<unknown, ReadonlySet<unknown>> = new Map([
  ["text_delta", new Set(["text"])],
  ["citations_delta", new Set(["text"])],
  ["thinking_delta", new Set(["thinking"])],
  ["signature_delta", new Set(["thinking"])],
  ["input_json_delta", new Set([...toolUseBlock.shape.type.values, ...serverToolUseBlock.shape.type.values])],
  ["compaction_delta", new Set(["compaction"])],
]);

export const stopReason = z.enum([
  "end_turn",
  "max_tokens",
  "stop_sequence",
  "tool_use",
  "pause_turn",
  "compaction",
  "refusal",
  "model_context_window_exceeded",
]);

const stopDetails = z.object({
  type: z.literal("refusal"),
  category: z.string().nullable(),
  explanation: z.string().nullable(),
});

/** `null` since September 2026 where the request names no container. */
const container = z
  .object({ id: z.string(), expires_at: z.string() })
  .nullable()
  .optional()
  .meta({ since: "2026-09", proof: "null", ...nullInExact });

/** A block of the request that Anthropic has changed. */
const inputTransformation = z.looseObject({ type: z.string(), path: z.string(), reason: z.string() });

/**
 * Why the request did not use the prompt cache of the previous one. `cache_miss_reason` is `null` while the comparison is running.
 * Source: https://platform.claude.com/docs/en/build-with-claude/cache-diagnostics.
 */
export const messageDiagnostics = z.looseObject({
  cache_miss_reason: z
    .discriminatedUnion("type", [
      z.object({
        type: z.literal(["model_changed", "system_changed", "tools_changed", "messages_changed"]),
        cache_missed_input_tokens: count,
      }),
      z.object({ type: z.literal(["previous_message_not_found", "unavailable"]) }),
    ])
    .nullable(),
});

const contextManagement = z.looseObject({ applied_edits: z.array(z.unknown()) });

const identity = {
  id: z.string().min(1),
  type: z.literal("message"),
  role: z.literal("assistant"),
};
const modelId = z.string().min(1);
/** The members that identify a message. */
export const messageIdentity = z.object({ ...identity, model: modelId });
const content = z.array(contentBlock);
const stop = {
  stop_reason: stopReason.nullable(),
  stop_sequence: z.string().nullable(),
};

/** The model of a message has been its first member since 30 October 2025. */
const modelLastUntil = {
  firstUntil: { date: "2025-10-30", names: ["id", "type", "role", "model"] } satisfies EarlierOrder,
};

/** A message. */
export const message = z
  .object({
    model: modelId,
    ...identity,
    content,
    container,
    ...stop,
    stop_details: stopDetails.nullable().meta({ since: "2026-04" }),
    usage: messageUsage,
    // Where the request has `thinking.block_binding`, from upstreams of this API only.
    input_transformations: z.array(inputTransformation).optional(),
    // `null` where the request does not ask for them, and where it has used the cache.
    diagnostics: messageDiagnostics
      .nullable()
      .optional()
      .meta({ since: "2026-09-26", proof: "null", ...nullInExact }),
    context_management: contextManagement.optional(),
  })
  .meta(modelLastUntil);

/** The body of an error, and the data of the event `error`. */
export const errorResponse = z.object({
  type: z.literal("error"),
  error: z.object({
    type: z.string().min(1),
    message: z.string().min(1),
    // Each code has further members of its own, and some errors have no code.
    details: z.looseObject({ error_code: z.string().optional() }).nullable().optional(),
  }),
  request_id: z.string().nullable().meta({ since: "2025-11" }),
});

/** The types of images, and the words for another one. */
export const imageTypes: ReadonlySet<string> = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);
export const otherImageType = "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'";

/** The most bytes of an image as base64. Source: the pull request can1357/oh-my-pi#10633 of 2026-09; 5 MB until then. */
export const maxImageBytes = 10 * 2 ** 20;

/** The words for an image with more than `most` bytes. */
export function imageTooLarge(bytes: number, most: number): string {
  return `image exceeds ${most / 2 ** 20} MB maximum: ${bytes} bytes > ${most} bytes`;
}

/**
 * Returns the words for an image that cannot be used, and further members of the error. `path`: of its block, with dots.
 * Sources: the issues anthropics/claude-code#12351 (side), #56511 (damaged), earendil-works/pi#424 (bytes), musistudio/claude-code-router#958
 * (base64) and anomalyco/opencode#5704 (format); error bodies in the tests of clients (url).
 */
export function imageError(image: ImageProblem, path: string): Pick<GenerationFailure, "message" | "details"> {
  const at = `${path}.image.source.base64`;
  switch (image.why) {
    case "base64":
      return { message: `${at}: invalid base64 data` };
    case "format":
      return { message: `${at}.media_type: ${otherImageType}` };
    case "damaged":
      return { message: "Could not process image" };
    case "url":
      return { message: "Unable to download the file. Please verify the URL and try again." };
    case "bytes":
      return { message: `${at}: ${imageTooLarge(image.bytes, image.most)}` };
    case "side":
      return {
        message: `${at}.data: At least one of the image dimensions exceed max allowed size: ${image.most} pixels`,
        details: { error_code: "image_dimensions_too_large", max_side_length_pixels: image.most, paths: [path] },
      };
  }
}

/** The HTTP statuses of each type of error. Source: https://platform.claude.com/docs/en/api/errors. */
export const errorStatuses: Readonly<Record<string, readonly number[]>> = {
  invalid_request_error: [400, 422],
  conflict_error: [409],
  authentication_error: [401],
  billing_error: [402, 403],
  permission_error: [403],
  not_found_error: [404],
  request_too_large: [413],
  rate_limit_error: [429],
  api_error: [500, 501, 502],
  timeout_error: [408, 504],
  overloaded_error: [503, 529],
};

/** The delta of `message_delta`. */
export const messageEnding = z.object({
  ...stop,
  stop_details: stopDetails.nullable().meta({ since: "2026-04" }),
  container,
});

/** The events of a stream. */
export const streamEvent = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("message_start"),
    message: message.extend({ usage: messageStartUsage }).meta(modelLastUntil),
  }),
  z.object({ type: z.literal("content_block_start"), index: count, content_block: contentBlock }),
  z.object({ type: z.literal("content_block_delta"), index: count, delta: contentDelta }),
  z.object({ type: z.literal("content_block_stop"), index: count }),
  z.object({
    type: z.literal("message_delta"),
    delta: messageEnding,
    usage: messageDeltaUsage,
    context_management: contextManagement.optional(),
  }),
  z.object({ type: z.literal("message_stop") }),
  z.object({ type: z.literal("ping") }),
  errorResponse,
]);

/** The answer of `POST /v1/messages/count_tokens`. */
export const tokenCount = z.object({
  input_tokens: z.int().min(1),
  /** Where the request has `context_management`. The first count is that after it. */
  context_management: z
    .object({ original_input_tokens: z.int().min(1) })
    .nullable()
    .optional(),
});

export const modelLifecycle = z.enum(["active", "deprecated", "retired"]);

export const modelInfo = z.object({
  type: z.literal("model"),
  id: z.string().min(1),
  display_name: z.string(),
  // RFC 3339.
  created_at: z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/),
  max_input_tokens: count.nullable().optional(),
  max_tokens: count.nullable().optional(),
  capabilities: z.record(z.string(), z.unknown()).nullable().optional(),
  // Declared by Anthropic's SDK 1.12.0. Their place is predicted: no recording has them.
  lifecycle: modelLifecycle.optional(),
  deprecated_at: z.string().nullable().optional(),
  retires_at: z.string().nullable().optional(),
  line: z.string().nullable().optional(),
});

export const modelInfoPage = z.object({
  data: z.array(modelInfo),
  has_more: z.boolean(),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
});
