import type {
  GeneratedCallPart,
  GeneratedFinish,
  GeneratedPart,
  GeneratedReasoning,
  Generation,
} from "../../core/accumulate.ts";
import type { Annotation, DialectJson, SourceIdentity, Usage } from "../../core/events.ts";
import { objectIn } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { ReasoningState, TurnState } from "../../core/turn-state.ts";
import type * as z from "zod";
import { inWireOrder, membersOf, orderedMembers, presenceOf } from "../members.ts";
import type { AnswerContext, AnswerSettings } from "../port.ts";
import type { Profile } from "../profile.ts";
import type { MessageDiagnosis } from "./diagnosis.ts";
import { messageForms } from "./form.ts";
import { ownId } from "../ids.ts";
import { functionsBlock, hostedResultBlock, HostedIds, HostedUsage, hostedUseBlock } from "./hosted-blocks.ts";
import { toolUseId } from "./ids.ts";
import { noNativeMembers, withNativeMembers } from "./native-members.ts";
import type { NativeMembers } from "./native-members.ts";
import * as schema from "./schema.ts";
import { charactersOf, estimatedUsage } from "../usage.ts";
import { openSeal } from "../turn-seal.ts";

/* Writes a whole message, and the members that a streamed message shares with it (see write-stream.ts). */

/** What a request says about the form of its answer. */
export interface MessageOptions {
  /** The server's id of the request, which an error in a stream contains. */
  readonly requestId: string;
  readonly reasoning: ReasoningDisplay;
  /** Estimates the tokens of the prompt for a source that does not count them. Without it, such an answer reports 0. */
  readonly estimatePrompt?: () => number;
  /** Present if the request has `diagnostics`, unless an upstream of this API diagnoses it. */
  readonly diagnosis?: MessageDiagnosis;
  /** What `context_management` cleared; absent if the request has none, or an upstream of this API manages the context. */
  readonly appliedEdits?: () => readonly JsonObject[];
}

/**
 * How reasoning is shown: with its text, as blocks with a signature only, or not at all.
 * Source: https://platform.claude.com/docs/en/build-with-claude/extended-thinking, `display`.
 */
export type ReasoningDisplay = "shown" | "omitted" | "hidden";

export interface MessageContext extends AnswerContext {
  readonly options: MessageOptions;
  /** The message's id, unless the source has sent an id in Anthropic's form. */
  readonly id: string;
}

/** Writes a whole message as compact JSON. A generation without any block has `content: []`. */
export function writeMessageResponse(generation: Generation, context: MessageContext): string {
  const { source, usage, extras, choices } = generation;
  const choice = choices.find(({ choice }) => choice === 0);
  let native = noNativeMembers;
  for (const extra of extras) native = withNativeMembers(native, extra);
  const hosted = new HostedUsage();
  for (const part of choice?.parts ?? []) if (part.type === "hosted-result") hosted.add(part);
  const ids = new HostedIds(context.random);
  const usages = { ...hosted.members, ...native.usage };
  const counted = usage ?? estimatedUsage(context.options.estimatePrompt, charactersOf(choice));
  const head = messageHead(context, source);
  const message = {
    ...unsetMembers(schema.message, context.profile),
    ...head,
    ...diagnosticsMember(context.options, head.id, usage),
    content: (choice?.parts ?? []).flatMap((part) => blocksOf(part, ids, context)),
    ...messageEnd(choice?.finish ?? null, typeof choice?.refusal === "string", native),
    usage: writeUsage(reportedUsage(counted, { native, options: context.options }), usages, context.settings),
    ...managedContext(context.options),
    ...native.message,
  };
  return JSON.stringify(inWireOrder(schema.message, message));
}

/** Returns the optional members that the answers of a profile always have, with their value in an answer that sets none: `null`. */
export function unsetMembers(described: z.ZodObject, { name: profile }: Profile): Readonly<Record<string, null>> {
  const unset = membersOf(described).filter((member) => !member.always && presenceOf(member, profile) === "always");
  return Object.fromEntries(unset.map(({ name }) => [name, null]));
}

/** Returns the member `context_management` of an answer, if its request has one. */
export function managedContext({ appliedEdits }: MessageOptions): { readonly context_management?: JsonObject } {
  return appliedEdits ? { context_management: { applied_edits: appliedEdits() } } : {};
}

/** Returns the member `diagnostics` of a message, if its request asks for it. Called once for a message. */
export function diagnosticsMember(
  { diagnosis }: MessageOptions,
  id: string,
  usage: Usage | undefined,
): { readonly diagnostics?: JsonObject | null } {
  return diagnosis ? { diagnostics: diagnosis.begin(id, usage?.promptTokens) } : {};
}

