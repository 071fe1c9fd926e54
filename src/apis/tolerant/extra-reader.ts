import type { ExtraEvent, GenerationEvent } from "../../core/events.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

const chunkMembers = new Set([
  "id",
  "object",
  "created",
  "model",
  "choices",
  "usage",
  "system_fingerprint",
  "service_tier",
  "obfuscation",
]);
const choiceMembers = new Set(["index", "delta", "message", "text", "logprobs", "finish_reason"]);
const deltaMembers = new Set([
  "role",
  "content",
  "refusal",
  "tool_calls",
  "function_call",
  "reasoning_content",
  "reasoning",
  "reasoning_text",
  "thinking",
]);

/**
 * Finds what a source adds to OpenAI's members, as `extra` events. A member that a source repeats on every chunk (its provider's
 * name, a list of citations) gives one event; null and empty lists give none.
 */
export class ExtraReader {
  #last = new Map<string, string>();

  chunk(value: JsonObject, out: GenerationEvent[]): void {
    this.#read(value, chunkMembers, "chunk", undefined, out);
  }

  /** The members beside the delta (or message), and those in it. */
  choice(raw: JsonObject, choice: number, out: GenerationEvent[]): void {
    this.#read(raw, choiceMembers, "choice", choice, out);
    const delta = raw["delta"] ?? raw["message"];
    if (isObject(delta)) this.#read(delta, deltaMembers, "delta", choice, out);
  }

  #read(
    value: JsonObject,
    known: ReadonlySet<string>,
    place: ExtraEvent["place"],
    choice: number | undefined,
    out: GenerationEvent[],
  ): void {
    let added: Record<string, unknown> | undefined;
    for (const name in value) {
      if (known.has(name)) continue;
      const member = value[name];
      if (member === null || member === undefined || (Array.isArray(member) && member.length === 0)) continue;
      // Audio is a stream of its own, in which two equal pieces may follow each other.
      if (name !== "audio" && this.#isRepeated(`${place} ${choice} ${name}`, member)) continue;
      added ??= {};
      if (name !== "audio") added[name] = member;
      else {
        // OpenAI's audio deltas have "content": null beside them, and these members first (recordings of 2025).
        if (value["content"] === null) added["content"] = null;
        added[name] = isObject(member) ? inOrder(member, ["id", "transcript", "data", "expires_at"]) : member;
      }
    }
    if (added) out.push({ type: "extra", place, value: added, ...(choice !== undefined && { choice }) });
  }

  #isRepeated(key: string, member: unknown): boolean {
    const text = JSON.stringify(member);
    if (this.#last.get(key) === text) return true;
    this.#last.set(key, text);
    return false;
  }
}

/** The same members, those named first. */
function inOrder(value: JsonObject, names: readonly string[]): JsonObject {
  const first = names.filter((name) => name in value).map((name) => [name, value[name]]);
  return { ...(Object.fromEntries(first) as JsonObject), ...value };
}
