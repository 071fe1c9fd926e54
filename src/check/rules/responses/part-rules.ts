import { isObject } from "../../../core/json.ts";
import { textOfTokens } from "../logprob-tokens.ts";
import { atFrame, atMember, shown } from "../place.ts";
import type { StreamRule } from "../rule.ts";
import type { Json, StreamView } from "../view.ts";
import {
  deltasOf,
  fromStart,
  itemIn,
  storyOf,
  textKindOf,
  type StreamedEvent,
  type StreamedItem,
  type StreamedPart,
} from "./stream-story.ts";

const endpoints = ["responses", "response-socket"] as const;
const lost = "text is lost or wrong";

interface PartOfItem {
  readonly item: StreamedItem;
  readonly part: StreamedPart;
}

function partsOf(view: StreamView): readonly PartOfItem[] {
  return storyOf(view).items.flatMap((item) => item.parts.map((part) => ({ item, part })));
}

function hasParts(view: StreamView): boolean {
  return partsOf(view).length > 0;
}

function hasEnded(view: StreamView): boolean {
  return /\.(completed|incomplete)$/.test(storyOf(view).end?.type ?? "");
}

/** What a part's events say that it is: texts in pieces, and their ends. */
function texts({ deltas, textDone }: StreamedPart): readonly StreamedEvent[] {
  return [...deltas, ...textDone];
}

