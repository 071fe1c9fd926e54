import * as z from "zod";
import { membersOf, variantsOf } from "../members.ts";
import { inOrder } from "../request/parameter.ts";
import { list, maxMessages, maxParts, maxTools, strings } from "../request/shapes.ts";
import { serverToolResultBlock, serverToolUseBlock } from "./schema.ts";

/*
 * The objects of a request to Anthropic's Messages API. Each schema describes what this server accepts; these notes add to it:
 * - `.meta({ exact })`: the schema that profile `exact` uses instead, where Anthropic is stricter. That profile also refuses members that
 *   an object does not list (see `requestMembers` in exact-request.ts).
 * - `.meta({ until })`: profile `exact` refuses the member in requests with this version of the API, and with later ones.
 * - `.meta({ beta })`: profile `exact` refuses the member in requests without this beta; with `exact`, it uses that schema for them.
 * - `honoured`, `accepted` and `refused` add the row of a request's member in docs/parameters.md.
 *
 * The words of the refusals are written by request-issue.ts.
 *
 * Source: the types of Anthropic's TypeScript SDK 0.120.0 and 1.12.0; https://platform.claude.com/docs/en/api/messages.
 */

/** The versions of the API. Source: https://platform.claude.com/docs/en/api/versioning. */
export const apiVersions: ReadonlySet<string> = new Set(["2023-01-01", "2023-06-01", "2026-10-21"]);

/** The first version without sampling parameters, `document` blocks of the assistant, and citations in texts of the user. */
export const strictVersion = "2026-10-21";

/** The betas that profile `exact` requires for what belongs to them. Source: the types of Anthropic's SDK 1.12.0. */
export const requiredBetas = {
  bindingControls: "thinking-binding-controls-2026-08-01",
  displayUpdates: "thinking-display-updates-2026-08-18",
  clearAt: "mid-conversation-system-clear-at-2026-08-21",
  inlineTools: "inline-tools-2026-09-15",
  mcpListings: "mcp-client-2026-09-15",
} as const;

/** The version and the betas that the headers of a request name. */
export interface ApiFeatures {
  readonly version: string;
  readonly betas: ReadonlySet<string>;
}

/** What this server does with a member of the request. docs/parameters.md lists all members. */
export interface MessageParameter {
  readonly name: string;
  readonly required: boolean;
  readonly treatment: "honoured" | "accepted" | "refused";
  readonly note: string;
}

const rows = z.registry<Pick<MessageParameter, "treatment" | "note">>();

/** The message of an issue about an integer. zod has none of its own for a value of another type. */
export const integerWords = "Input should be a valid integer";

const anyValue = z.unknown().optional();
const anyObject = z.record(z.string(), z.unknown());
/** A mark of the prompt cache. */
const cacheControl = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("ephemeral"), ttl: z.enum(["5m", "1h"]).nullish() }),
]);
const cached = { cache_control: anyValue.meta({ exact: cacheControl.nullish() }) };

export const textBlockParam = z.object({ type: z.literal("text"), text: z.string(), citations: anyValue, ...cached });

export const base64Source = z.object({ type: z.literal("base64"), media_type: z.string(), data: z.string() });
export const urlSource = z.object({ type: z.literal("url"), url: z.string() });
export const fileSource = z.object({ type: z.literal("file"), file_id: z.string() });
export const plainTextSource = z.object({ type: z.literal("text"), media_type: anyValue, data: z.string() });

export const imageBlockParam = z.object({
  type: z.literal("image"),
  source: z.discriminatedUnion("type", [base64Source, urlSource, fileSource]),
  ...cached,
});

export const contentBlockSource = z.object({
  type: z.literal("content"),
  content: z.union([
    z.string(),
    list(z.discriminatedUnion("type", [textBlockParam, imageBlockParam]), { most: maxParts }),
  ]),
});

export const documentBlockParam = z.object({
  type: z.literal("document"),
  title: z.string().nullish(),
  context: z.string().nullish(),
  citations: anyValue,
  source: z.discriminatedUnion("type", [base64Source, plainTextSource, contentBlockSource, urlSource, fileSource]),
  ...cached,
});

export const searchResultBlockParam = z.object({
  type: z.literal("search_result"),
  source: z.string(),
  title: z.string(),
  content: list(textBlockParam, { most: maxParts }),
  citations: anyValue,
  ...cached,
});

