import { isObject } from "../../../../wire/core/json.ts";
import { expectationsOf } from "../expectations.ts";
import { atChoicePart, atChunkPath, pathOfChoice, shown } from "../place.ts";
import type { Violation, StreamRule } from "../rule.ts";
import { type ChoicePart, type Json, parsedJson, type StreamView } from "../view.ts";
import { chat, hasError, streamRulesOf } from "./stream-rule.ts";

const breaking = "tool calls break";

/** One element of a delta's `tool_calls`, with its place. */
interface CallDelta {
  readonly entry: ChoicePart;
  readonly element: Json;
  readonly fn: Json;
  readonly index: unknown;
  /** The first element with this index in its choice. */
  readonly header: boolean;
}

/** A call as clients assemble it: by its index. */
export interface StreamedCall {
  readonly choice: number;
  readonly index: unknown;
  readonly name: string;
  readonly arguments: string;
  readonly deltas: readonly CallDelta[];
}

/** Yields every element of every delta's `tool_calls`, in order. */
function* callDeltas(view: StreamView): Generator<CallDelta & { choice: number }> {
  for (const [choice, track] of view.choices) {
    const seen = new Set<unknown>();
    for (const entry of track) {
      const list = Array.isArray(entry.delta.tool_calls) ? entry.delta.tool_calls.filter(isObject) : [];
      for (const element of list) {
        const { index } = element;
        yield {
          choice,
          entry,
          element,
          fn: isObject(element.function) ? element.function : {},
          index,
          header: !seen.has(index),
        };
        seen.add(index);
      }
    }
  }
}

export function streamedCalls(view: StreamView): StreamedCall[] {
  const calls = new Map<
    string,
    { choice: number; index: unknown; name: string; arguments: string[]; deltas: CallDelta[] }
  >();
  for (const part of callDeltas(view)) {
    const key = `${part.choice} ${JSON.stringify(part.index)}`;
    let call = calls.get(key);
    if (!call) calls.set(key, (call = { choice: part.choice, index: part.index, name: "", arguments: [], deltas: [] }));
    call.deltas.push(part);
    if (typeof part.fn.name === "string") call.name ||= part.fn.name;
    if (typeof part.fn.arguments === "string") call.arguments.push(part.fn.arguments);
  }
  return [...calls.values()].map((call) => ({ ...call, arguments: call.arguments.join("") }));
}

const hasCalls = (view: StreamView) => callDeltas(view).next().done === false;

/** Returns a violation at a member of an element of `tool_calls`, or of its function; if the member is missing, at the element. */
function atCallMember({ entry, element, fn }: CallDelta, member: string, found: string): Violation {
  const { chunk, choice, delta } = entry;
  const list = Array.isArray(delta.tool_calls) ? delta.tool_calls : [];
  const path = [...pathOfChoice(chunk, choice), "delta", "tool_calls", list.indexOf(element)];
  return atChunkPath(chunk, [...path, ...(Object.hasOwn(fn, member) ? ["function", member] : [member])], found);
}

function* problems(
  view: StreamView,
  found: (part: CallDelta) => [member: string, found: string] | undefined,
): Generator<Violation> {
  for (const part of callDeltas(view)) {
    const problem = found(part);
    if (problem) yield atCallMember(part, ...problem);
  }
}

