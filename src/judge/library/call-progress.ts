import type {
  GenerationEvent,
  ToolCallDeltaEvent,
  ToolCallEndEvent,
  ToolCallStartEvent,
} from "../../wire/core/events.ts";
import type { ToolCall } from "../../wire/core/message.ts";
import { isObject } from "../../wire/core/json.ts";

/** How far a call is, in one event. Each names its choice and its position among the choice's calls. */
export type CallProgressEvent = {
  readonly type: "tool-call";
  readonly choice: number;
  readonly index: number;
} & (
  | { readonly status: "started"; readonly id: string; readonly name: string }
  /** The next part of the arguments' text. */
  | { readonly status: "in-progress"; readonly delta: string }
  /** The whole call; `value`: its arguments, parsed (null for a custom tool, whose input is text). */
  | {
      readonly status: "succeeded";
      readonly call: ToolCall;
      readonly value: Readonly<Record<string, unknown>> | null;
    }
  /** The call as far as it came, its arguments unparseable or cut off; `raw`: what the model wrote. */
  | { readonly status: "failed"; readonly call: ToolCall; readonly raw: string }
);

/** Events in which calls report their progress. */
export type ProgressEvent =
  | Exclude<GenerationEvent, ToolCallStartEvent | ToolCallDeltaEvent | ToolCallEndEvent>
  | CallProgressEvent;

/** Events, one by one or in batches, as they come or all there. */
export type EventSource =
  | Iterable<GenerationEvent | readonly GenerationEvent[]>
  | AsyncIterable<GenerationEvent | readonly GenerationEvent[]>;

/**
 * Tells calls by their parse status: started, in progress, succeeded or failed; all other events pass. `incremental: false`: whole
 * calls only, one event each (succeeded, or failed with the raw text). A call that is cut off has failed.
 *
 * @example
 * import { callProgress, readChatStream } from "truewire";
 *
 * const stream = `data: {"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[
 * {"index":0,"id":"call_1","type":"function","function":{"name":"add","arguments":"{\\"a\\":0}"}}]},"finish_reason":"tool_calls"}]}
 *
 * data: [DONE]
 *
 * `.replaceAll("\n{", "{");
 * for await (const event of callProgress(readChatStream(stream), { incremental: false })) {
 *   if (event.type === "tool-call") console.log(event.status, event.call.name, event.value);
 * }
 * // → succeeded add { a: 0 }
 */
export async function* callProgress(
  events: EventSource,
  options: { readonly incremental?: boolean } = {},
): AsyncGenerator<ProgressEvent> {
  const progress = new CallProgress(options.incremental !== false);
  for await (const item of events) {
    for (const event of "type" in item ? [item] : item) yield* progress.take(event);
  }
  yield* progress.cut();
}

class CallProgress {
  readonly #incremental: boolean;
  /** The begun calls by choice; calls of one choice do not overlap. */
  readonly #open = new Map<number, { readonly start: ToolCallStartEvent; readonly deltas: string[] }>();

  constructor(incremental: boolean) {
    this.#incremental = incremental;
  }

  take(event: GenerationEvent): readonly ProgressEvent[] {
    switch (event.type) {
      case "tool-call-start": {
        const { choice, index, id, name } = event;
        this.#open.set(choice, { start: event, deltas: [] });
        return this.#incremental ? [{ type: "tool-call", choice, index, status: "started", id, name }] : [];
      }
      case "tool-call-delta": {
        const { choice, index, arguments: delta } = event;
        this.#open.get(choice)?.deltas.push(delta);
        return this.#incremental ? [{ type: "tool-call", choice, index, status: "in-progress", delta }] : [];
      }
      case "tool-call-end":
        return this.#close(event.choice, event);
      case "finish":
        return [...this.#close(event.choice), event];
      case "end":
        return [...this.cut(), event];
      default:
        return [event];
    }
  }

  /** No more events come: what is open has failed. */
  cut(): readonly ProgressEvent[] {
    return [...this.#open.keys()].flatMap((choice) => this.#close(choice));
  }

  #close(choice: number, end?: ToolCallEndEvent): readonly CallProgressEvent[] {
    const open = this.#open.get(choice);
    if (!open) return [];
    this.#open.delete(choice);
    const { index, id, name, kind } = open.start;
    const call: ToolCall = { id, name, arguments: open.deltas.join(""), ...(kind && { kind }) };
    const where = { type: "tool-call", choice, index } as const;
    if (end?.status !== "succeeded") {
      return [{ ...where, status: "failed", call, raw: end?.raw ?? call.arguments }];
    }
    return [{ ...where, status: "succeeded", call, value: parseArguments(call).value }];
  }
}

/** The arguments of a call, parsed, next to the model's own text: only the text has numbers beyond a double and the order of keys. */
export type ParsedArguments =
  | { readonly valid: true; readonly value: Readonly<Record<string, unknown>>; readonly text: string }
  | { readonly valid: false; readonly value: null; readonly text: string; readonly problem: string };

/**
 * Parses the arguments of a call. Nothing is thrown: text that is no JSON object is flagged and kept. Empty text is a call without
 * arguments, `{}`. Of a custom tool, whose input is free text, there is nothing to parse: it is "not valid".
 *
 * @example
 * import { parseArguments } from "truewire";
 *
 * const good = parseArguments({ id: "call_1", name: "count", arguments: '{"from": 0, "note": ""}' });
 * console.log(good.value);
 * // → { from: 0, note: '' }
 * const bad = parseArguments({ id: "call_2", name: "count", arguments: '{"from": ' });
 * console.log(bad.valid, bad.text);
 * // → false {"from":
 */
export function parseArguments(call: ToolCall): ParsedArguments {
  const { arguments: text, kind, name } = call;
  if (kind === "custom") return { valid: false, value: null, text, problem: `${name} takes text, not JSON.` };
  if (text.trim() === "") return { valid: true, value: {}, text };
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return { valid: true, value, text };
    return { valid: false, value: null, text, problem: "The arguments are JSON, but no object." };
  } catch (error) {
    return { valid: false, value: null, text, problem: error instanceof Error ? error.message : String(error) };
  }
}