export const toolReferenceBlockParam = z.object({
  type: z.literal("tool_reference"),
  tool_name: z.string(),
  ...cached,
});

/** A block of a tool's result. */
const resultBlock = z.discriminatedUnion("type", [
  textBlockParam,
  imageBlockParam,
  documentBlockParam,
  searchResultBlockParam,
  toolReferenceBlockParam,
]);

export const toolResultBlockParam = z.object({
  type: z.literal("tool_result"),
  tool_use_id: z.string(),
  content: z.union([z.string(), list(resultBlock, { most: maxParts })]).nullish(),
  is_error: z.boolean().nullish(),
  toolset_name: anyValue,
  ...cached,
});

export const thinkingBlockParam = z.object({
  type: z.literal("thinking"),
  thinking: z.string(),
  signature: z.string().nullish(),
});

export const redactedThinkingBlockParam = z.object({ type: z.literal("redacted_thinking"), data: z.string() });

export const toolUseBlockParam = z.object({
  type: z.literal("tool_use"),
  id: z.string(),
  name: z.string(),
  input: anyObject,
  caller: anyValue,
  toolset_name: anyValue,
  ...cached,
});

const objectType = z.literal("object");

/** A tool that the client runs. */
export const customToolParam = z.object({
  type: z.literal("custom").nullish(),
  name: z
    .string()
    .min(1)
    .meta({ exact: z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/) }),
  description: z.string().nullish(),
  input_schema: z.looseObject({ type: objectType.nullish().meta({ exact: objectType }) }),
  strict: z.boolean().nullish(),
  defer_loading: z.boolean().nullish(),
  eager_input_streaming: anyValue,
  input_examples: anyValue,
  allowed_callers: anyValue,
  ...cached,
});

/** One of Anthropic's tools, such as `web_search_20250305`. Each type has members of its own. */
export const anthropicTool = z.looseObject({
  type: z.string().refine((type) => type !== "custom"),
  name: z.string().optional(),
});

const tool = z.union([anthropicTool, customToolParam]);

const toolDefinition = z.looseObject({ type: z.literal("tool_definition"), definition: tool });

/** Adds a tool in the middle of a conversation, or removes one. */
export const toolChangeBlockParam = z.object({
  type: z.literal(["tool_addition", "tool_removal"]),
  tool: z.union([
    toolDefinition,
    z.looseObject({ type: z.string().refine((type) => type !== "tool_definition"), name: z.string().optional() }),
  ]),
  ...cached,
});

/** Calls and results of tools that run on Anthropic's servers, and other blocks that only those servers read. */
export const serverBlockParam = z.looseObject({
  type: z.literal([
    ...serverToolUseBlock.shape.type.values,
    ...serverToolResultBlock.shape.type.values,
    "mcp_tool_listing",
    "container_upload",
    "fallback",
  ]),
  content: anyValue,
});

export const contentBlockParam = z.discriminatedUnion("type", [
  textBlockParam,
  imageBlockParam,
  documentBlockParam,
  searchResultBlockParam,
  thinkingBlockParam,
  redactedThinkingBlockParam,
  toolUseBlockParam,
  toolResultBlockParam,
  toolChangeBlockParam,
  z.looseObject({ type: z.literal("compaction"), content: z.string().nullish() }),
  serverBlockParam,
]);

/** The types of all blocks of a conversation, those of tool results included. */
export const knownBlocks: ReadonlySet<unknown> = new Set([
  ...variantsOf(contentBlockParam).keys(),
  ...variantsOf(resultBlock).keys(),
]);

export const jsonOutputFormat = z.object({ type: z.literal("json_schema"), schema: anyObject });

export const outputConfig = z.object({
  effort: z
    .string()
    .nullish()
    .meta({ exact: z.enum(["low", "medium", "high", "xhigh", "max"]).nullish() }),
  format: jsonOutputFormat.nullish(),
  task_budget: anyValue,
});

const content = z.union([z.string(), list(contentBlockParam, { most: maxParts })]);

