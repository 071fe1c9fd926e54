import { isObject } from "../../../core/json.ts";
import { atFrame, atMember, shown } from "../place.ts";
import type { StreamRule } from "../rule.ts";
import type { Json, StreamView } from "../view.ts";
import { fromStart, itemIn, responseIn, storyOf, type StreamedEvent } from "./stream-story.ts";

const endpoints = ["responses", "response-socket"] as const;
const lost = "text is lost or wrong";

function hasItems(view: StreamView): boolean {
  return storyOf(view).items.length > 0;
}

/** Whether the response ended as it should: what failed or was cut need not close its items. */
function hasEnded(view: StreamView): boolean {
  const type = storyOf(view).end?.type;
  return type === "response.completed" || type === "response.incomplete";
}

/** Items that a model writes; those of tools that OpenAI runs have ways of their own (recorded: several open at once, some never done). */
function isWritten(item: Json): boolean {
  return /^(message|reasoning|function_call|custom_tool_call)$/.test(String(item.type));
}

/** The id that an event gives to its item. */
function idIn(event: StreamedEvent): unknown {
  return "item" in event.value ? itemIn(event).id : event.value.item_id;
}

/** The items of a response in its stream. Source: specification; 227 recorded streams of 2026; what clients read. */
export const itemRules: readonly StreamRule[] = [
  {
    id: "responses/item-place",
    severity: "error",
    concern: lost,
    says: "Every event of an item has its output_index, an integer.",
    source: "specification; llama.cpp #20607, lemonade #3607, maki #514",
    breaks: ["AI SDK (schema)", "official SDKs: responses.stream()", "OpenClaw", "maki (arguments go to another call)"],
    judges: "stream",
    endpoints,
    shown: hasItems,
    *judge(view) {
      for (const { events } of storyOf(view).items) {
        for (const { chunk, type, value } of events)
          if (!Number.isInteger(value.output_index))
            yield atFrame(chunk.frame, `${type}: output_index is ${shown(value.output_index)}`);
      }
    },
  },
  {
    id: "responses/item-added",
    severity: "error",
    concern: lost,
    says: "The first event of an item is response.output_item.added.",
    source: "recordings 227 of 227; openai-python #2852; LiteLLM #22102, #37852, #41185; vLLM's agentic-api #62",
    breaks: [
      "official SDKs: responses.stream()",
      "AI SDK (an error, or the text is dropped)",
      "Codex (deltas are dropped)",
    ],
    judges: "stream",
    endpoints,
    shown: (view) => hasItems(view) && fromStart(view),
    *judge(view) {
      for (const { events } of storyOf(view).items) {
        const [first] = events;
        if (first && first.type !== "response.output_item.added")
          yield atFrame(first.chunk.frame, `${first.type} of an item that was not added`);
      }
    },
  },
  {
    id: "responses/item-once",
    severity: "error",
    concern: lost,
    says: "An item is added once and done once: every item has a place of its own.",
    source:
      "recordings 227 of 227; LiteLLM #36375 (one output_index for several items); source code of AI SDK, openai-node and Codex CLI",
    breaks: ["AI SDK", "official SDKs: responses.stream()", "Codex (a call is run twice)"],
    judges: "stream",
    endpoints,
    shown: hasItems,
    *judge(view) {
      for (const { added, done } of storyOf(view).items)
        for (const event of [...added.slice(1), ...done.slice(1)])
          yield atFrame(event.chunk.frame, `${event.type} again at output_index ${shown(event.value.output_index)}`);
    },
  },
  {
    id: "responses/item-order",
    severity: "error",
    concern: lost,
    says: "Items are added at output_index 0, 1, 2 …",
    source: "recordings 227 of 227; openai-python #2852, #3126 (an item is looked up by its place)",
    breaks: ["official SDKs: responses.stream() (before openai-python #3126)", "clients that keep items in a list"],
    judges: "stream",
    endpoints,
    shown: (view) => hasItems(view) && fromStart(view),
    *judge(view) {
      const placed = storyOf(view).items.filter(({ place }) => place !== undefined);
      for (const [due, { place, events }] of placed.entries())
        if (place !== due && events[0])
          yield atMember(events[0].chunk, "output_index", `output_index ${place} instead of ${due}`);
    },
  },
  {
    id: "responses/item-one-at-a-time",
    severity: "warning",
    concern: lost,
    says: "A message, thought or call is done before the next one is added.",
    source: "recordings 227 of 227; source code of Codex CLI: one item is open at a time",
    breaks: ["Codex (deltas go to the item that was added last)"],
    judges: "stream",
    endpoints,
    shown: hasItems,
    *judge(view) {
      let open: unknown;
      for (const { chunk, type, value } of storyOf(view).events) {
        if (type === "response.output_item.done" && value.output_index === open) open = undefined;
        if (type !== "response.output_item.added" || !isWritten(itemIn({ chunk, type, value }))) continue;
        if (open !== undefined) yield atFrame(chunk.frame, `an item is added while that at ${shown(open)} is open`);
        open = value.output_index;
      }
    },
  },
  {
    id: "responses/item-done",
    severity: "error",
    concern: lost,
    says: "Every message, thought and call ends with response.output_item.done, and nothing of it follows.",
    source: "recordings 227 of 227; source code of Codex CLI and AI SDK: a call is run at its output_item.done",
    breaks: ["Codex (no text, no call)", "AI SDK (no call)"],
    judges: "stream",
    endpoints,
    shown: (view) => hasItems(view) && hasEnded(view),
    *judge(view) {
      for (const { added, done, events } of storyOf(view).items) {
        const [begin] = [...added, ...events];
        if (added[0] && !isWritten(itemIn(added[0]))) continue;
        const [end] = done;
        const late = end && events[events.indexOf(end) + 1];
        if (!end && begin) yield atFrame(begin.chunk.frame, "an item that is never done");
        if (late) yield atFrame(late.chunk.frame, `${late.type} after the item was done`);
      }
    },
  },
  {
    id: "responses/item-one-id",
    severity: "error",
    concern: lost,
    says: "Every item has an id, and every event of it the same one.",
    source: "recordings 227 of 227; vLLM #23218; LiteLLM #27671, #30071; llama.cpp #20607; opencode #46885",
    breaks: ["AI SDK, opencode (they find the text and the thought by it)", "LangChain"],
    judges: "stream",
    endpoints,
    shown: hasItems,
    *judge(view) {
      for (const { events } of storyOf(view).items) {
        const [first] = events;
        const id = first && idIn(first);
        for (const event of events) {
          const own = idIn(event);
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
  },
  {
    id: "responses/item-same",
    severity: "error",
    concern: "tool calls break",
    says: "An item is done as it was added: with its type, and a call with its call_id, name and namespace.",
    source:
      "recordings 227 of 227; specification; source code of AI SDK: a call begins with the call_id of added and ends with that of done",
    breaks: ["AI SDK (a call that begins and one that ends, not the same)"],
    judges: "stream",
    endpoints,
    shown: hasItems,
    *judge(view) {
      for (const { added, done } of storyOf(view).items) {
        const [begun, ended] = [itemIn(added[0]), itemIn(done[0])];
        if (!added[0] || !done[0]) continue;
        for (const member of ["type", "call_id", "name", "namespace"])
          if (begun[member] !== ended[member])
            yield atMember(done[0].chunk, member, `${member} ${shown(ended[member])} after ${shown(begun[member])}`);
      }
    },
  },
  {
    id: "responses/item-begins-empty",
    severity: "error",
    concern: lost,
    says: "An item is added empty: no content, no summary, no arguments, no input.",
    source:
      "recordings 227 of 227; source code of openai-python, openai-node and LangChain: deltas are added to what is there",
    breaks: ["official SDKs: responses.stream() (the text is there twice)", "LangChain (arguments twice)"],
    judges: "stream",
    endpoints,
    shown: hasItems,
    *judge(view) {
      for (const { added, parts } of storyOf(view).items) {
        // Without deltas it may be told at once.
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
  },
  {
    id: "responses/item-status",
    severity: "error",
    concern: "tool calls break",
    says: "Messages and calls have a status: in_progress when added, completed or incomplete when done.",
    source: "recordings 227 of 227; source code of AI SDK: its schema demands it of a call",
    breaks: ["AI SDK (the call is dropped)"],
    judges: "stream",
    endpoints,
    shown: hasItems,
    *judge(view) {
      for (const { added, done } of storyOf(view).items) {
        for (const event of [...added, ...done]) {
          const { type, status } = itemIn(event);
          if (!/^(message|function_call|custom_tool_call)$/.test(String(type))) continue;
          const legal = added.includes(event) ? ["in_progress"] : ["completed", "incomplete"];
          if (!legal.includes(String(status)))
            yield atMember(event.chunk, "status", `status ${shown(status)} in ${event.type}`);
        }
      }
    },
  },
  {
    id: "responses/item-output",
    severity: "error",
    concern: lost,
    says: "The output of the response that ended is the messages, thoughts and calls that were done, in their order.",
    source: "recordings 227 of 227; source code of openai-agents (it reads nothing but the last event); sub2api #4468",
    breaks: ["openai-agents (no answer, no call)", "official SDKs: final response", "LangChain", "tracing"],
    judges: "stream",
    endpoints,
    shown: (view) => hasEnded(view) && fromStart(view),
    *judge(view) {
      const { items, end } = storyOf(view);
      if (!end) return;
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
        const [told, said] = [output[at] ?? {}, item];
        const member = ["type", "id", "call_id", "name", "arguments", "input", "status"].find(
          (name) => told[name] !== said[name],
        );
        if (member !== undefined)
          yield atMember(
            end.chunk,
            "output",
            `output[${at}].${member} is ${shown(told[member])}, was ${shown(said[member])}`,
          );
        else if (textIn(told) !== textIn(said))
          yield atMember(end.chunk, "output", `output[${at}] says ${shown(textIn(told))}, was ${shown(textIn(said))}`);
      }
    },
  },
];

/** What an item says in its parts. */
function textIn({ content, summary }: Json): string {
  const parts = [content, summary].flatMap((list) => (Array.isArray(list) ? list.filter(isObject) : []));
  return parts.map((part) => String(part.text ?? part.refusal ?? "")).join("\n");
}
