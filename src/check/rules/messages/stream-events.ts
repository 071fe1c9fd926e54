import { isObject } from "../../../core/json.ts";
import type { Chunk, Json, StreamView } from "../view.ts";

/** One event of a streamed message. */
export interface StreamEvent {
  readonly chunk: Chunk;
  /** What its `event:` line says; undefined without one. */
  readonly name: string | undefined;
  /** What its data says that it is, else its name; "" where neither does. */
  readonly type: string;
}

/** A block, put together as clients do it: by its index. */
export interface StreamedBlock {
  readonly start: StreamEvent;
  /** `content_block`, as it began. */
  readonly value: Json;
  readonly deltas: readonly StreamedDelta[];
  readonly stop: StreamEvent | undefined;
}

export interface StreamedDelta {
  readonly event: StreamEvent;
  readonly value: Json;
}

/** A streamed message taken apart. */
export interface MessageEvents {
  /** All but pings. */
  readonly events: readonly StreamEvent[];
  readonly blocks: readonly StreamedBlock[];
  readonly errors: readonly StreamEvent[];
  /** `message_delta`: how the message ended. */
  readonly endings: readonly StreamEvent[];
}

const made = new WeakMap<StreamView, MessageEvents>();

/** Made once for all rules. */
export function messageEvents(view: StreamView): MessageEvents {
  let events = made.get(view);
  if (!events) made.set(view, (events = takenApart(view)));
  return events;
}

function takenApart(view: StreamView): MessageEvents {
  const events = view.chunks.map(eventOf).filter(({ type }) => type !== "ping");
  const blocks: { start: StreamEvent; value: Json; deltas: StreamedDelta[]; stop: StreamEvent | undefined }[] = [];
  const byIndex = new Map<unknown, (typeof blocks)[number]>();
  for (const event of events) {
    const { index, content_block: value, delta } = event.chunk.value;
    const block = byIndex.get(index);
    if (event.type === "content_block_start") {
      const begun = { start: event, value: isObject(value) ? value : {}, deltas: [], stop: undefined };
      blocks.push(begun);
      byIndex.set(index, begun);
    } else if (event.type === "content_block_delta") {
      block?.deltas.push({ event, value: isObject(delta) ? delta : {} });
    } else if (event.type === "content_block_stop" && block) block.stop ??= event;
  }
  return {
    events,
    blocks,
    errors: events.filter(isError),
    endings: events.filter(({ type }) => type === "message_delta"),
  };
}

function eventOf(chunk: Chunk): StreamEvent {
  const name = chunk.frame.lines.find(({ field }) => field === "event")?.value;
  const { type } = chunk.value;
  return { chunk, name, type: typeof type === "string" ? type : (name ?? "") };
}

/** Whatever its form: in Anthropic's it has a type and a name. */
function isError({ type, name, chunk }: StreamEvent): boolean {
  return type === "error" || name === "error" || "error" in chunk.value;
}

/** The text of a delta's member; "" where it is none. */
export function textIn(value: Json, member: string): string {
  const text = value[member];
  return typeof text === "string" ? text : "";
}
