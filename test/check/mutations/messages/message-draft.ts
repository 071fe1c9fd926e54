import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";
import { type DraftMutation, onPart, onText as onDraftText } from "../draft-mutation.ts";

export type Json = Record<string, unknown>;

/** A streamed message taken apart so that a mutation can change it. */
export interface MessageDraft {
  request: Json | undefined;
  headers: Record<string, string> | null;
  events: DraftEvent[];
  complete: boolean;
  /** Applied to the text of the body at the end. */
  rewrite?: (body: string) => string;
}

export interface DraftEvent {
  /** Of its `event:` line; null for none. */
  name: string | null;
  data: Json;
  /** The spaces before its last brace. */
  spaces: number;
}

export function messageDraftOf({ request, response }: Exchange): MessageDraft {
  const frames = response.body.split("\n\n").filter(Boolean);
  return {
    request: structuredClone(request.body) as Json | undefined,
    headers: response.headers && { ...response.headers },
    events: frames.map((frame) => {
      const [, name = "", data = "", pad = ""] = /^event: (.*)\ndata: (.*?)( *)\}$/.exec(frame) ?? [];
      return { name, data: JSON.parse(`${data}}`) as Json, spaces: pad.length };
    }),
    complete: response.complete,
  };
}

export function messageExchangeOf({ request, headers, events, complete, rewrite }: MessageDraft): Exchange {
  const text = events.map(frameOf).join("");
  return {
    endpoint: "messages",
    request: { method: "POST", path: "/v1/messages", ...(request && { body: request }) },
    response: { status: 200, headers, body: rewrite ? rewrite(text) : text, complete },
  };
}

function frameOf({ name, data, spaces }: DraftEvent): string {
  const json = data.type === "ping" ? '{"type": "ping"}' : JSON.stringify(data);
  return `${name === null ? "" : `event: ${name}\n`}data: ${json.slice(0, -1)}${" ".repeat(spaces)}}\n\n`;
}

export function ofType(draft: MessageDraft, type: string): DraftEvent[] {
  return draft.events.filter(({ data }) => data.type === type);
}

export function hasFailed(draft: MessageDraft): boolean {
  return ofType(draft, "error").length > 0;
}

/** The block of a start. */
export function blockOf({ data }: DraftEvent): Json {
  return data.content_block as Json;
}

export function deltaOf({ data }: DraftEvent): Json {
  return data.delta as Json;
}

/** Starts of blocks of a type. */
export function starts(draft: MessageDraft, ...types: string[]): DraftEvent[] {
  return ofType(draft, "content_block_start").filter((event) => types.includes(String(blockOf(event).type)));
}

/** Deltas of a type. */
export function deltas(draft: MessageDraft, ...types: string[]): DraftEvent[] {
  return ofType(draft, "content_block_delta").filter((event) => types.includes(String(deltaOf(event).type)));
}

/** The stop of the block that this starts. */
export function stopOf(draft: MessageDraft, { data }: DraftEvent): DraftEvent | undefined {
  return ofType(draft, "content_block_stop").find((event) => event.data.index === data.index);
}

export function made(type: string, members: Json = {}): DraftEvent {
  return { name: type, data: { type, ...members }, spaces: 0 };
}

export function insertAfter(draft: MessageDraft, event: DraftEvent, ...added: DraftEvent[]): void {
  draft.events.splice(draft.events.indexOf(event) + 1, 0, ...added);
}

export function insertBefore(draft: MessageDraft, event: DraftEvent, ...added: DraftEvent[]): void {
  draft.events.splice(draft.events.indexOf(event), 0, ...added);
}

export function remove(draft: MessageDraft, event: DraftEvent): void {
  draft.events.splice(draft.events.indexOf(event), 1);
}

export type MessageMutation = DraftMutation<MessageDraft>;

/** Changes one event of those that fit. */
export const onEvent: typeof onPart<MessageDraft, DraftEvent> = onPart;

/** Rewrites the text of the body. */
export function onText(
  rule: string,
  name: string,
  rewrite: (body: string) => string,
  fits: (draft: MessageDraft) => boolean = () => true,
): MessageMutation {
  return onDraftText(rule, name, fits, rewrite);
}
