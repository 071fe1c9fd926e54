import type { AdaptationName } from "../../wire/apis/adapt/adaptation-names.ts";
import { Digest } from "../../wire/core/digest.ts";
import { assistantParts, type AssistantMessage, type AssistantPart, type Message } from "../../wire/core/message.ts";
import type { TurnStateCounts } from "../../wire/core/generation-observer.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { KeptTurn, TurnMemory } from "../../wire/core/turn-memory.ts";
import type { TurnState } from "../../wire/core/turn-state.ts";
import { ConversationDigest, keysOfMessage, lacksStates, restoredMessage, stateOf, textOf } from "./kept-turns.ts";

/** The maximum number of refused states that are remembered: each is sent again with every request of its conversation. */
const maxRefused = 10_000;

/** The states that servers have refused, by their digests. The oldest one is forgotten first. */
export class RefusedStates {
  readonly #digests = new Set<string>();

  add(source: string, state: TurnState): void {
    const [oldest] = this.#digests;
    if (oldest !== undefined && this.#digests.size >= maxRefused) this.#digests.delete(oldest);
    this.#digests.add(digestOf(source, state));
  }

  has(source: string, state: TurnState): boolean {
    return this.#digests.size > 0 && this.#digests.has(digestOf(source, state));
  }
}

function digestOf(source: string, { value }: TurnState): string {
  return new Digest().add(source).add(textOf(value)).value;
}

/** A change of the states in a request, for Inspect. */
export interface StateChange {
  readonly name: AdaptationName;
  /** The message, such as `messages[3]`. */
  readonly place: string;
}

/** A request with the states that one source gets. */
export interface FittedTurns {
  readonly request: GenerationRequest;
  readonly changes: readonly StateChange[];
  /** undefined: the request has no turns of the model. */
  readonly counts: Omit<TurnStateCounts, "standIns"> | undefined;
}

/**
 * The earlier turns of the model in one request, with what their sources demand back: what the client has sent, and what the memory has
 * in its place. A source gets only the states that it has made itself; those whose maker is not known until it refuses them.
 */
export class RequestTurns {
  readonly #request: GenerationRequest;
  readonly #memory: TurnMemory | undefined;
  readonly #refused: RefusedStates;
  /** The messages with what the memory has; absent: `recall` has not been called. */
  #messages: readonly Message[] | undefined;
  #recalling: Promise<void> | undefined;
  /** The indices of the messages that the memory has restored. */
  readonly #restored = new Set<number>();
  #missing = 0;
  /** What is left out after refusals: nothing, the states whose maker is not known, all states. */
  #dropped: 0 | 1 | 2 = 0;
  readonly #fitted = new Map<string, FittedTurns>();

  constructor(request: GenerationRequest, memory: TurnMemory | undefined, refused: RefusedStates) {
    this.#request = request;
    this.#memory = memory;
    this.#refused = refused;
  }

  /** Looks up the turns that the client has not returned whole. Resolves when they are there; undefined: there is nothing to wait for. */
  recall(): Promise<void> | undefined {
    const { prompt, owner } = this.#request;
    if (this.#messages !== undefined || prompt.kind !== "chat") return this.#recalling;
    const { messages } = prompt;
    this.#messages = messages;
    const memory = this.#memory;
    if (!memory || !messages.some(({ role }) => role === "assistant") || !memory.mayHave(owner)) return undefined;
    const waiting: Promise<void>[] = [];
    const restored = [...messages];
    const before = new ConversationDigest();
    for (const [at, message] of messages.entries()) {
      before.add(message);
      if (message.role !== "assistant") continue;
      const found = memory.find(owner, keysOfMessage(message, before));
      const use = (turn: KeptTurn | undefined): void => this.#use(turn, message, at, restored);
      if (found instanceof Promise) waiting.push(found.then(use));
      else use(found);
    }
    this.#messages = restored;
    if (waiting.length > 0) this.#recalling = Promise.all(waiting).then(() => void (this.#recalling = undefined));
    return this.#recalling;
  }

  #use(turn: KeptTurn | undefined, message: AssistantMessage, at: number, messages: Message[]): void {
    if (!turn) {
      if (lacksStates(message)) this.#missing++;
      return;
    }
    const restored = restoredMessage(message, turn);
    messages[at] = restored;
    if (restored !== message && lacksStates(message)) this.#restored.add(at);
  }

