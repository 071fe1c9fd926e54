import type { GeneratedPart, GeneratedRefusal, GeneratedText, Generation } from "../../core/accumulate.ts";
import type { JsonValue } from "../json-text.ts";
import type { AnswerContext } from "../port.ts";
import { bodyText } from "./body-text.ts";
import { callPrefixes } from "./call-kind.ts";
import { incompleteReason } from "./incomplete-reason.ts";
import { annotationObject, callItem, emptyInput, messageItem, reasoningItem } from "./items.ts";
import type { ItemStatus, MessagePart } from "./items.ts";
import { ResponseFrame } from "./response-frame.ts";
import type { AskedResponse } from "./response-echo.ts";

/** The body of a response that is not streamed. */
export function writeResponse(generation: Generation, context: AnswerContext, asked: AskedResponse): string {
  return bodyText(responseOf(generation, new ResponseFrame(context, asked, "body")), context.profile);
}

/** The whole response. A response has one choice. */
export function responseOf(generation: Generation, frame: ResponseFrame): JsonValue {
  frame.identify(generation.source);
  const [choice] = generation.choices;
  const { usage } = generation;
  const reason = choice?.finish ? incompleteReason(choice.finish.reason) : undefined;
  const output = itemsOf(choice?.parts ?? [], reason === undefined ? "completed" : "incomplete", frame);
  return reason === undefined
    ? frame.response({ event: "completed", output, usage })
    : frame.response({ event: "incomplete", incompleteReason: reason, output, usage });
}

/** The items that these parts make. `last`: the status of the last one. */
function itemsOf(parts: readonly GeneratedPart[], last: ItemStatus, frame: ResponseFrame): JsonValue[] {
  const items: ((status: ItemStatus) => JsonValue)[] = [];
  let open: OpenMessage | undefined;
  for (const part of parts) {
    if (part.type !== "text" && part.type !== "refusal") {
      const item = otherItem(part, frame);
      if (item === null) continue;
      open = undefined;
      items.push(item);
      continue;
    }
    const spoken = spokenPart(part, frame);
    if (spoken === null) continue;
    const phase = part.type === "text" ? part.phase : undefined;
    if (open?.ownId !== part.id || open?.phase !== phase || open === undefined) {
      const message: OpenMessage = { ownId: part.id, id: frame.itemId("msg_", part.id), phase, parts: [] };
      open = message;
      items.push((status) => messageItem(message, status, message.parts, frame));
    }
    open.parts.push(spoken);
  }
  return items.map((item, index) => item(index === items.length - 1 ? last : "completed"));
}

/** A message that further parts may belong to. */
interface OpenMessage {
  /** The source's own id. */
  readonly ownId: string | undefined;
  readonly id: string;
  readonly phase: string | undefined;
  readonly parts: MessagePart[];
}

/** A part of a message; null: there is nothing in it, and no source says that it is there. */
function spokenPart(part: GeneratedText | GeneratedRefusal, { showsLogprobs }: ResponseFrame): MessagePart | null {
  if (part.type === "refusal") {
    return part.refusal === "" && part.id === undefined ? null : { type: "refusal", refusal: part.refusal };
  }
  const { text, id } = part;
  const annotations = part.annotations.flatMap((annotation) => annotationObject(annotation) ?? []);
  if (text === "" && id === undefined && annotations.length === 0 && part.logprobs === null) return null;
  return { type: "text", text, annotations, logprobs: showsLogprobs ? (part.logprobs ?? []) : [] };
}

function otherItem(
  part: Exclude<GeneratedPart, GeneratedText | GeneratedRefusal>,
  frame: ResponseFrame,
): ((status: ItemStatus) => JsonValue) | null {
  switch (part.type) {
    case "reasoning": {
      const { text, summary, id: ownId, signature, encrypted } = part;
      const isSeal = (ownId ?? signature ?? encrypted) !== undefined;
      if (text === "" && summary.length === 0 && !isSeal) return null;
      const id = frame.itemId("rs_", ownId);
      const thought = { texts: text === "" ? [] : [text], summary, signature, encrypted };
      return () => reasoningItem(id, thought, frame);
    }
    case "tool-call": {
      const { id: callId, name, namespace, itemId, arguments: text, status: ended } = part;
      const kind = frame.callKind(part.kind, name);
      const id = frame.itemId(callPrefixes[kind], itemId);
      const call = { id, callId, kind, ...frame.callName(name, namespace) };
      return (status) => {
        // Arguments that are not an object may have been cut by the limit.
        const own = ended === "succeeded" ? "completed" : status;
        return callItem(call, own, text === "" && own === "completed" ? emptyInput(kind) : text);
      };
    }
    case "item":
      // What a source of the same API said was read from JSON.
      return part.dialect === "responses" ? () => part.value as JsonValue : null;
  }
}
