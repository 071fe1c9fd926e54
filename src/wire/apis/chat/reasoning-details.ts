import { isObject, nonEmpty, scalarText } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { DetailsState, TextState } from "../../core/turn-state.ts";

/*
 * `reasoning_details`: a list of entries with the reasoning of a message, as text, as a summary or encrypted, which the server demands back
 * unchanged and in order. Source: https://openrouter.ai/docs/guides/best-practices/reasoning-tokens, "reasoning_details Array Structure".
 */

export type Details = DetailsState["value"];

/** Members of an entry that a stream sends in several chunks. */
const streamed: ReadonlySet<string> = new Set(["text", "summary", "data"]);

/** The maximum number of entries of a message, and of the characters in their streamed texts. A state that exceeds them is not kept. */
const maxEntries = 10_000;
const maxCharacters = 16 * 1024 * 1024;

interface GrowingEntry {
  readonly members: Map<string, unknown>;
  /** The chunks of streamed members, which are joined once. */
  readonly chunks: Map<string, string[]>;
}

/** Joins the entries that a stream sends in chunks. The time is linear in the chunks. */
export class DetailsMerger {
  #entries: GrowingEntry[] = [];
  /** The latest entry with an index and a type. */
  readonly #byKey = new Map<string, GrowingEntry>();
  #characters = 0;
  /** There are entries that `take` has not returned. */
  get hasSome(): boolean {
    return this.#entries.length > 0;
  }

  /** Adds the entries of a delta. */
  add(list: readonly unknown[]): void {
    for (const raw of list) {
      if (!isObject(raw) || this.#entries.length > maxEntries || this.#characters > maxCharacters) continue;
      const key = `${scalarText(raw["index"])} ${scalarText(raw["type"])}`;
      const known = this.#byKey.get(key);
      if (known && isSame(known, raw)) this.#extend(known, raw);
      else this.#byKey.set(key, this.#open(raw));
    }
  }

  /** Adds the entries of a whole message, each of which is complete. */
  addWhole(list: readonly unknown[]): void {
    for (const raw of list) if (isObject(raw)) this.#open(raw);
  }

  /** Returns the entries that it has not returned yet; `undefined`: there are none, or more than are kept. */
  take(): Details | undefined {
    const entries = this.#entries;
    this.#entries = [];
    this.#byKey.clear();
    if (entries.length === 0 || entries.length > maxEntries || this.#characters > maxCharacters) return undefined;
    return entries.map(({ members, chunks }) => {
      for (const [name, texts] of chunks) if (texts.length > 1) members.set(name, texts.join(""));
      return Object.fromEntries(members);
    });
  }

  #open(raw: JsonObject): GrowingEntry {
    const entry: GrowingEntry = { members: new Map(), chunks: new Map() };
    this.#entries.push(entry);
    this.#extend(entry, raw);
    return entry;
  }

  #extend({ members, chunks }: GrowingEntry, raw: JsonObject): void {
    for (const [name, value] of Object.entries(raw)) {
      if (typeof value === "string" && streamed.has(name)) {
        const texts = chunks.get(name);
        if (texts) texts.push(value);
        else chunks.set(name, [value]);
        this.#characters += value.length;
        if (!members.has(name) || typeof members.get(name) !== "string") members.set(name, value);
      } else if (!members.has(name) || (value !== null && value !== "")) members.set(name, value);
    }
  }
}

/** Whether a chunk continues an entry of the same index and type. Entries of parallel calls have the ids of their calls. */
function isSame({ members }: GrowingEntry, { id }: JsonObject): boolean {
  const known = members.get("id");
  return typeof known !== "string" || typeof id !== "string" || known === id;
}

/** The readable text of entries. */
export function detailsText(details: readonly unknown[]): string {
  return details
    .map((one) => (isObject(one) ? (nonEmpty(one["text"]) ?? nonEmpty(one["summary"]) ?? "") : ""))
    .join("");
}

/** A block of reasoning with what proves it to its vendor. */
export interface ThinkingBlock {
  readonly text: string;
  readonly state?: TextState;
}

/**
 * Reads the `thinking_blocks` of a message or delta: Anthropic's blocks, which LiteLLM sends beside the reasoning. In a stream, the block with
 * the signature repeats the text. Source: https://docs.litellm.ai/docs/reasoning_content.
 */
export function thinkingBlocks({ thinking_blocks: list }: JsonObject, source?: string): ThinkingBlock[] {
  if (!Array.isArray(list)) return [];
  return list.filter(isObject).map(({ type, thinking, signature, data }) => {
    const kind = type === "redacted_thinking" ? "redacted" : "signature";
    const value = nonEmpty(kind === "redacted" ? data : signature);
    const text = kind === "redacted" ? "" : (nonEmpty(thinking) ?? "");
    return { text, ...(value !== undefined && { state: { kind, value, ...(source !== undefined && { source }) } }) };
  });
}
