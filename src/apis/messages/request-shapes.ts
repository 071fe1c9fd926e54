import { z } from "zod";
import { mostMessages, mostParts, mostTools } from "../request/size-limits.ts";
import { list, strings } from "../request/shapes.ts";

/**
 * A request to the Messages API as the client sent it, and the shapes that check it. Source: the types of Anthropic's SDK 0.120.0 and
 * https://platform.claude.com/docs/en/api/messages. Blocks and tools beyond those here are told apart before (see known-blocks.ts).
 */
export interface RawRequest {
  readonly model: string;
  readonly messages: readonly RawMessage[];
  /** Absent only where tokens are counted. */
  readonly max_tokens?: number;
  readonly system?: string | readonly RawText[];
  readonly stream?: boolean;
  readonly temperature?: number;
  readonly top_p?: number;
  readonly top_k?: number;
  readonly stop_sequences?: readonly string[];
  readonly tools?: readonly RawTool[];
  readonly tool_choice?: RawToolChoice;
  readonly thinking?: RawThinking;
  readonly output_config?: RawOutputConfig;
  readonly output_format?: RawOutputFormat;
}

export interface RawMessage {
  readonly role: "user" | "assistant" | "system";
  /** Only a `system` message may be without. */
  readonly content?: string | readonly RawBlock[];
  readonly output_config?: RawOutputConfig | null;
  /** Of a `system` message: whether it is shown only for the user's turn that it follows. */
  readonly clear_at?: "next_user_message" | "never" | null;
}

export type RawBlock =
  | RawText
  | RawImage
  | RawDocument
  | RawSearchResult
  | { readonly type: "thinking"; readonly thinking: string; readonly signature?: string | null }
  | { readonly type: "redacted_thinking"; readonly data: string }
  | RawToolUse
  | RawToolResult
  | RawToolChange
  | { readonly type: "compaction"; readonly content?: string | null }
  | RawServerBlock;

export interface RawText {
  readonly type: "text";
  readonly text: string;
}

export interface RawImage {
  readonly type: "image";
  readonly source:
    | { readonly type: "base64"; readonly media_type: string; readonly data: string }
    | { readonly type: "url"; readonly url: string }
    | { readonly type: "file"; readonly file_id: string };
}

export interface RawDocument {
  readonly type: "document";
  readonly title?: string | null;
  readonly context?: string | null;
  readonly source:
    | { readonly type: "base64"; readonly media_type: string; readonly data: string }
    | { readonly type: "text"; readonly data: string }
    | { readonly type: "content"; readonly content: string | readonly (RawText | RawImage)[] }
    | { readonly type: "url"; readonly url: string }
    | { readonly type: "file"; readonly file_id: string };
}

export interface RawSearchResult {
  readonly type: "search_result";
  readonly source: string;
  readonly title: string;
  readonly content: readonly RawText[];
}

export interface RawToolReference {
  readonly type: "tool_reference";
  readonly tool_name: string;
}

/** A tool comes or goes in the middle of a conversation. */
export interface RawToolChange {
  readonly type: "tool_addition" | "tool_removal";
  readonly tool: {
    readonly type: string;
    readonly name?: string;
    /** Of a `tool_definition`: the tool, as `tools` would have it. */
    readonly definition?: RawTool;
  };
}

export interface RawToolUse {
  readonly type: "tool_use";
  readonly id: string;
  readonly name: string;
  readonly input: RawObject;
}

export interface RawToolResult {
  readonly type: "tool_result";
  readonly tool_use_id: string;
  readonly content?: string | readonly RawResultBlock[] | null;
  readonly is_error?: boolean | null;
}

export type RawResultBlock = RawText | RawImage | RawDocument | RawSearchResult | RawToolReference;

/** What a tool of Anthropic's own servers said or was asked. */
export interface RawServerBlock {
  readonly type: (typeof serverBlocks)[number];
  readonly content?: unknown;
}

