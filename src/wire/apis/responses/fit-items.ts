import { isObject, type JsonObject, nonEmpty } from "../../core/json.ts";
import type { Message, ReasoningPart } from "../../core/message.ts";
import type { Passthrough } from "../../core/request.ts";
import { MessageStates } from "../adapt/message-states.ts";
import { isOn, type NoteAdaptation, type RequestBody, type ServerProfile } from "../adapt/server-profile.ts";

/*
 * The items of earlier turns, as a server takes them. OpenAI refuses reasoning that it has neither encrypted for this organization nor stored,
 * reasoning without the item that followed it, and an item that it has stored with reasoning without that reasoning
 * (https://platform.openai.com/docs/guides/reasoning#keeping-reasoning-items-in-context; vercel/ai#7099, VRSEN/agency-swarm#367). Servers of
 * open models check nothing, and read the text of reasoning (`reasoningHistory: true`).
 */

export interface ItemContext {
  readonly profile: ServerProfile;
  readonly note: NoteAdaptation;
  /** The server stores the response, as it has stored those before, so it knows their items by their ids. */
  readonly stores: boolean;
}

/** An item on its way, and where the client has it. `item`: absent if it was left out. */
interface FittedItem {
  readonly item?: unknown;
  readonly place?: string;
}

/** Returns the items of a conversation of another API, which were written from its messages. */
export function fitItems(items: readonly unknown[], context: ItemContext): readonly unknown[] {
  return withoutGaps(
    items,
    withoutOrphans(
      items.map((item, at) => ({ item, place: `input[${at}]` })),
      context,
    ),
    context,
  );
}

/**
 * Returns the client's items with the states that the messages have: those of other servers are left out, and those that the memory has restored
 * are added. Values that this server has sealed are replaced by what they contain. Returns `items` itself if nothing changes.
 */
export function fitOwnItems(
  items: readonly unknown[],
  passthrough: Passthrough,
  messages: readonly Message[],
  context: ItemContext,
): readonly unknown[] {
  const { sealed, hasOtherStates = false } = passthrough;
  const isTouched = sealed !== undefined || hasOtherStates;
  const states = isTouched ? new MessageStates(messages) : undefined;
  const leftOut = (place: string): FittedItem => {
    context.note("state-left-out", place);
    return { place };
  };
  const fitted = items.flatMap((item, at): FittedItem[] => {
    const place = `input[${at}]`;
    if (!isObject(item)) return [{ item, place }];
    const { id, call_id: callId, encrypted_content: sent } = item;
    if (isCall(item)) {
      // A stored call has its state there, which is a member of no API.
      const { encrypted_content: _, ...call } = item;
      const missing = states?.missingBefore(callId) ?? [];
      const added = missing.flatMap(({ part }) => writeReasoning(part, context) ?? []).map((one) => ({ item: one }));
      return [...added, { item: sent === undefined ? item : call, place }];
    }
    if (item["type"] !== "reasoning") return [{ item, place }];
    const opened = typeof sent === "string" ? sealed?.get(sent) : undefined;
    if (context.profile.reasoningHistory === true) {
      const text = textItem(item, opened?.text);
      return [
        text ? { item: isTouched || sent !== undefined || !hasContent(item) ? text : item, place } : leftOut(place),
      ];
    }
    const kind = opened ? opened.state?.kind : typeof sent === "string" ? "encrypted" : "stored";
    const isStored = kind === "stored";
    const value = states ? states.kept(sent ?? id, sealed) : (sent ?? id);
    if (!isStored && kind !== "encrypted") return [leftOut(place)];
    if (typeof value !== "string" || !isTaken(isStored, item, context, hasOtherStates)) return [leftOut(place)];
    if (isStored && typeof sent !== "string") return [{ item, place }];
    const { encrypted_content: _, ...bare } = item;
    if (isStored) return [{ item: { ...bare, id: value }, place }];
    return [{ item: value === sent ? item : { ...item, encrypted_content: value }, place }];
  });
  return withoutGaps(items, withoutOrphans(fitted, context), context, hasOtherStates);
}

/** Whether the server takes a reasoning item: one that it knows by its id (`isStored`), or one that it has encrypted. */
function isTaken(isStored: boolean, item: JsonObject, context: ItemContext, isMixed: boolean): boolean {
  const { profile, stores } = context;
  if (!isStored) return profile.encryptedReasoning !== false;
  // What OpenAI stores has no text. Of an unknown server, the client knows what it takes, unless it has it from another one.
  return hasContent(item) ? profile.reasoningHistory !== false && !isMixed : stores;
}

function hasContent({ content }: JsonObject): boolean {
  return Array.isArray(content) && content.length > 0;
}

