import { writtenItems } from "../../../../wire/apis/responses/schema.ts";
import { responseEvents } from "../../../../wire/apis/responses/event-schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { textOfTokens } from "../violations.ts";
import { atFrame, atMember, shown } from "../place.ts";
import type { Json, StreamView } from "../view.ts";
import { isAttributed } from "./response-view.ts";
import {
  deltasOf,
  fromStart,
  httpAndSocket,
  itemIn,
  responseIn,
  type StreamedEvent,
  type StreamedItem,
  type StreamedPart,
  streamedTextOf,
  streamState,
} from "./stream-state.ts";
import { type Rules, notShown, on, whenAll } from "../rule.ts";

function hasItems(view: StreamView): boolean {
  return streamState(view).items.length > 0;
}

/** Whether the response has ended normally. A response that failed or was cut need not close its items. */
function hasEnded(view: StreamView): boolean {
  const type = streamState(view).end?.type;
  return type === "response.completed" || type === "response.incomplete";
}

/**
 * True for an item that a model writes. Items of tools that OpenAI runs differ: several may be open, and some are never done (recordings).
 */
function isWritten(item: Json): boolean {
  return writtenItems.has(item.type);
}

/** Returns the id that an event has for its item. */
function idIn(event: StreamedEvent): unknown {
  return "item" in event.value ? itemIn(event).id : event.value.item_id;
}

/** Whether events of a type say by an id which item they belong to. Those of a shell's commands have an index only. */
function hasItemId(type: string): boolean {
  const shape = responseEvents.get(type)?.shape;
  return shape === undefined || "item_id" in shape || "item" in shape;
}

/** The items of a response in its stream. Source: specification; 227 recorded streams of 2026; what clients read. */
export const itemRules: Rules<StreamView> = on(httpAndSocket, {
  ...whenAll(hasItems, {
    *"responses/item-place"(view) {
      for (const { events } of streamState(view).items) {
        for (const { chunk, type, value } of events)
          if (!Number.isInteger(value.output_index))
            yield atFrame(chunk.frame, `${type}: output_index is ${shown(value.output_index)}`);
      }
    },
    *"responses/item-once"(view) {
      for (const { added, done } of streamState(view).items)
        for (const event of [...added.slice(1), ...done.slice(1)])
          yield atFrame(event.chunk.frame, `${event.type} again at output_index ${shown(event.value.output_index)}`);
    },
    *"responses/item-one-at-a-time"(view) {
      let open: unknown;
      for (const { chunk, type, value } of streamState(view).events) {
        if (type === "response.output_item.done" && value.output_index === open) open = undefined;
        if (type !== "response.output_item.added" || !isWritten(itemIn({ chunk, type, value }))) continue;
        if (open !== undefined) yield atFrame(chunk.frame, `an item is added while that at ${shown(open)} is open`);
        open = value.output_index;
      }
    },
    *"responses/item-one-id"(view) {
      for (const { events } of streamState(view).items) {
        const [first] = events;
        const id = first && idIn(first);
        for (const event of events) {
          const own = idIn(event);
          if (own === undefined && !hasItemId(event.type)) continue;
          if (typeof own !== "string" || own === "")
            yield atFrame(event.chunk.frame, `${event.type}: id is ${shown(own)}`);
          else if (typeof id === "string" && own !== id)
            yield atMember(
              event.chunk,
              "item" in event.value ? "id" : "item_id",
              `id ${shown(own)} after ${shown(id)}`,
            );
        }
      }
    },
    *"responses/item-same"(view) {
      for (const { added, done } of streamState(view).items) {
        const [begun, ended] = [itemIn(added[0]), itemIn(done[0])];
        if (!added[0] || !done[0]) continue;
        for (const member of ["type", "call_id", "name", "namespace"])
          if (begun[member] !== ended[member])
            yield atMember(done[0].chunk, member, `${member} ${shown(ended[member])} after ${shown(begun[member])}`);
      }
    },
    *"responses/item-begins-empty"(view) {
      for (const { added, parts } of streamState(view).items) {
        // Without deltas, the item may be added whole.
        if (!parts.some(({ deltas }) => deltas.length > 0)) continue;
        for (const event of added) {
          const item = itemIn(event);
          for (const member of ["content", "summary", "arguments", "input"]) {
            const value = item[member];
            const isEmpty = value === undefined || value === null || (value as { length?: unknown }).length === 0;
            if (!isEmpty) yield atMember(event.chunk, member, `${member} is ${shown(value)}`);
          }
        }
      }
    },
    *"responses/item-status"(view) {
      for (const { added, done } of streamState(view).items) {
        for (const event of [...added, ...done]) {
          const { type, status } = itemIn(event);
          if (!/^(message|function_call|custom_tool_call)$/.test(String(type))) continue;
          const legal = added.includes(event) ? ["in_progress"] : ["completed", "incomplete"];
          if (!legal.includes(String(status)))
            yield atMember(event.chunk, "status", `status ${shown(status)} in ${event.type}`);
        }
      }
    },
  }),
  *"responses/item-added"(view) {
    if (!hasItems(view) || !fromStart(view)) return notShown;
    for (const { events } of streamState(view).items) {
      const [first] = events;
      if (first && first.type !== "response.output_item.added")
        yield atFrame(first.chunk.frame, `${first.type} of an item that was not added`);
    }
  },
  *"responses/item-order"(view) {
    if (!hasItems(view) || !fromStart(view)) return notShown;
    const placed = streamState(view).items.filter(({ place }) => place !== undefined);
    for (const [due, { place, events }] of placed.entries())
      if (place !== due && events[0])
        yield atMember(events[0].chunk, "output_index", `output_index ${place} instead of ${due}`);
  },
  *"responses/item-done"(view) {
    if (!hasItems(view) || !hasEnded(view)) return notShown;
    for (const { added, done, events } of streamState(view).items) {
      const [begin] = [...added, ...events];
      if (added[0] && !isWritten(itemIn(added[0]))) continue;
      const [end] = done;
      const late = end && events[events.indexOf(end) + 1];
      if (!end && begin) yield atFrame(begin.chunk.frame, "an item that is never done");
      if (late) yield atFrame(late.chunk.frame, `${late.type} after the item was done`);
    }
  },
  *"responses/item-output"(view) {
    if (!hasEnded(view) || !fromStart(view)) return notShown;
    const { items, end } = streamState(view);
    if (!end || isAttributed(responseIn(end))) return;
    const { output: list } = responseIn(end);
    const output = (Array.isArray(list) ? list.filter(isObject) : []).filter(isWritten);
    const done = items
      .flatMap((item) => item.done.slice(0, 1))
      .map(itemIn)
      .filter(isWritten);
    if (output.length !== done.length) {
      yield atMember(end.chunk, "output", `${output.length} items in output, ${done.length} were done`);
      return;
    }
    for (const [at, item] of done.entries()) {
      const last = output[at] ?? {};
      const member = ["type", "id", "call_id", "name", "arguments", "input", "status"].find(
        (name) => last[name] !== item[name],
      );
      if (member !== undefined)
        yield atMember(
          end.chunk,
          "output",
          `output[${at}].${member} is ${shown(last[member])}, was ${shown(item[member])}`,
        );
      else if (textIn(last) !== textIn(item))
        yield atMember(end.chunk, "output", `output[${at}] says ${shown(textIn(last))}, was ${shown(textIn(item))}`);
    }
  },
});

