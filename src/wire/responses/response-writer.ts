import type { GeneratedPart, Generation } from "../../generation/accumulate.ts";
import { jsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import type { AnswerContext } from "../port.ts";
import { incompleteReason } from "./incomplete-reason.ts";
import { annotationObject, callItem, messageItem, reasoningItem } from "./items.ts";
import type { ItemStatus } from "./items.ts";
import { LiveFrame } from "./live-frame.ts";
import { pythonJson } from "./python-json.ts";
import type { AskedResponse } from "./response-echo.ts";
import type { MessagePart, ResponseFrame } from "./response-frame.ts";

/** The body of a response that is not streamed. Profile `exact`: as Python writes JSON; `lean`: compact. */
export function writeResponse(generation: Generation, context: AnswerContext, asked: AskedResponse): string {
  const value = responseOf(generation, new LiveFrame(context, asked, "body"));
  return context.profile.name === "exact" ? pythonJson(value) : jsonText(value);
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
  let open: { readonly id: string | undefined; readonly phase: string | undefined; readonly parts: MessagePart[] } | null = null;
  for (const part of parts) {
    const spoken = spokenPart(part, frame);
    if (spoken === null && (part.type === "text" || part.type === "refusal")) continue;
    if (spoken === null) {
      const item = otherItem(part, frame);
      if (item === null) continue;
      open = null;
      items.push(item);
      continue;
    }
    const { id: ownId, phase } = part as { readonly id?: string; readonly phase?: string };
    if (open?.id !== ownId || open?.phase !== phase || open === null) {
      const message = { id: frame.itemId("msg_", ownId), phase };
      const all: MessagePart[] = [];
      open = { id: ownId, phase, parts: all };
      items.push((status) => messageItem(message, status, all, frame));
    }
    open.parts.push(spoken);
  }
  return items.map((item, index) => item(index === items.length - 1 ? last : "completed"));
}

/** A part of a message; null: it is none, or there is nothing in it and no source says that it is there. */
function spokenPart(part: GeneratedPart, { showsLogprobs }: ResponseFrame): MessagePart | null {
  if (part.type === "refusal") {
    return part.refusal === "" && part.id === undefined ? null : { type: "refusal", refusal: part.refusal };
  }
  if (part.type !== "text") return null;
  const { text, id } = part;
  const annotations = part.annotations.flatMap((annotation) => annotationObject(annotation) ?? []);
  if (text === "" && id === undefined && annotations.length === 0 && part.logprobs === null) return null;
  return { type: "text", text, annotations, logprobs: showsLogprobs ? (part.logprobs ?? []) : [] };
}

function otherItem(part: GeneratedPart, frame: ResponseFrame): ((status: ItemStatus) => JsonValue) | null {
  switch (part.type) {
    case "reasoning": {
      const { text, summary, id: ownId, signature, encrypted } = part;
      const isSeal = (ownId ?? signature ?? encrypted) !== undefined;
      if (text === "" && summary.length === 0 && !isSeal) return null;
      const id = frame.itemId("rs_", ownId);
      const thought = { id, texts: text === "" ? [] : [text], summary, signature, encrypted };
      return () => reasoningItem(id, thought, "output", frame);
    }
    case "tool-call": {
      const { id: callId, kind, name, namespace, itemId, arguments: text, status: ended } = part;
      const id = frame.itemId(kind === "custom" ? "ctc_" : "fc_", itemId);
      const call = { id, callId, kind, ...frame.callName(name, namespace) };
      return (status) => callItem(call, ended === null ? status : "completed", text);
    }
    case "item":
      // What a source of the same API said was read from JSON.
      return part.dialect === "responses" ? () => part.value as JsonValue : null;
    case "text":
    case "refusal":
      return null;
  }
}
