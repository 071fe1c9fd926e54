import { nonEmpty, isObject } from "../../core/json.ts";
import type { SourceIdentity, ExtraEvent, GenerationEvent } from "../../core/events.ts";
import { answerId } from "../ids.ts";
import type { RepairLog } from "./repairs.ts";
import type { JsonObject } from "../../core/json.ts";

/** Reads the identity of an answer from its chunks. */
export class SourceReader {
  /** The first chunk has the members that only OpenAI sends. */
  #hasItsMembers = false;
  readonly #repairs: RepairLog;
  #identity: SourceIdentity | undefined;

  constructor(repairs: RepairLog) {
    this.#repairs = repairs;
  }

  /** The members found so far, each from the first chunk that has it. A new object only after a chunk has added a member. */
  get identity(): SourceIdentity | undefined {
    return this.#identity;
  }

  /** Whether the source is OpenAI itself. */
  get isOpenAi(): boolean {
    return isOpenAiId(this.#identity?.id ?? "", this.#identity?.created ?? 0, this.#hasItsMembers);
  }

  /** `hasChoices`: chunks without choices need no identity. */
  identify(value: JsonObject, hasChoices: boolean): void {
    const id = nonEmpty(value["id"]);
    const model = nonEmpty(value["model"]);
    const rawCreated = value["created"];
    const created = typeof rawCreated === "number" && rawCreated > 0 ? Math.floor(rawCreated) : undefined;
    const known = this.#identity;
    if (known?.id !== undefined && known.created !== undefined && known.model !== undefined) {
      if (id !== known.id) this.#repairs.note(id === undefined ? "no-id" : "other-id");
      if (created !== undefined && created !== known.created) this.#repairs.note("other-created");
    } else {
      if (id === undefined && hasChoices) this.#repairs.note("no-id");
      if (model === undefined && hasChoices) this.#repairs.note("no-model");
      const fingerprint = value["system_fingerprint"];
      const tier = value["service_tier"];
      const found: { -readonly [Member in keyof SourceIdentity]: SourceIdentity[Member] } = {};
      if (id !== undefined) found.id = id;
      if (created !== undefined) found.created = created;
      if (model !== undefined) found.model = model;
      if (typeof fingerprint === "string" || fingerprint === null) found.systemFingerprint = fingerprint;
      if (typeof tier === "string" || tier === null) found.serviceTier = tier;
      const merged = Object.assign(found, known);
      if (!known || Object.keys(merged).length > Object.keys(known).length) this.#identity = merged;
    }
    if (rawCreated !== undefined && rawCreated !== created) this.#repairs.note("created");
  }

  /** Called for the first chunk with a choice. */
  recognize(value: JsonObject): void {
    this.#hasItsMembers = "service_tier" in value && "system_fingerprint" in value;
  }
}

/**
 * OpenAI's ids contain the time of creation in the five characters after the prefix (2,664 of 2,666 ids, the others one second off); its
 * search models use a UUID. For other ids, members that only OpenAI sends decide. Source: recordings of 2023 to 2026.
 */
export function isOpenAiId(id: string, created: number, hasItsMembers: boolean): boolean {
  if (/^chatcmpl-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return hasItsMembers;
  const prefix = /^(chatcmpl-|cmpl-)[0-9A-Za-z]{29}$/.exec(id)?.[1] as "chatcmpl-" | "cmpl-" | undefined;
  if (prefix === undefined) return false;
  const seconds = [created, created - 1, created + 1];
  return (
    hasItsMembers || seconds.some((time) => id.startsWith(answerId(prefix, time, () => 0).slice(0, prefix.length + 5)))
  );
}

/**
 * The members that the readers of chat and completions read. Written down, so that a program that only reads a stream does not bundle the
 * schemas; a test compares them with the schemas.
 */
export const readNames = {
  chunk: ["id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier", "obfuscation"],
  choice: ["index", "delta", "message", "text", "logprobs", "finish_reason"],
  delta: ["role", "content", "refusal", "tool_calls", "function_call", "reasoning_content", "reasoning"],
  chunkAudio: ["id", "transcript", "data", "expires_at"],
  chatAudio: ["id", "data", "transcript", "expires_at"],
} as const;

const chunkMembers: ReadonlySet<string> = new Set(readNames.chunk);
const choiceMembers: ReadonlySet<string> = new Set(readNames.choice);
const deltaMembers: ReadonlySet<string> = new Set([
  ...readNames.delta,
  "reasoning_text",
  "thinking",
  "reasoning_details",
]);

/**
 * Emits members that a source adds to OpenAI's as `extra` events. A member that is repeated in every chunk (the provider's name, a list of
 * citations) becomes one event. null and empty lists are ignored.
 */
export class ExtraReader {
  /** Absent until the source adds a member. */
  #last: Map<string, string> | undefined;

  chunk(value: JsonObject, out: GenerationEvent[]): void {
    this.#read(value, chunkMembers, "chunk", undefined, out);
  }

  /** Reads the members of the choice, and those of its delta or message. */
  choice(raw: JsonObject, choice: number, out: GenerationEvent[]): void {
    this.#read(raw, choiceMembers, "choice", choice, out);
    const delta = raw["delta"] ?? raw["message"];
    if (isObject(delta)) this.#read(delta, deltaMembers, "delta", choice, out, raw["delta"] === undefined);
  }

  #read(
    value: JsonObject,
    known: ReadonlySet<string>,
    place: ExtraEvent["place"],
    choice: number | undefined,
    out: GenerationEvent[],
    isMessage = false,
  ): void {
    let added: Record<string, unknown> | undefined;
    for (const name in value) {
      if (known.has(name)) continue;
      const member = value[name];
      if (member === null || member === undefined || (Array.isArray(member) && member.length === 0)) continue;
      // Audio is a stream, in which equal chunks may follow each other.
      if (name !== "audio" && this.#isRepeated(`${place} ${choice} ${name}`, member)) continue;
      added ??= {};
      if (name !== "audio") added[name] = member;
      else {
        // OpenAI's audio deltas also have "content": null, and these members first (recordings of 2025).
        if (value["content"] === null) added["content"] = null;
        const names = isMessage ? readNames.chatAudio : readNames.chunkAudio;
        added[name] = isObject(member) ? withFirst(names, member) : member;
      }
    }
    if (added) out.push({ type: "extra", place, value: added, ...(choice !== undefined && { choice }) });
  }

  #isRepeated(key: string, member: unknown): boolean {
    const text = JSON.stringify(member);
    const last = (this.#last ??= new Map());
    if (last.get(key) === text) return true;
    last.set(key, text);
    return false;
  }
}

/** Returns the same members, those named first. */
function withFirst(names: readonly string[], value: JsonObject): JsonObject {
  const first = names.filter((name) => Object.hasOwn(value, name)).map((name) => [name, value[name]] as const);
  return { ...Object.fromEntries(first), ...value };
}