function blocksOf(part: GeneratedPart, ids: HostedIds, context: MessageContext): readonly JsonObject[] {
  if (part.type !== "tool-call") return [blockOf(part, ids, context)].filter((block) => block !== undefined);
  const id = writtenCallId(part.id, context);
  const call = {
    type: "tool_use",
    id,
    name: part.name,
    input: callInput(part.arguments),
    ...callMembers(part.native),
  };
  const isCarried = part.state && context.options.reasoning !== "hidden";
  return part.state && isCarried ? [redactedBlock({ state: part.state, callId: id }, context), call] : [call];
}

function blockOf(
  part: Exclude<GeneratedPart, GeneratedCallPart>,
  ids: HostedIds,
  context: MessageContext,
): JsonObject | undefined {
  switch (part.type) {
    case "text": {
      const citations = part.annotations.flatMap((annotation) => citationOf(annotation) ?? []);
      if (citations.length > 0) return { citations, type: "text", text: part.text };
      return part.text === "" ? undefined : { type: "text", text: part.text };
    }
    case "refusal":
      return part.refusal === "" ? undefined : { type: "text", text: part.refusal };
    case "reasoning":
      return thinkingBlock(part, context);
    case "hosted-call":
      return hostedUseBlock(part, callInput(part.arguments), ids);
    case "hosted-result":
      return hostedResultBlock(part, ids, context.turnSeal ?? openSeal);
    case "hosted-functions":
      return functionsBlock(part);
    case "hosted-approval":
      return undefined;
    case "item":
      return part.dialect === "messages" ? part.value : undefined;
  }
}

function thinkingBlock(part: GeneratedReasoning, context: MessageContext): JsonObject | undefined {
  const { state, id } = part;
  const { options } = context;
  if (options.reasoning === "hidden") return undefined;
  const text = part.text === "" ? part.summary.join("\n\n") : part.text;
  if (text === "" && state?.kind !== "signature") return state && redactedBlock({ state, id }, context);
  const isShown = options.reasoning === "shown";
  return {
    type: "thinking",
    thinking: isShown ? text : "",
    signature: signatureOf({ text: isShown ? "" : text, state, id }, context),
  };
}

/** Reasoning as a signature has it. */
export interface SignedReasoning {
  /** The text that the block does not show. */
  readonly text: string;
  readonly state: ReasoningState | undefined;
  readonly id: string | undefined;
}

/** The signature of a block with reasoning: its vendor's own, or one of this server, which contains what the block cannot show. */
export function signatureOf({ text, state, id }: SignedReasoning, { turnSeal = openSeal }: MessageContext): string {
  // A signature whose text the client does not get is sealed with it.
  if (state?.kind === "signature" && text === "") return state.value;
  return turnSeal.seal({
    ...(text !== "" && { text }),
    ...(state && { state }),
    ...(state && id !== undefined && { id }),
  });
}

/** A block without text, which clients send back and do not show: state of reasoning, or of a call that follows. */
export function redactedBlock(
  { state, id, callId }: { readonly state: TurnState; readonly id?: string | undefined; readonly callId?: string },
  { turnSeal = openSeal }: MessageContext,
): JsonObject {
  if (state.kind === "redacted") return { type: "redacted_thinking", data: state.value };
  const data = turnSeal.seal({
    state,
    ...(id !== undefined && { id }),
    ...(callId !== undefined && { callId }),
  });
  return { type: "redacted_thinking", data };
}

/** The members of a `tool_use` block after its input. */
export function callMembers(native: DialectJson | undefined): JsonObject {
  return { caller: schema.directCaller, ...(native?.dialect === "messages" && native.value) };
}

/** Returns the arguments of a call as an object. */
export function callInput(text: string): JsonObject {
  return text.trim() === "" ? {} : parsedInput(text);
}

/**
 * Returns JSON text as an object. Anthropic puts text that is not the JSON of an object into the member `INVALID_JSON`. Source:
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming.
 */
export function parsedInput(text: string): JsonObject {
  return objectIn(text) ?? { INVALID_JSON: text };
}

/** The members of a message before its content. */
export function messageHead(
  { profile, model, id }: MessageContext,
  source: SourceIdentity = {},
): { model: string; id: string; type: "message"; role: "assistant" } {
  const isDated = profile.resolvesModels && source.model?.startsWith(`${model}-`) === true;
  return {
    model: (isDated ? source.model : undefined) ?? model,
    id: ownId("msg_", source.id) ?? id,
    type: "message",
    role: "assistant",
  };
}

