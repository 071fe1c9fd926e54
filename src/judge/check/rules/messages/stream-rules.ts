import { variantsOf } from "../../../../wire/apis/members.ts";
import { contentBlock, contentDelta, errorStatuses, streamEvent } from "../../../../wire/apis/messages/schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { atEnd, atFrame, atMember, shown } from "../place.ts";
import type { StreamView } from "../view.ts";
import { blockRules, messageUsageRules } from "./block-rules.ts";
import { errorShapeProblem, overflowProblem } from "./body-rules.ts";
import { messageEvents, type StreamEvent } from "./message-view.ts";
import { type Rules, notShown, on, whenAll } from "../rule.ts";

/* Rules about the events of a streamed message. Source: 316 recorded streams of 2024 to 2026. */

const failed = (view: StreamView) => messageEvents(view).errors.length > 0;
const hasBlocks = (view: StreamView) => messageEvents(view).blocks.length > 0;
const knownEvents = variantsOf(streamEvent);
/** Whether Anthropic's API has events of this type. */
export const isKnownEvent = (type: unknown): boolean => knownEvents.has(type);
const knownBlocks = variantsOf(contentBlock);
const knownDeltas = variantsOf(contentDelta);
/** Anthropic adds tools of its own more often than SDKs are published. */
const isKnownBlock = (type: unknown) =>
  knownBlocks.has(type) || (typeof type === "string" && type.endsWith("_tool_result"));

/** Rules about single events, and about errors. */
const eventRules: Rules<StreamView> = on(["messages"], {
  *"messages/event-name"(view) {
    for (const chunk of view.chunks) {
      const { type } = chunk.value;
      const name = chunk.frame.lines.find(({ field }) => field === "event")?.value;
      if (name === undefined) yield atFrame(chunk.frame, "an event without a name");
      else if (name !== type) yield atFrame(chunk.frame, `the event ${name} with data of type ${shown(type)}`);
    }
  },
  *"messages/known-types"(view) {
    const { events } = messageEvents(view);
    for (const { type, chunk } of events) {
      const { content_block: block, delta } = chunk.value;
      if (!isKnownEvent(type)) yield atMember(chunk, "type", `an event of type ${shown(type)}`);
      else if (type === "content_block_start" && isObject(block) && !isKnownBlock(block.type))
        yield atMember(chunk, "content_block", `a block of type ${shown(block.type)}`);
      else if (type === "content_block_delta" && isObject(delta) && !knownDeltas.has(delta.type))
        yield atMember(chunk, "delta", `a delta of type ${shown(delta.type)}`);
    }
  },
  *"messages/no-done"(view) {
    const frame = view.frames[view.done];
    if (frame) yield atFrame(frame, "[DONE]");
  },
  *"messages/stream-request-id"(view) {
    if (view.exchange.response.headers === null) return notShown;
    const { exchange } = view;
    if (!exchange.response.headers?.["request-id"]) yield { start: 0, end: 0, found: "no request-id" };
  },
  ...whenAll(failed, {
    *"messages/error-shape"(view) {
      for (const { chunk, name } of messageEvents(view).errors) {
        const found = name === "error" ? errorShapeProblem(chunk.value) : `an error named ${shown(name)}`;
        if (found !== undefined) yield atMember(chunk, "error", found);
      }
    },
    *"messages/error-last"(view) {
      const { events, errors: all } = messageEvents(view);
      const [first] = all;
      const next = first && events[events.indexOf(first) + 1];
      if (next) yield atFrame(next.chunk.frame, `${shown(next.type)} after an error`);
    },
    *"messages/error-type"(view) {
      for (const { chunk } of messageEvents(view).errors) {
        const { error } = chunk.value;
        if (isObject(error) && typeof error.type === "string" && !Object.hasOwn(errorStatuses, error.type))
          yield atMember(chunk, "error", `an error of type ${shown(error.type)}`);
      }
    },
    *"messages/error-overflow"(view) {
      for (const { chunk } of messageEvents(view).errors) {
        const { error } = chunk.value;
        const found = isObject(error) && typeof error.message === "string" ? overflowProblem(error.message) : undefined;
        if (found !== undefined) yield atMember(chunk, "message", found);
      }
    },
  }),
});

function at({ chunk }: StreamEvent, found: string) {
  return atFrame(chunk.frame, found);
}

