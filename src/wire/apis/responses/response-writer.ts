import type { GeneratedPart, GeneratedRefusal, GeneratedText, Generation } from "../../core/accumulate.ts";
import type { JsonValue } from "../json-text.ts";
import type { AnswerContext } from "../port.ts";
import { incompleteReason } from "./errors.ts";
import { responseBodyText } from "./form.ts";
import { approvalItem, functionsItem, hostedCallItems } from "./hosted-items.ts";
import { annotationObject, callItem, callPrefix, emptyInput, messageItem, reasoningItem } from "./items.ts";
import type { MessagePart } from "./items.ts";
import type { ResponseOptions } from "./request-schema.ts";
import { ResponseObject } from "./response-object.ts";
import type { ItemStatus } from "./schema.ts";

/** Returns the body of a response that is not streamed. */
export function writeResponse(generation: Generation, context: AnswerContext, options: ResponseOptions): string {
  return responseBodyText(
    wholeResponseObject(generation, new ResponseObject(context, options, "body")),
    context.profile,
  );
}

/** Returns the whole response. A response has one choice. */
export function wholeResponseObject(generation: Generation, response: ResponseObject): JsonValue {
  response.identify(generation.source);
  for (const extra of generation.extras) response.passOn(extra);
  const [choice] = generation.choices;
  const { usage } = generation;
  const reason = choice?.finish ? incompleteReason(choice.finish.reason) : undefined;
  const compaction = response.compactionItem();
  if (compaction !== undefined) return response.at({ event: "completed", output: [compaction], usage });
  const output = itemsOf(choice?.parts ?? [], reason === undefined ? "completed" : "incomplete", response);
  return reason === undefined
    ? response.at({ event: "completed", output, usage })
    : response.at({ event: "incomplete", incompleteReason: reason, output, usage });
}

/** A message that further parts may belong to. */
interface GrowingMessage {
  /** The id that the source gave to the message. */
  readonly sourceId: string | undefined;
  readonly id: string;
  readonly phase: string | undefined;
  readonly parts: MessagePart[];
}

/** Returns the items of these parts. `last`: the status of the last one. */
function itemsOf(parts: readonly GeneratedPart[], last: ItemStatus, response: ResponseObject): JsonValue[] {
  const items: ((status: ItemStatus) => JsonValue)[] = [];
  let open: GrowingMessage | undefined;
  // An empty message is written if it ends an answer without text and calls (see `ResponseStreamWriter`).
  const hasAnswer = parts.some((part) => part.type === "tool-call" || (isOfMessage(part) && !isEmptyMessage(part)));
  const end = parts.findLast((part) => part.type !== "reasoning");
  const kept = !hasAnswer && end?.type === "text" && end.id !== undefined ? end : undefined;
  for (const part of parts) {
    if (part.type !== "text" && part.type !== "refusal") {
      const own = otherItems(part, response);
      if (own.length === 0) continue;
      open = undefined;
      items.push(...own);
      continue;
    }
    const content =
      part === kept ? { type: "text" as const, text: "", annotations: [], logprobs: [] } : messagePart(part, response);
    if (content === null) continue;
    const phase = part.type === "text" ? part.phase : undefined;
    if (open === undefined || open.sourceId !== part.id || open.phase !== phase) {
      const message = { sourceId: part.id, id: response.itemId("msg_", part.id), phase, parts: [] };
      open = message;
      items.push((status) => messageItem(message, status, message.parts, response.number));
    }
    open.parts.push(content);
  }
  return items.map((item, index) => item(index === items.length - 1 ? last : "completed"));
}

function isOfMessage({ type }: GeneratedPart): boolean {
  return type === "text" || type === "refusal";
}

function isEmptyMessage(part: GeneratedPart): boolean {
  if (part.type === "refusal") return part.refusal === "";
  return part.type === "text" && part.text === "" && part.annotations.length === 0 && part.logprobs === null;
}

/** Returns a part of a message, or null if the part is empty. */
function messagePart(part: GeneratedText | GeneratedRefusal, response: ResponseObject): MessagePart | null {
  if (isEmptyMessage(part)) return null;
  if (part.type === "refusal") return { type: "refusal", refusal: part.refusal };
  const { text } = part;
  const annotations = part.annotations.flatMap((annotation) => annotationObject(annotation) ?? []);
  return { type: "text", text, annotations, logprobs: response.showsLogprobs ? (part.logprobs ?? []) : [] };
}

type WritableItem = (status: ItemStatus) => JsonValue;

/** Returns the items of a part; none if it is empty. */
function otherItems(
  part: Exclude<GeneratedPart, GeneratedText | GeneratedRefusal>,
  response: ResponseObject,
): readonly WritableItem[] {
  switch (part.type) {
    case "reasoning": {
      const { text, summary, id: sourceId, state } = part;
      const isEmpty = text === "" && summary.length === 0;
      if (isEmpty && (sourceId ?? state) === undefined) return [];
      const id = response.itemId("rs_", sourceId);
      const reasoning = { texts: text === "" ? [] : [text], summary, state };
      return [() => reasoningItem(id, reasoning, response)];
    }
    case "tool-call": {
      const { id: callId, name, namespace, itemId, arguments: text, status: ended } = part;
      const kind = response.callKind(part.kind, name);
      const id = response.itemId(callPrefix(kind), itemId);
      const call = { id, callId, kind, ...response.callName(name, namespace) };
      const item: WritableItem = (status) => {
        // Arguments that are not an object may have been cut by the limit.
        const own = ended === "succeeded" ? "completed" : status;
        return callItem(call, own, text === "" && own === "completed" ? emptyInput(kind) : text);
      };
      const state = part.state && response.callState(id, part.state);
      if (!state) return [item];
      const stateId = response.itemId("rs_", undefined);
      return [() => reasoningItem(stateId, { texts: [], summary: [], state, callId }, response), item];
    }
    case "hosted-call": {
      return hostedCallItems(part, response).map((item) => () => item);
    }
    case "hosted-result":
      return [];
    case "hosted-functions":
      return [() => functionsItem(part, response)];
    case "hosted-approval":
      return [() => approvalItem(part, response)];
    case "item":
      // It was read from JSON.
      return part.dialect === "responses" ? [() => part.value as JsonValue] : [];
  }
}