export interface RawTool {
  /** Absent or "custom": a tool that the client runs; else one of Anthropic's, such as `web_search_20250305`. */
  readonly type?: string | null;
  readonly name: string;
  readonly description?: string | null;
  readonly input_schema?: RawObject;
  readonly strict?: boolean | null;
  readonly defer_loading?: boolean | null;
}

export interface RawToolChoice {
  readonly type: "auto" | "any" | "tool" | "none";
  readonly name?: string;
  readonly disable_parallel_tool_use?: boolean | null;
}

export interface RawThinking {
  readonly type: "enabled" | "adaptive" | "between_tools" | "disabled";
  readonly budget_tokens?: number;
  readonly display?: "summarized" | "updates" | "omitted" | null;
}

export interface RawOutputConfig {
  readonly effort?: string | null;
  readonly format?: RawOutputFormat | null;
}

export interface RawOutputFormat {
  readonly type: "json_schema";
  readonly schema: RawObject;
}

export type RawObject = Readonly<Record<string, unknown>>;

export const serverBlocks = [
  "server_tool_use",
  "web_search_tool_result",
  "web_fetch_tool_result",
  "code_execution_tool_result",
  "bash_code_execution_tool_result",
  "text_editor_code_execution_tool_result",
  "tool_search_tool_result",
  "advisor_tool_result",
  "mcp_tool_use",
  "mcp_tool_result",
  "mcp_tool_listing",
  "container_upload",
  "fallback",
] as const;

/** What an integer's refusal says; zod tells a text in its place as no number. */
export const integerWords = "Input should be a valid integer";

/** The tag of a range whose refusal names the range: `temperature: range: 0..1`. */
export const rangeMark = "range: ";

export interface RequestShapes {
  readonly messages: z.ZodType;
  readonly system: z.ZodType;
  readonly tools: z.ZodType;
  readonly toolChoice: z.ZodType;
  readonly thinking: z.ZodType;
  readonly outputConfig: z.ZodType;
  readonly outputFormat: z.ZodType;
  readonly stopSequences: z.ZodType;
}