/** Rules about the order of events: the start, the blocks one after another, the end. */
const orderRules: Rules<StreamView> = on(["messages"], {
  *"messages/start-first"(view) {
    const [first] = messageEvents(view).events;
    if (!first) yield atEnd(view.exchange.response.body, "no event");
    else if (first.type !== "message_start" && !messageEvents(view).errors.includes(first))
      yield at(first, `${shown(first.type)} first`);
  },
  *"messages/start-once"(view) {
    const [, ...again] = messageEvents(view).events.filter(({ type }) => type === "message_start");
    for (const event of again) yield at(event, "message_start again");
  },
  *"messages/start-empty"(view) {
    for (const { type, chunk } of messageEvents(view).events) {
      if (type !== "message_start") continue;
      const { message } = chunk.value;
      if (!isObject(message)) yield atMember(chunk, "message", `message is ${shown(message)}`);
      else if (!Array.isArray(message.content) || message.content.length > 0)
        yield atMember(chunk, "content", `content ${shown(message.content)}`);
      else if (message.stop_reason !== null && message.stop_reason !== undefined)
        yield atMember(chunk, "stop_reason", `stop_reason ${shown(message.stop_reason)}`);
    }
  },
  *"messages/block-order"(view) {
    if (!hasBlocks(view)) return notShown;
    let open: unknown;
    for (const event of messageEvents(view).events) {
      const { index } = event.chunk.value;
      if (event.type === "content_block_start") {
        if (open !== undefined) yield at(event, `block ${shown(index)} begins inside block ${shown(open)}`);
        open = index ?? null;
      } else if (event.type === "content_block_stop" && index === open) open = undefined;
    }
  },
  *"messages/block-index"(view) {
    if (!hasBlocks(view)) return notShown;
    for (const [position, { start }] of messageEvents(view).blocks.entries()) {
      const { index } = start.chunk.value;
      if (index !== position) yield atMember(start.chunk, "index", `index ${shown(index)} at place ${position}`);
    }
  },
  *"messages/block-open"(view) {
    const open = new Set<unknown>();
    for (const event of messageEvents(view).events) {
      const { index } = event.chunk.value;
      if (event.type === "content_block_start") open.add(index);
      else if (event.type === "content_block_delta" || event.type === "content_block_stop") {
        if (!open.has(index)) yield atMember(event.chunk, "index", `${event.type} of block ${shown(index)}`);
        if (event.type === "content_block_stop") open.delete(index);
      }
    }
  },
  *"messages/block-stop"(view) {
    if (!hasBlocks(view) || failed(view)) return notShown;
    const { blocks, endings } = messageEvents(view);
    const delta = endings.at(-1)?.chunk.value.delta;
    const isCut = isObject(delta) && delta.stop_reason === "max_tokens";
    for (const block of blocks) {
      if (isCut && block === blocks.at(-1) && block.value.type === "tool_use") continue;
      if (!block.stop) yield at(block.start, "a block without an end");
    }
  },
  *"messages/message-delta"(view) {
    if (failed(view)) return notShown;
    const { endings } = messageEvents(view);
    if (endings.length === 0) yield atEnd(view.exchange.response.body, "no message_delta");
    for (const { chunk } of endings)
      if (!isObject(chunk.value.delta)) yield atMember(chunk, "delta", `delta is ${shown(chunk.value.delta)}`);
  },
  *"messages/after-delta"(view) {
    if (messageEvents(view).endings.length === 0) return notShown;
    const { events } = messageEvents(view);
    const ended = events.findIndex(({ type }) => type === "message_delta");
    const late = events.slice(ended).find(({ type }) => type.startsWith("content_block_"));
    if (late) yield at(late, `${late.type} after message_delta`);
  },
  *"messages/message-stop"(view) {
    if (failed(view)) return notShown;
    if (!messageEvents(view).events.some(({ type }) => type === "message_stop"))
      yield atEnd(view.exchange.response.body, "no message_stop");
  },
  *"messages/stop-last"(view) {
    if (messageEvents(view).events.every(({ type }) => type !== "message_stop")) return notShown;
    const { events } = messageEvents(view);
    const next = events[events.findIndex(({ type }) => type === "message_stop") + 1];
    if (next) yield at(next, `${shown(next.type)} after message_stop`);
  },
});

/** Every rule about the stream of a message. */
export const messageStreamRules: Rules<StreamView> = {
  ...eventRules,
  ...orderRules,
  ...blockRules,
  ...messageUsageRules,
};
