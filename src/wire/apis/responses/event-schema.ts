import * as z from "zod";
import { annotation, contentPart, count, item, response, responseLogprob, summaryText, wireOrder } from "./schema.ts";

/* The events of the Responses API: of a stream, and of a WebSocket. Their members are in the order of `wireOrder`. */

const atItem = { output_index: count, sequence_number: count };
const inItem = { item_id: z.string(), ...atItem };
const content = { content_index: count };
const summary = { summary_index: count };
const command = { command_index: count };
const delta = { delta: z.string() };
const logprobs = { logprobs: z.array(responseLogprob) };
/** Characters that hide the length of a delta. */
const obfuscation = { obfuscation: z.unknown().optional().meta({ since: "2025-08-06" }) };
const hidden = { item_id: z.string(), ...obfuscation, ...atItem };

/**
 * The lane of a WebSocket connection, in each event of a request that names one. Its place is predicted: OpenAI's order is the alphabet's,
 * and no recording of a lane is public. Source: openai 7.57, `ResponsesServerEvent`.
 */
const streamId = z.string().optional().meta({ place: "predicted" });

function event(type: string, shape: z.ZodRawShape): readonly [type: string, schema: z.ZodObject] {
  const members: z.ZodRawShape = { type: z.literal(type), ...shape, stream_id: streamId };
  const ordered = wireOrder(Object.keys(members)).map((name) => [name, members[name]] as const);
  return [type, z.object(Object.fromEntries(ordered) as z.ZodRawShape)];
}

const whole = { response, sequence_number: count };

/** A steer: input for a response that is being generated. */
const steer = z.object({ id: z.string(), previous_response_id: z.string() });

export const steerErrorCodes = [
  "response_not_found",
  "invalid_input",
  "steering_not_supported",
  "too_many_pending_steers",
  "response_already_completed",
  "response_not_active",
  "successor_creation_failed",
] as const;
export type SteerErrorCode = (typeof steerErrorCodes)[number];

/** The events that answer `response.steer`, on a WebSocket only. Their order is predicted. Source: openai 7.57, `ResponseSteerEvent`. */
export const steerEvents: ReadonlyMap<unknown, z.ZodObject> = new Map<unknown, z.ZodObject>([
  event("response.steer.accepted", { sequence_number: count, steer }),
  event("response.steer.pending", {
    reason: z.string(),
    required_input: z.array(z.looseObject({ type: z.string() })),
    sequence_number: count,
    steer,
  }),
  event("response.steer.failed", {
    error: z.object({ type: z.literal("invalid_request_error"), code: z.string(), message: z.string() }),
    sequence_number: count,
    steer: z.object({ id: z.string().optional(), input: z.unknown(), previous_response_id: z.string() }),
  }),
]);

/** The progress of tools that OpenAI runs. */
const hostedSteps = [
  "web_search_call.in_progress",
  "web_search_call.searching",
  "web_search_call.completed",
  "file_search_call.in_progress",
  "file_search_call.searching",
  "file_search_call.completed",
  "code_interpreter_call.in_progress",
  "code_interpreter_call.interpreting",
  "code_interpreter_call.completed",
  "image_generation_call.in_progress",
  "image_generation_call.generating",
  "image_generation_call.completed",
  "mcp_list_tools.in_progress",
  "mcp_list_tools.completed",
  "mcp_list_tools.failed",
  "mcp_call.in_progress",
  "mcp_call.completed",
  "mcp_call.failed",
] as const;

