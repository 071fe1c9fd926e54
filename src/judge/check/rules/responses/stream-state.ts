import { endTypes, lifecycleTypes, streamedTexts } from "../../../../wire/apis/responses/event-schema.ts";
import type { StreamedText } from "../../../../wire/apis/responses/event-schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { Chunk, Json, StreamView } from "../view.ts";

/** The endpoints of streams. */
export const httpAndSocket = ["responses", "response-socket"] as const;

/** The events of a stream of the Responses API, grouped by item and part. */
export interface ResponseStreamState {
  readonly events: readonly StreamedEvent[];
  /** In the order of their first events. */
  readonly items: readonly StreamedItem[];
  /** The events that show the whole response: created, in_progress, completed … */
  readonly lifecycle: readonly StreamedEvent[];
  /** The first event that ends the response. */
  readonly end: StreamedEvent | undefined;
}

export interface StreamedEvent {
  readonly chunk: Chunk;
  readonly type: string;
  readonly value: Json;
}

export interface StreamedItem {
  /** `output_index`; undefined where its events have none. */
  readonly place: number | undefined;
  /** All events of the item in order, including `added` and `done`. */
  readonly events: readonly StreamedEvent[];
  readonly added: readonly StreamedEvent[];
  readonly done: readonly StreamedEvent[];
  readonly parts: readonly StreamedPart[];
}

/** A text of an item: a content part, a part of a summary, or the input of a call. */
export interface StreamedPart {
  readonly list: PartList;
  readonly index: number;
  /** `response.content_part.added`. */
  readonly added: readonly StreamedEvent[];
  readonly deltas: readonly StreamedEvent[];
  /** `response.output_text.done` and its like. */
  readonly textDone: readonly StreamedEvent[];
  /** `response.content_part.done`. */
  readonly done: readonly StreamedEvent[];
}

export type PartList = StreamedText["list"];

/** Returns the text that an event of this type streams, or `undefined` for other events. */
export function streamedTextOf(type: string): StreamedText | undefined {
  return /\.(delta|done)$/.test(type) ? streamedTexts[type.slice(0, type.lastIndexOf("."))] : undefined;
}

/** True for an event that ends the response. */
export function isEnd(type: unknown): boolean {
  return (endTypes as readonly unknown[]).includes(type);
}

const partLists: Readonly<Record<string, PartList>> = {
  "response.content_part": "content",
  "response.reasoning_summary_part": "summary",
};

const states = new WeakMap<StreamView, ResponseStreamState>();

/** Returns the state of a stream. It is computed once for a view. */
export function streamState(view: StreamView): ResponseStreamState {
  let state = states.get(view);
  if (!state) states.set(view, (state = stateOf(view)));
  return state;
}

function stateOf(view: StreamView): ResponseStreamState {
  const events = view.chunks.map((chunk) => ({ chunk, type: String(chunk.value.type), value: chunk.value }));
  const items = new Map<unknown, MutableItem>();
  for (const event of events) {
    const key = keyOf(event);
    if (key === undefined) continue;
    let item = items.get(key);
    if (!item) items.set(key, (item = { ...emptyItem(), place: typeof key === "number" ? key : undefined }));
    addEvent(item, event);
  }
  return {
    events,
    items: [...items.values()].map(({ parts, ...item }) => ({ ...item, parts: [...parts.values()] })),
    lifecycle: events.filter(({ type }) => lifecycleTypes.includes(type)),
    end: events.find(({ type }) => isEnd(type)),
  };
}

/** Returns what identifies the item of an event: its index, or its id if the event has no index. */
function keyOf({ type, value }: StreamedEvent): unknown {
  const isOfItem = "output_index" in value || "item_id" in value || /\.output_item\.|\.delta$/.test(type);
  if (!isOfItem || lifecycleTypes.includes(type)) return undefined;
  if (Number.isInteger(value.output_index)) return value.output_index;
  const id = value.item_id ?? (isObject(value.item) ? (value.item.id ?? value.item.call_id) : undefined);
  return typeof id === "string" ? id : "";
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] extends readonly (infer Element)[] ? Element[] : T[Key] };
type MutablePart = Mutable<StreamedPart>;
type MutableItem = Mutable<Omit<StreamedItem, "parts">> & { parts: Map<string, MutablePart> };

function emptyItem(): MutableItem {
  return { place: undefined, events: [], added: [], done: [], parts: new Map() };
}

function addEvent(item: MutableItem, event: StreamedEvent): void {
  item.events.push(event);
  const { type } = event;
  if (type === "response.output_item.added") item.added.push(event);
  if (type === "response.output_item.done") item.done.push(event);
  const step = type.slice(type.lastIndexOf(".") + 1);
  const list = partLists[type.slice(0, type.lastIndexOf("."))];
  if (list && (step === "added" || step === "done")) partOf(item, event, list)[step].push(event);
  const text = streamedTextOf(type);
  if (text) partOf(item, event, text.list)[step === "delta" ? "deltas" : "textDone"].push(event);
}

function partOf({ parts }: MutableItem, { value }: StreamedEvent, list: PartList): MutablePart {
  const number = list === "summary" ? value.summary_index : value.content_index;
  const index = list !== "input" && typeof number === "number" ? number : 0;
  const key = `${list} ${index}`;
  let part = parts.get(key);
  if (!part) parts.set(key, (part = { list, index, added: [], deltas: [], textDone: [], done: [] }));
  return part;
}

/** Returns the concatenated deltas of a part. */
export function deltasOf({ deltas }: StreamedPart): string {
  return deltas.map(({ value }) => (typeof value.delta === "string" ? value.delta : "")).join("");
}

/** Returns the item of an event, or {} if it has none. */
export function itemIn(event: StreamedEvent | undefined): Json {
  return isObject(event?.value.item) ? event.value.item : {};
}

/** Returns the response of an event, or {} if it has none. */
export function responseIn(event: StreamedEvent | undefined): Json {
  return isObject(event?.value.response) ? event.value.response : {};
}

/** Whether a stream starts with its first event. A stream that is continued (`starting_after`) does not. */
export function fromStart({ exchange }: StreamView): boolean {
  return !exchange.request.path.includes("starting_after=");
}