/** Returns the id of a call: the source's own if the form keeps it, else a new one. */
export function writtenCallId(id: string, { profile, random }: MessageContext): string {
  return messageForms[profile.name].callIds.test(id) ? id : toolUseId(random);
}

/**
 * Returns an annotation as a citation: unchanged if it came from this API, as a search result if it names a page, and `undefined` if
 * Anthropic has no form for it.
 */
export function citationOf({ native, url, title, citedText }: Annotation): JsonObject | undefined {
  if (native?.dialect === "messages") return native.value;
  if (url === undefined) return undefined;
  return {
    type: "web_search_result_location",
    cited_text: citedText ?? "",
    url,
    title: title ?? null,
    encrypted_index: "",
  };
}

/** The members that say why a message ended. */
export interface MessageEnd {
  readonly stop_reason: string;
  readonly stop_sequence: string | null;
  readonly stop_details: unknown;
}

/** `refused`: the model has refused in a part of its own. Source: https://platform.claude.com/docs/en/api/handling-stop-reasons. */
export function messageEnd(finish: GeneratedFinish | null, refused: boolean, native: NativeMembers): MessageEnd {
  const { stopReason, stopDetails } = native;
  const stop_reason = stopReason ?? (refused && finish?.reason === "stop" ? "refusal" : stopReasonOf(finish));
  return {
    stop_reason,
    stop_sequence: stop_reason === "stop_sequence" ? (finish?.stop ?? null) : null,
    stop_details:
      stopDetails ?? (stop_reason === "refusal" ? { type: "refusal", category: null, explanation: null } : null),
  };
}

function stopReasonOf(finish: GeneratedFinish | null): string {
  switch (finish?.reason) {
    case "length":
      return finish.limit === "context" ? "model_context_window_exceeded" : "max_tokens";
    case "tool-calls":
    case "function-call":
      return "tool_use";
    case "content-filter":
      return "refusal";
    case "stop":
    case undefined:
      if (finish?.paused) return "pause_turn";
      return finish?.stop === undefined ? "end_turn" : "stop_sequence";
  }
}

/** The usage of a whole message. The tokens of the prompt are in three counts, which do not overlap. */
export function writeUsage(usage: Usage | undefined, native: JsonObject, settings: AnswerSettings): JsonObject {
  const { promptTokens = 0, completionTokens = 0, promptDetails = {}, completionDetails = {} } = usage ?? {};
  const read = promptDetails["cached_tokens"] ?? 0;
  const written = promptDetails["cache_write_tokens"] ?? 0;
  const thinking_tokens = completionDetails["reasoning_tokens"];
  return orderedMembers(schema.messageUsage, {
    ...native,
    // A source may count its cache in addition to the prompt.
    input_tokens: Math.max(0, promptTokens - read - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    cache_creation: native["cache_creation"] ?? {
      ephemeral_5m_input_tokens: written,
      ephemeral_1h_input_tokens: 0,
    },
    output_tokens: completionTokens,
    output_tokens_details: thinking_tokens === undefined ? undefined : { thinking_tokens },
    service_tier: native["service_tier"] ?? serviceTier(settings),
    inference_geo: native["inference_geo"] ?? "not_available",
  });
}

/**
 * Returns a usage as the message reports it. A count of 0 thinking tokens is left out if the request does not enable thinking.
 * An upstream of this API may send that count for every request (`native`).
 */
export function reportedUsage(
  usage: Usage | undefined,
  { native, options }: { readonly native: NativeMembers; readonly options: MessageOptions },
): Usage | undefined {
  const { reasoning_tokens: thinking, ...others } = usage?.completionDetails ?? {};
  const isReported = options.reasoning !== "hidden" || native.usage["output_tokens_details"] !== undefined;
  return usage === undefined || thinking !== 0 || isReported ? usage : { ...usage, completionDetails: others };
}

/** The usage of `message_delta`: the final values of the members that this event has. */
export function writeDeltaUsage(usage: Usage | undefined, native: JsonObject, settings: AnswerSettings): JsonObject {
  return orderedMembers(schema.messageDeltaUsage, writeUsage(usage, native, settings));
}

/** `default` is OpenAI's name for the tier that Anthropic calls `standard`. */
function serviceTier({ serviceTier: tier = "default" }: AnswerSettings): string {
  return tier === "default" ? "standard" : tier;
}