export const messageParam = z.discriminatedUnion("role", [
  z.object({ role: z.literal(["user", "assistant"]), content }),
  z.object({
    role: z.literal("system"),
    content: content.optional(),
    output_config: outputConfig.nullish(),
    // Whether the message counts only for the user's turn that it follows.
    clear_at: z.enum(["next_user_message", "never"]).nullish().meta({ beta: requiredBetas.clearAt }),
  }),
]);

const parallel = { disable_parallel_tool_use: z.boolean().nullish() };

export const toolChoice = z.discriminatedUnion("type", [
  z.object({ type: z.literal("auto"), ...parallel }),
  z.object({ type: z.literal("any"), ...parallel }),
  z.object({ type: z.literal("tool"), name: z.string(), ...parallel }),
  z.object({ type: z.literal("none") }),
]);

// Claude Code sends `updates` in its terminal and with stream-json.
const display = z
  .enum(["summarized", "updates", "omitted"])
  .nullish()
  .meta({ beta: requiredBetas.displayUpdates, exact: z.enum(["summarized", "omitted"]).nullish() });

/** What happens if a thinking block is sent with another conversation than the one that it was created in. */
const block_binding = z
  .object({ prefix_mismatch_behavior: z.enum(["error", "drop_block"]).nullish() })
  .nullish()
  .meta({ beta: requiredBetas.bindingControls });

const budget = z.int(integerWords);

export const thinkingConfigParam = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("enabled"),
    budget_tokens: budget.min(0).meta({ exact: budget.min(1024) }),
    display,
    block_binding,
  }),
  z.object({ type: z.literal("adaptive"), display, block_binding }),
  z.object({ type: z.literal("between_tools") }),
  z.object({ type: z.literal("disabled") }),
]);

const inputTokens = z.object({ type: z.literal("input_tokens"), value: z.int(integerWords).min(1) });
const toolUses = z.object({ type: z.literal("tool_uses"), value: z.int(integerWords).min(0) });
const allThinkingTurns = z.object({ type: z.literal("all") });
const thinkingTurns = z.object({ type: z.literal("thinking_turns"), value: z.int(integerWords).min(1) });

export const contextEdit = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("clear_tool_uses_20250919"),
    trigger: z.discriminatedUnion("type", [inputTokens, toolUses]).optional(),
    keep: toolUses.optional(),
    clear_at_least: inputTokens.nullish(),
    exclude_tools: strings(maxTools).nullish(),
    clear_tool_inputs: z.union([z.boolean(), strings(maxTools)]).nullish(),
  }),
  z.object({
    type: z.literal("clear_thinking_20251015"),
    keep: z.union([z.literal("all"), z.discriminatedUnion("type", [allThinkingTurns, thinkingTurns])]).optional(),
  }),
  z.object({
    type: z.literal("compact_20260112"),
    trigger: inputTokens.nullish(),
    instructions: z.string().nullish(),
    pause_after_compaction: z.boolean().optional(),
  }),
]);
export type ContextEdit = z.infer<typeof contextEdit>;

export const contextManagement = z.object({ edits: list(contextEdit, { most: 100 }).optional() });

const refusedSampling = `Profile \`exact\` refuses it with \`anthropic-version: ${strictVersion}\`, as Anthropic does.`;

