import type { JsonObject } from "../../core/json.ts";
import type { ToolCallPart } from "../../core/message.ts";
import type { CallState } from "../../core/turn-state.ts";
import { GrowingMap } from "./state/history.ts";

/** What is known of a call. */
interface KnownCall {
  /** The name of the tool; absent if only a result was read. */
  readonly name?: string;
  readonly hasResult?: boolean;
  /** The call was left out, because it was cut and has no result. */
  readonly isCut?: boolean;
  /** The call of an async tool that has an output. */
  readonly isAnswered?: boolean;
  /** The call of a hosted tool that waits for the client's approval. */
  readonly waiting?: ToolCallPart;
  readonly isApproved?: boolean;
  readonly state?: CallState;
}

/** A call that no output has followed. */
export interface OpenCall {
  readonly id: string;
  readonly type: "function_call" | "custom_tool_call";
}

/** The calls of a history. */
export interface ReadCalls {
  readonly known: GrowingMap<KnownCall>;
  /** The ids of the calls of async tools that no output has followed yet. */
  readonly openAsync: readonly string[];
  readonly open: readonly OpenCall[];
  readonly unasked: number;
}

export const noCalls: ReadCalls = { known: new GrowingMap(), openAsync: [], open: [], unasked: 0 };

/** The calls of a conversation by their ids, while its items are read in order. */
export class KnownCalls {
  readonly #before: GrowingMap<KnownCall>;
  /** Those after the calls of `#before`. */
  readonly #known = new Map<string, KnownCall>();
  readonly #openAsync: Set<string>;
  readonly #open: Map<string, OpenCall>;
  #unasked: number;

  constructor({ known, openAsync, open, unasked }: ReadCalls) {
    this.#before = known;
    this.#openAsync = new Set(openAsync);
    this.#open = new Map(open.map((call) => [call.id, call]));
    this.#unasked = unasked;
  }

  soFar(): ReadCalls {
    return {
      known: this.#before.with(this.#known),
      openAsync: [...this.#openAsync],
      open: [...this.#open.values()],
      unasked: this.#unasked,
    };
  }

  /** The first call that no output follows. */
  get firstOpen(): OpenCall | undefined {
    return this.#open.values().next().value;
  }

  of(id: string): KnownCall | undefined {
    return this.#known.get(id) ?? this.#before.get(id);
  }

  note(id: string, facts: KnownCall): void {
    this.#known.set(id, { ...this.of(id), ...facts });
  }

  /** The model has called a tool. A client may use the id of an earlier call again. */
  called(id: string, name: string): void {
    this.note(id, { name, isAnswered: false });
  }

  /** The list of an MCP server's functions. */
  listed(label: unknown): void {
    this.note(listOf(label), {});
  }

  isListed(label: string): boolean {
    return this.of(listOf(label)) !== undefined;
  }

  /** The output of an async tool's call may come in a later request, and a call that was cut needs none. */
  opened(type: OpenCall["type"], { call_id: id, async: isAsync, status }: JsonObject): void {
    if (typeof id === "string" && isAsync !== true && status !== "incomplete") this.#open.set(id, { id, type });
  }

  closed(id: string): void {
    this.#open.delete(id);
  }

  openedAsync(id: string): void {
    this.#openAsync.add(id);
  }

  /** An output of an async tool's call has come; others need no note. */
  answeredAsync(id: string): void {
    if (this.#openAsync.delete(id)) this.note(id, { isAnswered: true });
  }

  /** Takes the ids of all calls of async tools without an output, which are answered from now on. */
  takeOpenAsync(): string[] {
    const ids = [...this.#openAsync];
    for (const id of ids) this.answeredAsync(id);
    return ids;
  }

  /** The id of a call that is added before an output which no call has asked for. */
  unaskedId(): string {
    return `call_unasked_${++this.#unasked}`;
  }
}

/** The key of an MCP server's list among the calls: no id contains a space. */
function listOf(label: unknown): string {
  return `list of ${String(label)}`;
}
