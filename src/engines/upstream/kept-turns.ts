import { Digest } from "../../wire/core/digest.ts";
import { Accumulator } from "../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { isObject } from "../../wire/core/json.ts";
import { assistantParts, type AssistantMessage, type AssistantPart, type Message } from "../../wire/core/message.ts";
import type { KeptPart, KeptTurn } from "../../wire/core/turn-memory.ts";
import type { TurnState } from "../../wire/core/turn-state.ts";
import { beginningOf } from "../../wire/core/conversation-key.ts";

/* Turns of the model as the memory keeps them, and as they come back without their states. */

/** The characters of a text that identify it. */
const maxIdentifying = 32 * 1024;
/** Longer answers are not kept, in characters. */
const maxLength = 1024 * 1024;

/** A call of a turn, for its key. */
interface IdentifiedCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/**
 * Identifies a conversation up to a turn by what users and tools have said: clients change system messages, and return answers in forms of
 * their own.
 */
export class ConversationDigest {
  readonly #digest = new Digest();
  /** What was said last. */
  last = "";

  add(message: Message): this {
    if (message.role !== "user" && message.role !== "tool") return this;
    this.last = beginningOf(message, maxIdentifying);
    this.#digest.add(`\0${message.role}\0`).add(this.last);
    return this;
  }

  get value(): string {
    return this.#digest.value;
  }
}

/**
 * Returns the keys of a turn, the most specific one first: with the conversation before it and its first call's id, without ids, which some
 * clients change, and for a conversation that its client has changed, too, with the last message alone and with the id alone. Sessions say the
 * same texts, and servers give the same ids again.
 */
function keysOf(text: string, calls: readonly IdentifiedCall[], before: ConversationDigest): readonly string[] {
  const digest = (...parts: readonly string[]): string => new Digest().add(JSON.stringify(parts)).value;
  const called = calls.map(({ name, arguments: json }) => `${name} ${canonical(json)}`).join("\n");
  const [first] = calls;
  if (!first) return [digest("text", before.value, text.slice(0, maxIdentifying))];
  return [
    digest("turn", before.value, first.id, called),
    digest("calls", before.value, called),
    digest("last", before.last, first.id, called),
    digest("id", first.id, called),
  ];
}

/** The JSON of a call's arguments in one form: clients write it again. */
function canonical(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), (_, value: unknown) =>
      isObject(value)
        ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
        : value,
    );
  } catch {
    return json;
  }
}

/** The keys under which a message of the assistant may be kept. `before`: the conversation before it. */
export function keysOfMessage(message: AssistantMessage, before: ConversationDigest): readonly string[] {
  let text = "";
  const calls: IdentifiedCall[] = [];
  for (const part of assistantParts(message)) {
    if (part.type === "text") text += part.text;
    else if (part.type === "tool-call") calls.push(part);
  }
  return keysOf(text, calls, before);
}

/** Collects the turn of an answer's first choice. */
export class TurnCollector {
  readonly #answer = new Accumulator();
  #length = 0;

  read(events: readonly GenerationEvent[]): void {
    if (this.#length > maxLength) return;
    for (const event of events)
      if ("text" in event) this.#length += event.text.length;
      else if (event.type === "tool-call-delta") this.#length += event.arguments.length;
    this.#answer.add(events);
  }

  /**
   * Returns the turn with its keys; undefined: its source demands nothing back, or it is too long. Reasoning before a call is kept without a
   * state, too: models go on with it. `before`: the messages of the request.
   */
  turn(before: readonly Message[]): { readonly keys: readonly string[]; readonly turn: KeptTurn } | undefined {
    const { choices } = this.#answer.result();
    const choice = choices.find((one) => one.choice === 0);
    if (!choice?.finish || this.#length > maxLength) return undefined;
    const parts = choice.parts.flatMap((part): readonly KeptPart[] => {
      switch (part.type) {
        case "text":
          return part.text === "" ? [] : [{ type: "text" }];
        case "reasoning": {
          const { text, summary, id, state } = part;
          if (text === "" && summary.length === 0 && !state) return [];
          const others = { ...(summary.length > 0 && { summary }), ...(id !== undefined && { id }) };
          return [{ type: "reasoning", text, ...others, ...(state && { state }) }];
        }
        case "tool-call":
          return [{ type: "tool-call", id: part.id, ...(part.state && { state: part.state }) }];
        default:
          return [];
      }
    });
    const hasState = parts.some(stateOf);
    const reasons = choice.toolCalls.length > 0 && parts.some(({ type }) => type === "reasoning");
    if (!hasState && !reasons) return undefined;
    const context = new ConversationDigest();
    for (const message of before) context.add(message);
    return { keys: keysOf(choice.text ?? "", choice.toolCalls, context), turn: { parts } };
  }
}

/** Whether a message of the assistant lacks what its source may have demanded back. */
export function lacksStates(message: AssistantMessage): boolean {
  // An id of a Responses client says nothing about who has stored what.
  return !assistantParts(message).some((part) => (stateOf(part)?.kind ?? "stored") !== "stored");
}

export function stateOf(part: AssistantPart | KeptPart): TurnState | undefined {
  return part.type === "reasoning" || part.type === "tool-call" ? part.state : undefined;
}

/**
 * Returns a message with the reasoning and the states of the turn that it was, each before the text or call that it preceded. What the client
 * has returned keeps its order. A client that returns states has their sources added.
 */
export function restoredMessage(message: AssistantMessage, { parts: kept }: KeptTurn): AssistantMessage {
  const own = assistantParts(message);
  if (!lacksStates(message)) return withSources(message, own, kept);
  const hasReasoning = own.some(({ type }) => type === "reasoning");
  // The client has returned all that there is.
  if (hasReasoning && !kept.some(stateOf)) return message;
  const restored: AssistantPart[] = [];
  let next = 0;
  const addReasoning = (end: number): void => {
    for (const part of kept.slice(next, end)) if (part.type === "reasoning") restored.push(part);
    next = end + 1;
  };
  const ended = new Set<string>();
  for (const part of own) {
    if (part.type === "reasoning") continue;
    // A type that has no further part is not searched for again: the time is linear.
    let at = ended.has(part.type) ? kept.length : next;
    while (at < kept.length && kept[at]?.type !== part.type) at++;
    const found = kept[at];
    if (found) addReasoning(at);
    else ended.add(part.type);
    const state = found?.type === "tool-call" && part.type === "tool-call" ? found.state : undefined;
    restored.push(state ? ({ ...part, state } as AssistantPart) : part);
  }
  addReasoning(kept.length);
  return { ...message, content: restored };
}

/** The states of a client with the sources of the same values in the memory. */
function withSources(
  message: AssistantMessage,
  own: readonly AssistantPart[],
  kept: readonly KeptPart[],
): AssistantMessage {
  const sources = new Map<string, string>();
  for (const state of kept.map(stateOf))
    if (state?.source !== undefined) sources.set(textOf(state.value), state.source);
  let isChanged = false;
  const parts = own.map((part): AssistantPart => {
    const state = stateOf(part);
    const source = state && state.source === undefined ? sources.get(textOf(state.value)) : undefined;
    if (source === undefined) return part;
    isChanged = true;
    return { ...part, state: { ...state, source } } as AssistantPart;
  });
  return isChanged ? { ...message, content: parts } : message;
}

/** A state's value as text. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
