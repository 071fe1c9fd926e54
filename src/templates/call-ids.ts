import { invalidRequest } from "../core/failure.ts";
import { callsOf } from "../core/assistant-parts.ts";
import type { Message, ToolCall } from "../core/message.ts";
import { ShortIds } from "../core/short-ids.ts";

/** A conversation's calls with their results. */
export interface MatchedCalls {
  /** The ids that the template gets for the calls of the assistant's message at this index. */
  ofCalls(index: number): readonly string[];
  /** The call that the tool message at this index answers, by the id that the template gets. */
  answered(index: number): { readonly id: string; readonly name: string | undefined };
}

/**
 * Matches each result with its call, by id; a result with a strange id answers the first call that is still open. A result that
 * follows no call is refused in OpenAI's words.
 *
 * `form` "nine": Mistral's templates take ids of exactly nine letters or digits, so each id is given such a one in its place.
 */
export function matchCalls(messages: readonly Message[], form: "any" | "nine", warnings: string[]): MatchedCalls {
  const short = new ShortIds();
  const shown = (id: string): string => (form === "nine" ? short.of(id) : id);
  const callIds = new Map<number, readonly string[]>();
  const answers = new Map<number, { id: string; name: string | undefined }>();
  let open: OpenCalls | null = null;
  for (const [index, message] of messages.entries()) {
    if (message.role !== "tool") {
      const calls = message.role === "assistant" ? callsOf(message) : [];
      open = calls.length > 0 ? new OpenCalls(calls) : null;
      callIds.set(
        index,
        calls.map((call) => shown(call.id)),
      );
      continue;
    }
    if (open === null) {
      throw invalidRequest(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        `messages.[${index}].role`,
      );
    }
    const named = open.take(message.toolCallId);
    const call = named ?? open.takeFirst();
    if (!named) {
      warnings.push(
        `messages[${index}]: no open call has the id ${message.toolCallId}; taken as the next call's result.`,
      );
    }
    answers.set(index, { id: shown(call?.id ?? message.toolCallId), name: message.name ?? call?.name });
  }
  return {
    ofCalls: (index) => callIds.get(index) ?? [],
    answered: (index) => answers.get(index) ?? { id: "", name: undefined },
  };
}

/** The calls of a turn that have no result yet. Each is looked at a few times, however many there are. */
class OpenCalls {
  readonly #calls: readonly ToolCall[];
  readonly #taken = new Set<ToolCall>();
  /** The places of an id's calls, the last one first: several may have one. */
  readonly #places = new Map<string, number[]>();
  /** Those before are taken. */
  #first = 0;

  constructor(calls: readonly ToolCall[]) {
    this.#calls = calls;
    for (let at = calls.length - 1; at >= 0; at--) {
      const { id = "" } = calls[at] ?? {};
      const places = this.#places.get(id);
      if (places) places.push(at);
      else this.#places.set(id, [at]);
    }
  }

  /** The first open call with an id; undefined: there is none. */
  take(id: string): ToolCall | undefined {
    const places = this.#places.get(id) ?? [];
    for (let at = places.pop(); at !== undefined; at = places.pop()) {
      const call = this.#calls[at];
      if (call && this.#isNew(call)) return call;
    }
    return undefined;
  }

  takeFirst(): ToolCall | undefined {
    for (let call = this.#calls[this.#first]; call; call = this.#calls[this.#first]) {
      this.#first++;
      if (this.#isNew(call)) return call;
    }
    return undefined;
  }

  #isNew(call: ToolCall): boolean {
    if (this.#taken.has(call)) return false;
    this.#taken.add(call);
    return true;
  }
}
