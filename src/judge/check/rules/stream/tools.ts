import { isObject } from "../../../../wire/core/json.ts";
import { atChoicePart, atChunkPath, pathOfChoice, shown } from "../place.ts";
import { type ChoicePart, type Json, parsedJson, type StreamView } from "../view.ts";
import { chat, hasError } from "./stream-rule.ts";
import { type Rules, type Violation, notShown, on, whenAll } from "../rule.ts";

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
export const toolRules: Rules<StreamView> = on(chat, {
  ...whenAll(hasCalls, {
    "tool/index": (view) =>
      problems(view, ({ index }) =>
        Number.isInteger(index) && (index as number) >= 0 ? undefined : ["tool_calls", `index ${shown(index)}`],
      ),
    *"tool/index-order"(view) {
      const last = new Map<number, number>();
      for (const { choice, entry, index } of callDeltas(view)) {
        if (!Number.isInteger(index)) continue;
        const before = last.get(choice) ?? -1;
        if (index !== before && index !== before + 1)
          yield atChoicePart(entry, "tool_calls", `index ${shown(index)} after ${before < 0 ? "none" : before}`);
        last.set(choice, index as number);
      }
    },
    *"tool/one-element"(view) {
      for (const { entry, element } of callDeltas(view)) {
        const list = entry.delta.tool_calls as unknown[];
        if (list.length > 1 && list[1] === element)
          yield atChoicePart(entry, "tool_calls", `${list.length} elements in one delta`);
      }
    },
    "tool/id": (view) =>
      problems(view, ({ header, element }) =>
        header && (typeof element.id !== "string" || element.id === "")
          ? ["tool_calls", `a call with id ${shown(element.id)}`]
          : undefined,
      ),
    *"tool/id-stable"(view) {
      for (const call of streamedCalls(view)) {
        const first = call.deltas[0]?.element.id;
        for (const part of call.deltas.slice(1)) {
          const { id } = part.element;
          if (id !== undefined && id !== null && id !== first)
            yield atChoicePart(part.entry, "tool_calls", `id ${shown(id)} after ${shown(first)}`);
        }
      }
    },
    *"tool/id-unique"(view) {
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
    "tool/type": (view) =>
      problems(view, ({ header, element }) =>
        header && element.type !== "function" && element.type !== "custom"
          ? ["tool_calls", `a call of type ${shown(element.type)}`]
          : undefined,
      ),
    "tool/name": (view) =>
      problems(view, ({ header, element, fn }) => {
        const name = isObject(element.custom) ? element.custom.name : fn.name;
        return header && (typeof name !== "string" || name === "")
          ? ["tool_calls", `a call named ${shown(name)}`]
          : undefined;
      }),
    "tool/name-once": (view) =>
      problems(view, ({ header, fn }) =>
        !header && "name" in fn ? ["name", `the name ${shown(fn.name)} again`] : undefined,
      ),
    "tool/id-once": (view) =>
      problems(view, ({ header, element }) =>
        !header && ("id" in element || "type" in element)
          ? ["tool_calls", `${"id" in element ? "id" : "type"} again`]
          : undefined,
      ),
    "tool/arguments-type": (view) =>
      problems(view, ({ fn, element }) =>
        isObject(element.function) && "arguments" in fn && typeof fn.arguments !== "string"
          ? ["arguments", `arguments is ${shown(fn.arguments)}`]
          : undefined,
      ),
    "tool/arguments-key": (view) =>
      problems(view, ({ element, fn }) =>
        element.type !== "custom" && !isObject(element.custom) && !("arguments" in fn)
          ? ["tool_calls", "a delta without arguments"]
          : undefined,
      ),
    "tool/header-alone": (view) =>
      problems(view, ({ header, fn }) =>
        header && typeof fn.arguments === "string" && fn.arguments !== ""
          ? ["arguments", "arguments in the first delta"]
          : undefined,
      ),
  }),
  // A call that the token limit or an error cut is incomplete.
  *"tool/arguments-json"(view) {
    if (!hasCalls(view) || wasCut(view)) return notShown;
    for (const call of streamedCalls(view)) {
      const last = call.deltas.at(-1);
      if (!last || isObject(last.element.custom) || call.deltas[0]?.element.type === "custom") continue;
      if (!isObject(parsedJson(call.arguments)))
        yield atChoicePart(last.entry, "tool_calls", `arguments ${shown(call.arguments)}`);
    }
  },
});

function wasCut(view: StreamView): boolean {
  return (
    hasError(view) ||
    [...view.choices.values()].some((track) => track.some((entry) => entry.choice.finish_reason === "length"))
  );
}