/** Returns reasoning as an item, `undefined` if the server does not take it. */
export function writeReasoning(part: ReasoningPart, { profile, stores }: ItemContext): RequestBody | undefined {
  const { id, text, summary = [], state } = part;
  const item = {
    type: "reasoning",
    ...(id !== undefined && { id }),
    summary: summary.map((one) => ({ type: "summary_text", text: one })),
  };
  if (profile.reasoningHistory === true) return textItem(item, text);
  if (state?.kind === "stored") return stores ? { ...item, id: state.value } : undefined;
  if (state?.kind !== "encrypted" || profile.encryptedReasoning === false) return undefined;
  return { ...item, encrypted_content: state.value };
}

/**
 * Returns reasoning as servers of open models read it: llama.cpp demands a text, and no other content; vLLM reads one summary in place of the text,
 * and refuses encrypted content (tools/server/server-chat.cpp of ggml-org/llama.cpp, entrypoints/openai/responses/utils.py of
 * vllm-project/vllm). undefined: there is no text. `known`: the text, if it is not in the item.
 */
function textItem(item: JsonObject, known: string | undefined): JsonObject | undefined {
  const { encrypted_content: _, content, summary, ...rest } = item;
  const text = nonEmpty(known) ?? nonEmpty(textsOf(content).join("\n\n")) ?? textsOf(summary).join("\n\n");
  return text === "" ? undefined : { ...rest, summary: [], content: [{ type: "reasoning_text", text }] };
}

function textsOf(parts: unknown): readonly string[] {
  if (!Array.isArray(parts)) return [];
  return parts.flatMap((part: unknown) => (isObject(part) && typeof part["text"] === "string" ? [part["text"]] : []));
}

/** Leaves out reasoning that no item of the model follows, as it is left after a client has shortened a conversation. */
function withoutOrphans(items: readonly FittedItem[], { profile, note }: ItemContext): readonly FittedItem[] {
  if (profile.reasoningHistory === true) return items;
  let isFollowed = false;
  return items
    .toReversed()
    .map((fitted): FittedItem => {
      const { item, place } = fitted;
      if (!("item" in fitted)) return fitted;
      if (!isObject(item) || item["type"] !== "reasoning") isFollowed = isOfModel(item);
      else if (!isFollowed) {
        note("orphan-reasoning", place);
        return { ...(place !== undefined && { place }) };
      }
      return fitted;
    })
    .reverse();
}

/**
 * Returns the items that are not left out; `before` if they are the same ones. A stored item demands the reasoning that the server has stored
 * with it, but not without its id.
 */
function withoutGaps(
  before: readonly unknown[],
  items: readonly FittedItem[],
  { profile, note }: ItemContext,
  isMixed = false,
): readonly unknown[] {
  const mayStrip = profile.reasoningHistory !== true && isOn(profile, "item-id");
  const always = profile.itemIds === false || isMixed;
  let lacksReasoning = false;
  const result: unknown[] = [];
  const demands =
    profile.reasoningDemand !== undefined && profile.reasoningHistory === true && isOn(profile, "reasoning-demand");
  /** The last reasoning of the turn. */
  let reasoning: JsonObject | undefined;
  for (const fitted of items) {
    const { item, place } = fitted;
    if (!("item" in fitted)) {
      lacksReasoning = true;
      continue;
    }
    if (!isOfModel(item)) {
      lacksReasoning = false;
      reasoning = undefined;
    } else if (isObject(item) && item["type"] === "reasoning") reasoning = item;
    else if (demands && isCall(item) && result.at(-1) !== reasoning) {
      note("reasoning-demand", place);
      const { id: _, ...text } = reasoning ?? {
        type: "reasoning",
        summary: [],
        content: [{ type: "reasoning_text", text: "" }],
      };
      result.push(text);
    }
    if (!mayStrip || (!always && !lacksReasoning) || !hasFreeId(item)) {
      result.push(item);
      continue;
    }
    const { id: _, ...rest } = item;
    note("item-id", place && `${place}.id`);
    result.push(rest);
  }
  return result.length === before.length && result.every((item, at) => item === before[at]) ? before : result;
}

/** Whether an item has an id that it need not have. */
function hasFreeId(item: unknown): item is JsonObject {
  if (!isObject(item) || typeof item["id"] !== "string") return false;
  const { type, role } = item;
  return isCall(item) || (role === "assistant" && (type ?? "message") === "message");
}

function isCall(item: unknown): boolean {
  return isObject(item) && (item["type"] === "function_call" || item["type"] === "custom_tool_call");
}

/** Types of items, apart from messages and results, that the client has made. */
const ofClient: ReadonlySet<unknown> = new Set([
  "additional_tools",
  "compaction_trigger",
  "configuration_update",
  "mcp_approval_response",
]);

/** Whether the model has made an item, so that it may follow reasoning. References may mean such an item. */
function isOfModel(item: unknown): boolean {
  if (!isObject(item)) return false;
  const { type, role } = item;
  if (typeof role === "string") return role === "assistant";
  return typeof type !== "string" || !(type.endsWith("_output") || ofClient.has(type));
}