/** `strict`: members that nobody knows are refused, as Anthropic does. */
export function requestShapes(strict: boolean): RequestShapes {
  const object = (strict ? z.strictObject : z.object) as typeof z.object;
  const anyObject = z.record(z.string(), z.unknown());
  const cache = { cache_control: z.unknown().optional() };
  const text = object({ type: z.literal("text"), text: z.string(), citations: z.unknown().optional(), ...cache });
  const base64 = object({ type: z.literal("base64"), media_type: z.string(), data: z.string() });
  const byUrl = object({ type: z.literal("url"), url: z.string() });
  const byId = object({ type: z.literal("file"), file_id: z.string() });
  const image = object({
    type: z.literal("image"),
    source: z.discriminatedUnion("type", [base64, byUrl, byId]),
    ...cache,
  });
  const plainText = object({ type: z.literal("text"), media_type: z.unknown().optional(), data: z.string() });
  const ownContent = object({
    type: z.literal("content"),
    content: z.union([z.string(), list(z.discriminatedUnion("type", [text, image]), { most: mostParts })]),
  });
  const document = object({
    type: z.literal("document"),
    title: z.string().nullish(),
    context: z.string().nullish(),
    citations: z.unknown().optional(),
    source: z.discriminatedUnion("type", [base64, plainText, ownContent, byUrl, byId]),
    ...cache,
  });
  const searchResult = object({
    type: z.literal("search_result"),
    source: z.string(),
    title: z.string(),
    content: list(text, { most: mostParts }),
    citations: z.unknown().optional(),
    ...cache,
  });
  const toolReference = object({ type: z.literal("tool_reference"), tool_name: z.string(), ...cache });
  const resultBlock = z.discriminatedUnion("type", [text, image, document, searchResult, toolReference]);
  const toolResult = object({
    type: z.literal("tool_result"),
    tool_use_id: z.string(),
    content: z.union([z.string(), list(resultBlock, { most: mostParts })]).nullish(),
    is_error: z.boolean().nullish(),
    toolset_name: z.unknown().optional(),
    ...cache,
  });
  const tool = toolShape(strict, object, cache);
  const change = object({ type: z.literal(["tool_addition", "tool_removal"]), tool: toolChange(tool), ...cache });
  const caller = z.unknown().optional();
  const block = z.discriminatedUnion("type", [
    text,
    image,
    document,
    searchResult,
    object({ type: z.literal("thinking"), thinking: z.string(), signature: z.string().nullish() }),
    object({ type: z.literal("redacted_thinking"), data: z.string() }),
    object({
      type: z.literal("tool_use"),
      id: z.string(),
      name: z.string(),
      input: anyObject,
      caller,
      toolset_name: z.unknown().optional(),
      ...cache,
    }),
    toolResult,
    change,
    z.looseObject({ type: z.literal("compaction"), content: z.string().nullish() }),
    z.looseObject({ type: z.enum(serverBlocks) }),
  ]);
  const outputFormat = object({ type: z.literal("json_schema"), schema: anyObject });
  const outputConfig = object({
    effort: z.string().nullish(),
    format: outputFormat.nullish(),
    task_budget: z.unknown().optional(),
  });
  const content = z.union([z.string(), list(block, { most: mostParts })]);
  const message = z.discriminatedUnion("role", [
    object({ role: z.literal(["user", "assistant"]), content }),
    object({
      role: z.literal("system"),
      content: content.optional(),
      output_config: outputConfig.nullish(),
      clear_at: z.enum(["next_user_message", "never"]).nullish(),
    }),
  ]);
  const parallel = { disable_parallel_tool_use: z.boolean().nullish() };
  // `updates` is of the beta thinking-display-updates-2026-08-18; Claude Code sends it in its terminal and with stream-json.
  const display = z.enum(["summarized", "updates", "omitted"]).nullish();
  return {
    messages: list(message, { most: mostMessages }),
    system: z.union([z.string(), list(text, { most: mostParts })]),
    tools: list(tool, { most: mostTools }),
    toolChoice: z.discriminatedUnion("type", [
      object({ type: z.literal("auto"), ...parallel }),
      object({ type: z.literal("any"), ...parallel }),
      object({ type: z.literal("tool"), name: z.string(), ...parallel }),
      object({ type: z.literal("none") }),
    ]),
    thinking: z.discriminatedUnion("type", [
      object({ type: z.literal("enabled"), budget_tokens: z.int(integerWords).min(strict ? 1024 : 0), display }),
      object({ type: z.literal("adaptive"), display }),
      object({ type: z.literal("between_tools") }),
      object({ type: z.literal("disabled") }),
    ]),
    outputConfig,
    outputFormat,
    stopSequences: strings(1000),
  };
}

/** A tool of the client's own, or one of Anthropic's, which has members of its own. */
function toolShape(strict: boolean, object: typeof z.object, cache: z.ZodRawShape): z.ZodType {
  return z.union([
    z.looseObject({ type: z.string().refine((type) => type !== "custom"), name: z.string().optional() }),
    object({
      type: z.literal("custom").nullish(),
      name: strict ? z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/) : z.string().min(1),
      description: z.string().nullish(),
      input_schema: inputSchema(strict),
      strict: z.boolean().nullish(),
      defer_loading: z.boolean().nullish(),
      eager_input_streaming: z.unknown().optional(),
      input_examples: z.unknown().optional(),
      allowed_callers: z.unknown().optional(),
      ...cache,
    }),
  ]);
}

function toolChange(tool: z.ZodType): z.ZodType {
  return z.union([
    z.looseObject({ type: z.literal("tool_definition"), definition: tool }),
    z.looseObject({ type: z.string().refine((type) => type !== "tool_definition"), name: z.string().optional() }),
  ]);
}

function inputSchema(strict: boolean): z.ZodType {
  const type = z.literal("object");
  return z.looseObject({ type: strict ? type : type.nullish() });
}