/** Rules about streamed calls: a header, then deltas of the arguments. Source: specification; 968 recorded calls; issues as named. */
export const toolRules: readonly StreamRule[] = streamRulesOf(chat, [
  {
    id: "tool/index",
    severity: "error",
    concern: breaking,
    says: "Every element of tool_calls has an index, an integer.",
    source: "specification: index is required; Ollama #7881, Gemini, vercel/ai #7238",
    breaks: ["official SDK helpers", "LangChain", "Cline/Roo/Kilo"],
    shown: hasCalls,
    judge: (view) =>
      problems(view, ({ index }) =>
        Number.isInteger(index) && (index as number) >= 0 ? undefined : ["tool_calls", `index ${shown(index)}`],
      ),
  },
  {
    id: "tool/index-order",
    severity: "warning",
    concern: breaking,
    says: "Calls are numbered 0, 1, 2, … without gaps, one after the other.",
    source: "recordings 23 of 23; LiteLLM #11580, agentgateway #2971",
    breaks: ["clients that use the index as a position in a list"],
    shown: hasCalls,
    *judge(view) {
      const last = new Map<number, number>();
      for (const { choice, entry, index } of callDeltas(view)) {
        if (!Number.isInteger(index)) continue;
        const before = last.get(choice) ?? -1;
        if (index !== before && index !== before + 1)
          yield atChoicePart(entry, "tool_calls", `index ${shown(index)} after ${before < 0 ? "none" : before}`);
        last.set(choice, index as number);
      }
    },
  },
  {
    id: "tool/one-element",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "A delta has one element in tool_calls.",
    source: "recordings: no counterexample",
    shown: hasCalls,
    *judge(view) {
      for (const { entry, element } of callDeltas(view)) {
        const list = entry.delta.tool_calls as unknown[];
        if (list.length > 1 && list[1] === element)
          yield atChoicePart(entry, "tool_calls", `${list.length} elements in one delta`);
      }
    },
  },
  {
    id: "tool/id",
    severity: "error",
    concern: breaking,
    says: "The first delta of a call carries its id.",
    source: "specification; recordings 968 of 968; LiteLLM #40040",
    breaks: ["official SDK helpers", "AI SDK (throws)", "LangChain (the result cannot be matched)"],
    shown: hasCalls,
    judge: (view) =>
      problems(view, ({ header, element }) =>
        header && (typeof element.id !== "string" || element.id === "")
          ? ["tool_calls", `a call with id ${shown(element.id)}`]
          : undefined,
      ),
  },
  {
    id: "tool/id-stable",
    severity: "error",
    concern: breaking,
    says: "A call keeps its id.",
    source: "LiteLLM #40040, opencode #47954 (a new id in each fragment)",
    breaks: ["opencode", "clients that key calls by id"],
    shown: hasCalls,
    *judge(view) {
      for (const call of streamedCalls(view)) {
        const first = call.deltas[0]?.element.id;
        for (const part of call.deltas.slice(1)) {
          const { id } = part.element;
          if (id !== undefined && id !== null && id !== first)
            yield atChoicePart(part.entry, "tool_calls", `id ${shown(id)} after ${shown(first)}`);
        }
      }
    },
  },
  {
    id: "tool/id-unique",
    severity: "error",
    concern: breaking,
    says: "No two calls of a choice have the same id.",
    source: "specification (results are matched by it)",
    breaks: ["every agent with parallel calls"],
    shown: hasCalls,
    *judge(view) {
      const seen = new Set<string>();
      for (const call of streamedCalls(view)) {
        const [first] = call.deltas;
        const id = first?.element.id;
        // OpenAI itself gives the same id in different choices of n > 1.
        const key = `${call.choice} ${String(id)}`;
        if (first && typeof id === "string" && id !== "" && seen.has(key))
          yield atChoicePart(first.entry, "id", `the id ${shown(id)} again`);
        seen.add(key);
      }
    },
  },
  {
    id: "tool/type",
    severity: "error",
    concern: breaking,
    says: "The first delta of a call carries its type: function (or custom).",
    source: "specification; recordings 968 of 968",
    breaks: ["official SDK helpers", "AI SDK (throws)"],
    shown: hasCalls,
    judge: (view) =>
      problems(view, ({ header, element }) =>
        header && element.type !== "function" && element.type !== "custom"
          ? ["tool_calls", `a call of type ${shown(element.type)}`]
          : undefined,
      ),
  },
  {
    id: "tool/name",
    severity: "error",
    concern: breaking,
    says: "The first delta of a call carries its whole name.",
    source: "specification; recordings 968 of 968",
    breaks: ["AI SDK (throws)", "official SDK helpers"],
    shown: hasCalls,
    judge: (view) =>
      problems(view, ({ header, element, fn }) => {
        const name = isObject(element.custom) ? element.custom.name : fn.name;
        return header && (typeof name !== "string" || name === "")
          ? ["tool_calls", `a call named ${shown(name)}`]
          : undefined;
      }),
  },
  {
    id: "tool/name-once",
    severity: "error",
    concern: breaking,
    says: "The name is sent once: no later delta of the call has it, not even empty.",
    source: "recordings 968 of 968; LM Studio #649",
    breaks: ["clients that concatenate names (LangChain: get_weatherget_weather)", "clients that overwrite them"],
    shown: hasCalls,
    judge: (view) =>
      problems(view, ({ header, fn }) =>
        !header && "name" in fn ? ["name", `the name ${shown(fn.name)} again`] : undefined,
      ),
  },
  {
    id: "tool/id-once",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "Later deltas of a call have only index and function.arguments.",
    source: "recordings 968 of 968",
    shown: hasCalls,
    judge: (view) =>
      problems(view, ({ header, element }) =>
        !header && ("id" in element || "type" in element)
          ? ["tool_calls", `${"id" in element ? "id" : "type"} again`]
          : undefined,
      ),
  },
  {
    id: "tool/arguments-type",
    severity: "error",
    concern: breaking,
    says: "arguments is a string of JSON text, never an object or null.",
    source: "specification: arguments; servers that send an object, or null",
    breaks: ["every client (it concatenates strings)"],
    shown: hasCalls,
    judge: (view) =>
      problems(view, ({ fn, element }) =>
        isObject(element.function) && "arguments" in fn && typeof fn.arguments !== "string"
          ? ["arguments", `arguments is ${shown(fn.arguments)}`]
          : undefined,
      ),
  },
  {
    id: "tool/arguments-key",
    severity: "warning",
    concern: breaking,
    says: "Every delta of a call has arguments, the first with the empty string.",
    source: "recordings 968 of 968",
    breaks: ["clients that concatenate ('undefined' in the JSON)"],
    shown: hasCalls,
    judge: (view) =>
      problems(view, ({ element, fn }) =>
        element.type !== "custom" && !isObject(element.custom) && !("arguments" in fn)
          ? ["tool_calls", "a delta without arguments"]
          : undefined,
      ),
  },
  {
    id: "tool/header-alone",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "The first delta of a call has no arguments yet.",
    source: "recordings: always the empty string; tabbyAPI and others send a call whole",
    shown: hasCalls,
    judge: (view) =>
      problems(view, ({ header, fn }) =>
        header && typeof fn.arguments === "string" && fn.arguments !== ""
          ? ["arguments", "arguments in the first delta"]
          : undefined,
      ),
  },
  {
    id: "tool/arguments-json",
    severity: "error",
    concern: breaking,
    says: "The joined arguments of a call are one JSON object, {} when there are none.",
    source: "recordings; vLLM #28806 (an empty string for no arguments)",
    breaks: ["every agent (JSON.parse throws)"],
    // A call that the token limit or an error cut is incomplete.
    shown: (view) => hasCalls(view) && !wasCut(view),
    *judge(view) {
      for (const call of streamedCalls(view)) {
        const last = call.deltas.at(-1);
        if (!last || isObject(last.element.custom) || call.deltas[0]?.element.type === "custom") continue;
        if (!isObject(parsedJson(call.arguments)))
          yield atChoicePart(last.entry, "tool_calls", `arguments ${shown(call.arguments)}`);
      }
    },
  },
  {
    id: "tool/known-name",
    severity: "error",
    concern: breaking,
    says: "Only tools that the request declared are called.",
    source: "specification: tools",
    breaks: ["every agent (there is nothing to run)"],
    shown: (view) => hasCalls(view) && view.exchange.request.body !== undefined,
    *judge(view) {
      const { tools } = expectationsOf(view.exchange.request.body);
      for (const call of streamedCalls(view)) {
        const [first] = call.deltas;
        if (first && call.name !== "" && tools?.has(call.name) === false)
          yield atChoicePart(first.entry, "name", `a call of ${shown(call.name)}`);
      }
    },
  },
]);

function wasCut(view: StreamView): boolean {
  return (
    hasError(view) ||
    [...view.choices.values()].some((track) => track.some((entry) => entry.choice.finish_reason === "length"))
  );
}