/** The body of `POST /v1/messages`. */
export const messageRequest = z.object({
  model: honoured("", z.string().min(1)),
  messages: honoured(
    "Text, images, documents (local models read text documents only), thinking with its signature, calls and their results with `is_error`, and `system` messages anywhere, which may add and remove tools (`tool_addition`, `tool_removal`), set `output_config.effort`, and end with the turn (`clear_at`). The model continues an assistant message at the end. Calls of hosted tools and their results are part of the prompt (docs/hosted-tools.md); other blocks of Anthropic's own servers are left out. In profile `exact`, images are PNG, JPEG, GIF or WebP as their `media_type` says, of up to 10 MB in base64, `clear_at` and a `tool_addition` with a `tool_definition` require their betas; with `anthropic-version: 2026-10-21`, documents of the assistant and citations in the user's texts are refused.",
    list(messageParam, { most: maxMessages }),
  ),
  max_tokens: honoured(
    "0 processes the prompt and generates nothing. A value beyond the context size is accepted; in profile `lean`, -1 is no limit.",
    z.int(integerWords).min(0, "must be greater than or equal to 0"),
  ),
  system: honoured(
    "A string or text blocks. A block that begins with `x-anthropic-billing-header:` is left out: its value changes with every request, so the prompt cache would never match.",
    z.union([z.string(), list(textBlockParam, { most: maxParts })]).optional(),
  ),
  stream: honoured("", z.boolean().optional()),
  temperature: honoured(
    `0 to 1; profile \`lean\` accepts up to 2. ${refusedSampling}`,
    range(2)
      .meta({ exact: range(1) })
      .optional()
      .meta({ until: strictVersion }),
  ),
  top_p: honoured(`0 to 1. ${refusedSampling}`, range(1).optional().meta({ until: strictVersion })),
  top_k: honoured(
    `0 turns it off. ${refusedSampling}`,
    z.int(integerWords).min(0).optional().meta({ until: strictVersion }),
  ),
  stop_sequences: honoured(
    "The answer contains the sequence that ended it. Empty strings are ignored. Up to 1,000 strings, of 65,536 characters in total.",
    strings(1000).optional(),
  ),
  tools: honoured(
    "With `strict` and `defer_loading` (the prompt contains the tool only after a `tool_reference` in a result names it). Tools of Anthropic's own servers (`web_search_…`, `mcp_toolset`) run here if they are configured (docs/hosted-tools.md), and fail as `unavailable` otherwise; a request with a web search alone, as Claude Code's WebSearch, is then answered with `web_search_tool_result_error` without asking the model. Tools of Anthropic that the client runs (`bash_…`, `text_editor_…`, `memory_…`, `computer_…`) are given to other models as functions. Those whose schemas only Anthropic's models know (`computer_toolset_…`, `browser_toolset_…`) are refused.",
    list(tool, { most: maxTools }).optional(),
  ),
  tool_choice: honoured("`auto`, `any`, `tool`, `none`, with `disable_parallel_tool_use`.", toolChoice.optional()),
  thinking: honoured(
    '`enabled` with `budget_tokens` (thinking ends when the budget is spent), `adaptive`, `between_tools` (the same as `adaptive`), `disabled`. `display: "omitted"` leaves the text out and puts it into the signature for the next turn; `display: "updates"` is the same as `summarized`. `block_binding` goes to upstreams of this API; this server binds no blocks. In profile `exact`, `updates` and `block_binding` require their betas.',
    thinkingConfigParam.optional(),
  ),
  output_config: honoured(
    "`effort`, for models whose templates use it, and `format` with a JSON schema.",
    outputConfig.optional(),
  ),
  output_format: honoured("The former name of `output_config.format`.", jsonOutputFormat.nullish()),
  metadata: accepted("Answers do not depend on the user.", z.strictObject({ user_id: z.string().nullish() }).nullish()),
  service_tier: accepted(
    "`standard_only` waits in queues as keys without `priority` do; `auto` has the tier of the key.",
    z.enum(["auto", "standard_only"]).optional(),
  ),
  cache_control: accepted(
    "Accepted here and on every block and tool. The prompt cache always finds the longest common prefix; `usage` reports its tokens.",
    cacheControl.nullish(),
  ),
  context_management: honoured(
    "`clear_tool_uses_20250919` and `clear_thinking_20251015`; the answer lists what they cleared as `applied_edits`. `compact_20260112` is refused when the prompt reaches its trigger (`details.error_code`: `compaction_unavailable`). An upstream of this API does all of this itself ([messages.md](messages.md#context-management)).",
    contextManagement.nullish(),
  ),
  container: accepted("Ignored: there are no containers."),
  inference_geo: accepted(
    "Ignored.",
    z
      .string()
      .refine((geo) => ["global", "us"].includes(geo))
      .nullish(),
  ),
  mcp_servers: accepted("Servers that the configuration has (docs/hosted-tools.md); others are refused."),
  speed: accepted(
    "Ignored: there is one speed. `usage` has no `speed`, as in every recorded answer of Anthropic.",
    z.enum(["standard", "fast"]).nullish(),
  ),
  diagnostics: honoured(
    "The message says where the request diverges from that of `previous_message_id` (docs/messages.md).",
    z.object({ previous_message_id: z.string().nullish() }).nullish(),
  ),
  fallbacks: accepted("Ignored: fallbacks are part of the server's configuration."),
  fallback_credit_token: accepted("Ignored."),
  billing_policy: accepted("Ignored."),
  user_profile_id: accepted("Answers do not depend on the user."),
  workspace_id: accepted("Ignored: there are no workspaces."),
  thread: refused(
    "This server stores no conversations, even for models of other servers. With the error's `details.error_code` `thread_unsupported_request`, Anthropic's SDKs send the whole conversation instead.",
  ),
  compaction: refused(
    "This server does not summarize conversations. The error's `details.error_code` is `compaction_unavailable`.",
  ),
  betas: accepted("Ignored, as a member: betas are named in the header `anthropic-beta`, which may have any value."),
});