/** Returns the text of an item's parts. */
function textIn({ content, summary }: Json): string {
  const parts = [content, summary].flatMap((list) => (Array.isArray(list) ? list.filter(isObject) : []));
  return parts.map((part) => String(part.text ?? part.refusal ?? "")).join("\n");
}

interface PartOfItem {
  readonly item: StreamedItem;
  readonly part: StreamedPart;
}

function partsOf(view: StreamView): readonly PartOfItem[] {
  return streamState(view).items.flatMap((item) => item.parts.map((part) => ({ item, part })));
}

function hasParts(view: StreamView): boolean {
  return partsOf(view).length > 0;
}

/** Returns the deltas of a part and the ends of its text. */
function textEvents({ deltas, textDone }: StreamedPart): readonly StreamedEvent[] {
  return [...deltas, ...textDone];
}

/** The parts of items in a stream. Source: specification; 227 recorded streams of 2026; what clients read. */
export const partRules: Rules<StreamView> = on(httpAndSocket, {
  *"responses/part-added"(view) {
    if (!fromStart(view) || !partsOf(view).some(({ part }) => part.list !== "input")) return notShown;
    for (const { item, part } of partsOf(view)) {
      if (part.list === "input") continue;
      const own = new Set([...part.added, ...textEvents(part), ...part.done]);
      const first = item.events.find((event) => own.has(event));
      const again = part.added[1];
      if (first && !part.added.includes(first))
        yield atFrame(first.chunk.frame, `${first.type} of a part that was not added`);
      if (again) yield atFrame(again.chunk.frame, `${again.type} again at index ${part.index}`);
    }
  },
  *"responses/part-index"(view) {
    if (!fromStart(view) || !partsOf(view).some(({ part }) => part.list !== "input")) return notShown;
    for (const { parts } of streamState(view).items) {
      for (const list of ["content", "summary"] as const) {
        const own = parts.filter((part) => part.list === list);
        for (const [due, part] of own.entries()) {
          const [first] = [...part.added, ...textEvents(part), ...part.done];
          if (part.index !== due && first)
            yield atMember(first.chunk, `${list}_index`, `${list}_index ${part.index} instead of ${due}`);
        }
      }
    }
  },
  *"responses/part-kind"(view) {
    if (!hasParts(view)) return notShown;
    for (const { item, part } of partsOf(view)) {
      const added = part.added[0]?.value.part;
      const type = part.list === "input" ? itemIn(item.added[0]).type : isObject(added) ? added.type : undefined;
      for (const event of textEvents(part)) {
        const kind = streamedTextOf(event.type);
        if (kind && type !== undefined && kind.type !== type)
          yield atMember(event.chunk, "type", `${event.type} in ${shown(type)}`);
      }
      const owner = part.list === "summary" || type === "reasoning_text" ? "reasoning" : "message";
      const itemType = itemIn(item.added[0]).type;
      const [first] = part.added;
      if (first && part.list !== "input" && itemType !== undefined && itemType !== owner)
        yield atMember(first.chunk, "part", `a part ${shown(type)} in an item ${shown(itemType)}`);
    }
  },
  *"responses/part-done"(view) {
    if (!fromStart(view) || !hasParts(view) || !hasEnded(view)) return notShown;
    for (const { item, part } of partsOf(view)) {
      const due = ["delta", "text", ...(part.list === "input" ? [] : ["part"])];
      const placed = item.events.flatMap((event) => {
        const step = part.deltas.includes(event)
          ? "delta"
          : part.textDone.includes(event)
            ? "text"
            : part.done.includes(event)
              ? "part"
              : item.done.includes(event)
                ? "item"
                : undefined;
        return step === undefined ? [] : [{ event, step }];
      });
      const steps = placed.map(({ step }) => step).join(" ");
      const wanted = new RegExp(`^(delta ?)*${due.slice(1).join(" ")}( item)?$`);
      const last = placed.findLast(({ step }) => step !== "item")?.event ?? part.added[0];
      if (!wanted.test(steps) && last) {
        const [text] = part.textDone;
        const late = text && part.deltas.some((delta) => item.events.indexOf(delta) > item.events.indexOf(text));
        const found = late ? "a delta after the end of its text" : missing(part);
        yield atFrame(last.chunk.frame, found);
      }
    }
  },
  *"responses/part-whole"(view) {
    if (!fromStart(view) || !partsOf(view).some(({ part }) => part.deltas.length > 0)) return notShown;
    for (const { item, part } of partsOf(view)) {
      // OpenAI summarizes again after an answer was cut (recording of 2026-07).
      if (part.list === "summary" && streamState(view).end?.type === "response.incomplete") continue;
      const text = deltasOf(part);
      for (const { event, whole } of wholeTexts(item, part))
        if (whole !== text)
          yield atFrame(event.chunk.frame, `${event.type} says ${shown(whole)}, the deltas ${shown(text)}`);
    }
  },
  *"responses/part-logprobs"(view) {
    if (
      !(
        fromStart(view) &&
        partsOf(view).some(({ part }) => part.textDone.some(({ value }) => tokensIn(value).length > 0))
      )
    )
      return notShown;
    for (const { part } of partsOf(view)) {
      const [end] = part.textDone;
      const inDeltas = part.deltas.flatMap(({ value }) => tokensIn(value));
      const whole = end ? tokensIn(end.value) : [];
      if (!end || whole.length + inDeltas.length === 0) continue;
      if (JSON.stringify(inDeltas) !== JSON.stringify(whole))
        yield atMember(end.chunk, "logprobs", `${whole.length} tokens, ${inDeltas.length} in the deltas`);
      else if (textOfTokens(whole) !== end.value.text)
        yield atMember(end.chunk, "logprobs", `the tokens of another text: ${shown(textOfTokens(whole))}`);
    }
  },
});