/** Texts in pieces. Source: specification; 227 recorded streams of 2026; what clients read. */
export const partRules: readonly StreamRule[] = [
  {
    id: "responses/part-added",
    severity: "error",
    concern: lost,
    says: "A part begins with response.content_part.added (of a summary: reasoning_summary_part.added), once and before its text.",
    source:
      "recordings 227 of 227; source code of openai-python and openai-node: a delta is added to the part at its index; LiteLLM #24445, #32777; sub2api #4468",
    breaks: ["official SDKs: responses.stream()", "AI SDK (of a summary)"],
    judges: "stream",
    endpoints,
    shown: (view) => fromStart(view) && partsOf(view).some(({ part }) => part.list !== "input"),
    *judge(view) {
      for (const { item, part } of partsOf(view)) {
        if (part.list === "input") continue;
        const own = new Set([...part.added, ...texts(part), ...part.done]);
        const first = item.events.find((event) => own.has(event));
        const again = part.added[1];
        if (first && !part.added.includes(first))
          yield atFrame(first.chunk.frame, `${first.type} of a part that was not added`);
        if (again) yield atFrame(again.chunk.frame, `${again.type} again at index ${part.index}`);
      }
    },
  },
  {
    id: "responses/part-index",
    severity: "error",
    concern: lost,
    says: "The parts of an item have content_index (of a summary: summary_index) 0, 1, 2 …",
    source:
      "recordings 227 of 227; vLLM #24788; lemonade #3607; source code of LangChain: parts are joined by their index",
    breaks: ["official SDKs: responses.stream()", "LangChain (parts run together)"],
    judges: "stream",
    endpoints,
    shown: (view) => fromStart(view) && partsOf(view).some(({ part }) => part.list !== "input"),
    *judge(view) {
      for (const { parts } of storyOf(view).items) {
        for (const list of ["content", "summary"] as const) {
          const own = parts.filter((part) => part.list === list);
          for (const [due, part] of own.entries()) {
            const [first] = [...part.added, ...texts(part), ...part.done];
            if (part.index !== due && first)
              yield atMember(first.chunk, `${list}_index`, `${list}_index ${part.index} instead of ${due}`);
          }
        }
      }
    },
  },
  {
    id: "responses/part-kind",
    severity: "error",
    concern: lost,
    says: "What is streamed is what was added: output_text in a part output_text of a message, arguments in a function_call.",
    source: "recordings 227 of 227; vLLM #24788 (thoughts in a part output_text)",
    breaks: ["official SDKs: responses.stream()", "clients that show thoughts apart"],
    judges: "stream",
    endpoints,
    shown: hasParts,
    *judge(view) {
      for (const { item, part } of partsOf(view)) {
        const added = part.added[0]?.value.part;
        const type = part.list === "input" ? itemIn(item.added[0]).type : isObject(added) ? added.type : undefined;
        for (const event of texts(part)) {
          const kind = textKindOf(event.type);
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
  },
  {
    id: "responses/part-done",
    severity: "error",
    concern: lost,
    says: "A text ends with its own .done and then its part's, both once, before the item is done; no delta follows.",
    source: "recordings 227 of 227; specification; source code of AI SDK and LangChain",
    breaks: [
      "AI SDK (a summary that never ends)",
      "LangChain (it reads a refusal in its .done)",
      "clients that wait for it",
    ],
    judges: "stream",
    endpoints,
    shown: (view) => fromStart(view) && hasParts(view) && hasEnded(view),
    *judge(view) {
      for (const { item, part } of partsOf(view)) {
        const due = ["delta", "text", ...(part.list === "input" ? [] : ["part"])];
        const told = item.events.flatMap((event) => {
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
        const steps = told.map(({ step }) => step).join(" ");
        const wanted = new RegExp(`^(delta ?)*${due.slice(1).join(" ")}( item)?$`);
        const last = told.findLast(({ step }) => step !== "item")?.event ?? part.added[0];
        if (!wanted.test(steps) && last) {
          const [text] = part.textDone;
          const late = text && part.deltas.some((delta) => item.events.indexOf(delta) > item.events.indexOf(text));
          const found = late ? "a delta after the end of its text" : missing(part);
          yield atFrame(last.chunk.frame, found);
        }
      }
    },
  },
  {
    id: "responses/part-whole",
    severity: "error",
    concern: lost,
    says: "The deltas of a text add up to what its .done, its part and its item say.",
    source: "recordings 227 of 227; specification",
    breaks: ["users (the text changes at its end)", "agents (other arguments than the ones that were shown)"],
    judges: "stream",
    endpoints,
    shown: (view) => fromStart(view) && partsOf(view).some(({ part }) => part.deltas.length > 0),
    *judge(view) {
      for (const { item, part } of partsOf(view)) {
        // Of an answer that was cut OpenAI makes the summary anew (recording of 2026-07).
        if (part.list === "summary" && storyOf(view).end?.type === "response.incomplete") continue;
        const text = deltasOf(part);
        for (const { event, said } of wholes(item, part))
          if (said !== text)
            yield atFrame(event.chunk.frame, `${event.type} says ${shown(said)}, the deltas ${shown(text)}`);
      }
    },
  },
  {
    id: "responses/part-logprobs",
    severity: "error",
    concern: "log probabilities are wrong",
    says: "The log probabilities of a text's deltas are those of its .done, and with the tokens of its text.",
    source: "recordings with log probabilities; specification: ResponseTextDoneEvent.logprobs",
    breaks: ["evaluation tools"],
    judges: "stream",
    endpoints,
    shown: (view) =>
      fromStart(view) &&
      partsOf(view).some(({ part }) => part.textDone.some(({ value }) => tokensIn(value).length > 0)),
    *judge(view) {
      for (const { part } of partsOf(view)) {
        const [end] = part.textDone;
        const told = part.deltas.flatMap(({ value }) => tokensIn(value));
        const whole = end ? tokensIn(end.value) : [];
        if (!end || whole.length + told.length === 0) continue;
        if (JSON.stringify(told) !== JSON.stringify(whole))
          yield atMember(end.chunk, "logprobs", `${whole.length} tokens, ${told.length} in the deltas`);
        else if (textOfTokens(whole) !== end.value.text)
          yield atMember(end.chunk, "logprobs", `the tokens of another text: ${shown(textOfTokens(whole))}`);
      }
    },
  },
];

function missing({ list, textDone, done }: StreamedPart): string {
  if (textDone.length === 0) return "a text without its .done";
  if (textDone.length > 1 || done.length > 1) return "a text that is done twice";
  return done.length === 0 && list !== "input" ? "a part without its .done" : "the ends of a text out of order";
}

/** Every event that says the whole text of a part. */
function wholes(item: StreamedItem, part: StreamedPart): { readonly event: StreamedEvent; readonly said: unknown }[] {
  const list = part.list;
  const inText = part.textDone.map((event) => ({ event, said: event.value[textKindOf(event.type)?.member ?? ""] }));
  const inPart = part.done.map((event) => ({ event, said: saidBy(event.value.part) }));
  const inItem = item.done.slice(0, 1).map((event) => {
    const own = itemIn(event);
    if (list === "input") return { event, said: own.type === "custom_tool_call" ? own.input : own.arguments };
    const parts = own[list];
    return { event, said: saidBy(Array.isArray(parts) ? parts[part.index] : undefined) };
  });
  return [...inText, ...inPart, ...inItem];
}

function saidBy(part: unknown): unknown {
  return isObject(part) ? (part.type === "refusal" ? part.refusal : part.text) : undefined;
}

function tokensIn({ logprobs }: Json): readonly Json[] {
  return Array.isArray(logprobs) ? logprobs.filter(isObject) : [];
}