/** The body of `POST /v1/messages/count_tokens`. */
export const countTokensRequest = messageRequest.pick({
  model: true,
  messages: true,
  system: true,
  tools: true,
  tool_choice: true,
  thinking: true,
  output_config: true,
});

type Whole = z.infer<typeof messageRequest>;
/** A request after validation. `max_tokens` is absent only where tokens are counted. */
export type MessageRequest = Omit<Whole, "max_tokens"> & Partial<Pick<Whole, "max_tokens">>;
export type MessageParam = z.infer<typeof messageParam>;
export type ContentBlockParam = z.infer<typeof contentBlockParam>;
export type TextBlockParam = z.infer<typeof textBlockParam>;
export type ImageBlockParam = z.infer<typeof imageBlockParam>;
export type DocumentBlockParam = z.infer<typeof documentBlockParam>;
export type ToolUseBlockParam = z.infer<typeof toolUseBlockParam>;
export type ToolResultBlockParam = z.infer<typeof toolResultBlockParam>;
export type ResultBlockParam = z.infer<typeof resultBlock>;
export type CustomTool = z.infer<typeof customToolParam>;
export type AnthropicTool = z.infer<typeof anthropicTool>;
export type RequestTool = z.infer<typeof tool>;

/** True for a tool that the client runs and describes. */
export function isCustomTool(tool: RequestTool): tool is CustomTool {
  return typeof tool.type !== "string" || tool.type === "custom";
}

/** The tool that a block defines in the middle of a conversation; `undefined` where the block only names one. */
export function definedTool({ tool: changed }: z.infer<typeof toolChangeBlockParam>): RequestTool | undefined {
  const isDefinition = (object: typeof changed): object is z.infer<typeof toolDefinition> =>
    object.type === "tool_definition";
  return isDefinition(changed) ? changed.definition : undefined;
}

/**
 * The order in which Anthropic checks the members of a request; unknown members, the form of the conversation and the rules of request-rules.ts come
 * after it. Source: kangminlee-maker/local-OAuth-CLI-API-adapter, test/anthropic-messages-validation-parity.test.mjs, pairs of mistakes sent to
 * claude-sonnet-5 on 2026-08-31.
 */
export const messagesCheckOrder: readonly string[] = [
  "model",
  "tool_choice",
  "tools",
  "messages",
  "system",
  "thinking",
  "output_config",
  "cache_control",
  "max_tokens",
  "metadata",
  "stop_sequences",
  "temperature",
  "service_tier",
  "top_k",
  "top_p",
  "stream",
  "container",
  "inference_geo",
];

/** Every member of `POST /v1/messages`, in the order in which they are checked. */
export const messageParameters: readonly MessageParameter[] = inOrder(
  membersOf(messageRequest).flatMap(({ name, schema, always }) => {
    const row = rows.get(schema);
    return row ? [{ name, required: always, ...row }] : [];
  }),
  messagesCheckOrder,
);

function honoured<Schema extends z.ZodType>(note: string, schema: Schema): Schema {
  rows.add(schema, { treatment: "honoured", note });
  return schema;
}

/** `exact`: what profile `exact` takes. */
function accepted(note: string, exact?: z.ZodType): z.ZodOptional<z.ZodUnknown> {
  const schema = z.unknown().optional().meta({ exact });
  rows.add(schema, { treatment: "accepted", note });
  return schema;
}

function refused(note: string): z.ZodOptional<z.ZodUnknown> {
  const schema = z.unknown().optional();
  rows.add(schema, { treatment: "refused", note });
  return schema;
}

/** A number between 0 and `maximum`. */
function range(maximum: number): z.ZodNumber {
  const words = `range: 0..${maximum}`;
  return z.number().min(0, words).max(maximum, words);
}