function missing({ list, textDone, done }: StreamedPart): string {
  if (textDone.length === 0) return "a text without its .done";
  if (textDone.length > 1 || done.length > 1) return "a text that is done twice";
  return done.length === 0 && list !== "input" ? "a part without its .done" : "the ends of a text out of order";
}

/** Returns every event that has the whole text of a part. */
function wholeTexts(
  item: StreamedItem,
  part: StreamedPart,
): { readonly event: StreamedEvent; readonly whole: unknown }[] {
  const list = part.list;
  const inText = part.textDone.map((event) => ({
    event,
    whole: event.value[streamedTextOf(event.type)?.member ?? ""],
  }));
  const inPart = part.done.map((event) => ({ event, whole: textOfPart(event.value.part) }));
  const inItem = item.done.slice(0, 1).map((event) => {
    const own = itemIn(event);
    if (list === "input") return { event, whole: own.type === "custom_tool_call" ? own.input : own.arguments };
    const parts = own[list];
    return { event, whole: textOfPart(Array.isArray(parts) ? parts[part.index] : undefined) };
  });
  return [...inText, ...inPart, ...inItem];
}

function textOfPart(part: unknown): unknown {
  return isObject(part) ? (part.type === "refusal" ? part.refusal : part.text) : undefined;
}

function tokensIn({ logprobs }: Json): readonly Json[] {
  return Array.isArray(logprobs) ? logprobs.filter(isObject) : [];
}