/** The events of a stream by their type; events of other types are not described. */
export const responseEvents: ReadonlyMap<unknown, z.ZodObject> = new Map<unknown, z.ZodObject>([
  event("response.created", whole),
  event("response.queued", whole),
  event("response.in_progress", whole),
  event("response.completed", whole),
  event("response.incomplete", whole),
  event("response.failed", whole),
  event("response.output_item.added", { item, ...atItem }),
  event("response.output_item.done", { item, ...atItem }),
  event("response.content_part.added", {
    ...content,
    item_id: z.string(),
    output_index: count,
    part: contentPart,
    sequence_number: count,
  }),
  event("response.content_part.done", {
    ...content,
    item_id: z.string(),
    output_index: count,
    part: contentPart,
    sequence_number: count,
  }),
  event("response.output_text.delta", {
    ...content,
    ...delta,
    item_id: z.string(),
    ...logprobs,
    ...obfuscation,
    ...atItem,
  }),
  event("response.output_text.done", { ...content, item_id: z.string(), ...logprobs, ...atItem, text: z.string() }),
  event("response.output_text.annotation.added", { annotation, annotation_index: count, ...content, ...inItem }),
  event("response.refusal.delta", { ...content, ...delta, ...inItem }),
  event("response.refusal.done", {
    ...content,
    item_id: z.string(),
    output_index: count,
    refusal: z.string(),
    sequence_number: count,
  }),
  event("response.reasoning_text.delta", { ...content, ...delta, ...inItem }),
  event("response.reasoning_text.done", { ...content, ...inItem, text: z.string() }),
  event("response.reasoning_summary_part.added", {
    item_id: z.string(),
    output_index: count,
    part: summaryText,
    sequence_number: count,
    ...summary,
  }),
  event("response.reasoning_summary_part.done", {
    item_id: z.string(),
    output_index: count,
    part: summaryText,
    sequence_number: count,
    ...summary,
  }),
  event("response.reasoning_summary_text.delta", { ...delta, ...hidden, ...summary }),
  event("response.reasoning_summary_text.done", { ...inItem, ...summary, text: z.string() }),
  event("response.function_call_arguments.delta", { ...delta, ...hidden }),
  event("response.function_call_arguments.done", { arguments: z.string(), ...inItem }),
  event("response.custom_tool_call_input.delta", { ...delta, ...hidden }),
  event("response.custom_tool_call_input.done", { input: z.string(), ...inItem }),
  event("response.compaction.compacting", inItem),
  ...hostedSteps.map((name) => event(`response.${name}`, inItem)),
  event("response.mcp_call_arguments.delta", { ...delta, ...hidden }),
  event("response.mcp_call_arguments.done", { arguments: z.string(), ...inItem }),
  event("response.code_interpreter_call_code.delta", { ...delta, ...hidden }),
  event("response.code_interpreter_call_code.done", { code: z.string(), ...inItem }),
  event("response.shell_call_command.added", { command: z.string(), ...command, ...atItem }),
  event("response.shell_call_command.delta", { ...command, ...delta, ...obfuscation, ...atItem }),
  event("response.shell_call_command.done", { command: z.string(), ...command, ...atItem }),
  event("response.shell_call_output_content.delta", {
    ...command,
    delta: z.object({ stderr: z.string().optional(), stdout: z.string().optional() }),
    ...inItem,
  }),
  event("response.shell_call_output_content.done", {
    ...command,
    item_id: z.string(),
    output: z.array(
      z.object({
        created_by: z.string().optional(),
        outcome: z.discriminatedUnion("type", [
          z.object({ type: z.literal("timeout") }),
          z.object({ type: z.literal("exit"), exit_code: z.int() }),
        ]),
        stderr: z.string(),
        stdout: z.string(),
      }),
    ),
    ...atItem,
  }),
  event("response.image_generation_call.partial_image", {
    background: z.string().optional(),
    item_id: z.string(),
    output_format: z.string().optional(),
    output_index: count,
    partial_image_b64: z.string(),
    partial_image_index: count,
    quality: z.string().optional(),
    sequence_number: count,
    size: z.string().optional(),
  }),
]);

/** The event that reports a failure. */
export const responseErrorEvent = z.object({
  type: z.literal("error"),
  error: z.object({
    type: z.string(),
    code: z.string().nullable(),
    message: z.string(),
    param: z.string().nullable(),
  }),
  sequence_number: count,
  stream_id: streamId,
});

/** The event with which OpenAI keeps a silent connection open. */
export const keepAliveEvent = z.object({
  type: z.literal("keepalive"),
  sequence_number: count,
  stream_id: streamId,
});

/** Every event that this server writes, by its type. */
export const writtenEvents: ReadonlyMap<unknown, z.ZodObject> = new Map<unknown, z.ZodObject>([
  ...responseEvents,
  ["error", responseErrorEvent],
  ["keepalive", keepAliveEvent],
]);

/** The events that show the whole response. */
export const lifecycleTypes: readonly string[] = [...responseEvents].flatMap(([type, schema]) =>
  "response" in schema.shape ? [String(type)] : [],
);

/** The events that end a stream. */
export const endTypes = ["response.completed", "response.incomplete", "response.failed", "error"] as const;

/** A text that is streamed in deltas. */
export interface StreamedText {
  /** Where the text is: in a content part, in a part of a summary, or the input of a call. */
  readonly list: "content" | "summary" | "input";
  /** The type of the part, or of the item of an input. */
  readonly type: string;
  /** The member of the `.done` event, and of the part or item, that has the whole text. */
  readonly member: string;
}

/** The texts that are streamed in deltas, by the name of their events without `.delta` and `.done`. */
export const streamedTexts: Readonly<Record<string, StreamedText>> = {
  "response.output_text": { list: "content", type: "output_text", member: "text" },
  "response.refusal": { list: "content", type: "refusal", member: "refusal" },
  "response.reasoning_text": { list: "content", type: "reasoning_text", member: "text" },
  "response.reasoning_summary_text": { list: "summary", type: "summary_text", member: "text" },
  "response.function_call_arguments": { list: "input", type: "function_call", member: "arguments" },
  "response.custom_tool_call_input": { list: "input", type: "custom_tool_call", member: "input" },
  "response.mcp_call_arguments": { list: "input", type: "mcp_call", member: "arguments" },
  "response.code_interpreter_call_code": { list: "input", type: "code_interpreter_call", member: "code" },
};
