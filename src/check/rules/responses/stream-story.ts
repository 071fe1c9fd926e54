import { isObject } from "../../../core/json.ts";
import type { Chunk, Json, StreamView } from "../view.ts";

/** A stream of the Responses API, taken apart by what its events speak of. */
export interface StreamStory {
  readonly events: readonly StreamedEvent[];
  /** In the order in which they are first heard of. */
  readonly items: readonly StreamedItem[];
  /** Those that show the whole response: created, in_progress, completed … */
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
  /** All that is said of it, in order, its `added` and `done` among them. */
  readonly events: readonly StreamedEvent[];
  readonly added: readonly StreamedEvent[];
  readonly done: readonly StreamedEvent[];
  readonly parts: readonly StreamedPart[];
}

/** A text within an item: a content part, a part of a summary, or the input of a call, which is a part of its own. */
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

export type PartList = "content" | "summary" | "input";

/** What is streamed in deltas, by the name of its events without `.delta`. */
export interface TextKind {
  readonly list: PartList;
  /** The type of the part; of an input: of the item. */
  readonly type: string;
  /** The member that has the whole text, in `….done` and in the part or item. */
  readonly member: string;
}

export const textKinds: Readonly<Record<string, TextKind>> = {
  "response.output_text": { list: "content", type: "output_text", member: "text" },
  "response.refusal": { list: "content", type: "refusal", member: "refusal" },
  "response.reasoning_text": { list: "content", type: "reasoning_text", member: "text" },
  "response.reasoning_summary_text": { list: "summary", type: "summary_text", member: "text" },
  "response.function_call_arguments": { list: "input", type: "function_call", member: "arguments" },
  "response.custom_tool_call_input": { list: "input", type: "custom_tool_call", member: "input" },
};

/** What an event of this type streams; undefined for other events. */
export function textKindOf(type: string): TextKind | undefined {
  return /\.(delta|done)$/.test(type) ? textKinds[type.slice(0, type.lastIndexOf("."))] : undefined;
}

const partLists: Readonly<Record<string, PartList>> = {
  "response.content_part": "content",
  "response.reasoning_summary_part": "summary",
};

export const lifecycleTypes: ReadonlySet<string> = new Set(
  ["created", "queued", "in_progress", "completed", "incomplete", "failed"].map((name) => `response.${name}`),
);
export const endTypes: ReadonlySet<string> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "error",
]);

const stories = new WeakMap<StreamView, StreamStory>();

/** Told once for a view, however many rules ask. */
export function storyOf(view: StreamView): StreamStory {
  let story = stories.get(view);
  if (!story) stories.set(view, (story = told(view)));
  return story;
}

function told(view: StreamView): StreamStory {
  const events = view.chunks.map((chunk) => ({ chunk, type: String(chunk.value.type), value: chunk.value }));
  const items = new Map<unknown, MutableItem>();
  for (const event of events) {
    const key = keyOf(event);
    if (key === undefined) continue;
    let item = items.get(key);
    if (!item) items.set(key, (item = { ...emptyItem(), place: typeof key === "number" ? key : undefined }));
    place(item, event);
  }
  return {
    events,
    items: [...items.values()].map(({ parts, ...item }) => ({ ...item, parts: [...parts.values()] })),
    lifecycle: events.filter(({ type }) => lifecycleTypes.has(type)),
    end: events.find(({ type }) => endTypes.has(type)),
  };
}

/** What an event speaks of: the item at its place; where it names none, the one of its id. */
function keyOf({ type, value }: StreamedEvent): unknown {
  const isOfItem = "output_index" in value || "item_id" in value || /\.output_item\.|\.delta$/.test(type);
  if (!isOfItem || lifecycleTypes.has(type)) return undefined;
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

function place(item: MutableItem, event: StreamedEvent): void {
  item.events.push(event);
  const { type } = event;
  if (type === "response.output_item.added") item.added.push(event);
  if (type === "response.output_item.done") item.done.push(event);
  const step = type.slice(type.lastIndexOf(".") + 1);
  const list = partLists[type.slice(0, type.lastIndexOf("."))];
  if (list && (step === "added" || step === "done")) partOf(item, event, list)[step].push(event);
  const kind = textKindOf(type);
  if (kind) partOf(item, event, kind.list)[step === "delta" ? "deltas" : "textDone"].push(event);
}

function partOf({ parts }: MutableItem, { value }: StreamedEvent, list: PartList): MutablePart {
  const number = list === "summary" ? value.summary_index : value.content_index;
  const index = list !== "input" && typeof number === "number" ? number : 0;
  const key = `${list} ${index}`;
  let part = parts.get(key);
  if (!part) parts.set(key, (part = { list, index, added: [], deltas: [], textDone: [], done: [] }));
  return part;
}

/** The deltas of a part together. */
export function deltasOf({ deltas }: StreamedPart): string {
  return deltas.map(({ value }) => (typeof value.delta === "string" ? value.delta : "")).join("");
}

/** The item that an event carries; {} where there is none. */
export function itemIn(event: StreamedEvent | undefined): Json {
  return isObject(event?.value.item) ? event.value.item : {};
}

/** The response that an event carries; {} where there is none. */
export function responseIn(event: StreamedEvent | undefined): Json {
  return isObject(event?.value.response) ? event.value.response : {};
}

/** Whether a stream is told from its beginning; one that is continued (`starting_after`) shows only its rest. */
export function fromStart({ exchange }: StreamView): boolean {
  return !exchange.request.path.includes("starting_after=");
}