  /** Who made the latest state; undefined: not known, or there is none. */
  get latestSource(): string | undefined {
    for (const message of (this.#messages ?? []).toReversed()) {
      if (message.role !== "assistant") continue;
      const state = assistantParts(message).findLast((part) => stateOf(part)?.source !== undefined);
      if (state) return stateOf(state)?.source;
    }
    return undefined;
  }

  /** Returns a request of the generation with the states that a source gets. */
  fitted(request: GenerationRequest, source: string): FittedTurns {
    const { prompt, passthrough } = request;
    if (prompt.kind !== "chat" || this.#messages === undefined) return { request, changes: [], counts: undefined };
    const known = request === this.#request ? this.#fitted.get(source) : undefined;
    if (known) return known;
    const counts = { kept: 0, restored: 0, missing: this.#missing, foreign: 0, dropped: 0 };
    const changes = [...this.#restored].map((at): StateChange => ({
      name: "state-restored",
      place: `messages[${at}]`,
    }));
    let hasTurns = false;
    const messages = this.#messages.map((message, at): Message => {
      if (message.role !== "assistant") return message;
      const parts = assistantParts(message);
      const isRestored = this.#restored.has(at);
      hasTurns = true;
      const kept = parts.flatMap((part) => {
        const fate = this.#fateOf(part, source);
        if (stateOf(part)) counts[fate === "kept" && isRestored ? "restored" : fate]++;
        if (fate === "kept") return [part];
        return withoutState(part);
      });
      if (kept.length === parts.length && kept.every((part, index) => part === parts[index])) return message;
      changes.push({ name: "state-left-out", place: `messages[${at}]` });
      return { ...message, content: kept };
    });
    const fitted: FittedTurns = {
      request:
        changes.length === 0
          ? request
          : {
              ...request,
              prompt: { ...prompt, messages },
              ...(passthrough && { passthrough: { ...passthrough, hasOtherStates: true } }),
            },
      changes,
      counts: hasTurns ? counts : undefined,
    };
    if (request === this.#request) this.#fitted.set(source, fitted);
    return fitted;
  }

  #fateOf(part: AssistantPart, source: string): "kept" | "foreign" | "dropped" {
    const state = stateOf(part);
    if (!state) return "kept";
    if (state.source !== undefined && state.source !== source) return "foreign";
    if (this.#dropped === 2 || (this.#dropped === 1 && state.source === undefined)) return "dropped";
    return this.#refused.has(source, state) ? "foreign" : "kept";
  }

  /**
   * A source has refused states of the request: those whose maker is not known are left out, then all. Returns false if that changes
   * nothing.
   */
  drop(source: string): boolean {
    while (this.#dropped < 2) {
      const before = this.#states(source);
      this.#dropped = this.#dropped === 0 ? 1 : 2;
      this.#fitted.clear();
      if (this.#states(source).length < before.length) return true;
    }
    return false;
  }

  /** A source has accepted the request: it would refuse the states that were left out in later requests, too. */
  confirm(source: string): void {
    if (this.#dropped === 0) return;
    const dropped = this.#dropped;
    this.#dropped = 0;
    for (const part of this.#states(source)) {
      const state = stateOf(part);
      if (state && (dropped === 2 || state.source === undefined)) this.#refused.add(source, state);
    }
    this.#dropped = dropped;
  }

  /** The parts with the states that a source gets. */
  #states(source: string): readonly AssistantPart[] {
    return (this.#messages ?? []).flatMap((message) =>
      message.role === "assistant"
        ? assistantParts(message).filter((part) => stateOf(part) && this.#fateOf(part, source) === "kept")
        : [],
    );
  }
}

/** A part without its state; nothing is left of reasoning that has no text. */
function withoutState(part: AssistantPart): readonly AssistantPart[] {
  if (part.type === "tool-call") {
    const { state: _, ...call } = part;
    return [call];
  }
  if (part.type !== "reasoning") return [part];
  const { state: _, id: __, ...reasoning } = part;
  return reasoning.text === "" && !reasoning.summary?.length ? [] : [reasoning];
}
