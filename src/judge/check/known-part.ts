import * as z from "zod";
import { chatChunk, chatCompletion } from "../../wire/apis/chat/schema.ts";
import { obfuscate } from "../../wire/apis/chat/chat-envelope.ts";
import { completion } from "../../wire/apis/completions/schema.ts";
import { isOpen, membersOf, objectSchema, unwrapped } from "../../wire/apis/members.ts";
import { message, streamEvent } from "../../wire/apis/messages/schema.ts";
import { isBody } from "../../wire/apis/ordered-capture.ts";
import type { CapturedApi } from "../../wire/apis/ordered-capture.ts";
import { response } from "../../wire/apis/responses/schema.ts";
import { writtenEvents } from "../../wire/apis/responses/event-schema.ts";
import { isObject } from "../../wire/core/json.ts";
import { isKnownEvent as isKnownMessageEvent } from "./rules/messages/stream-rules.ts";
import { isKnownEvent as isKnownResponseEvent } from "./rules/responses/event-rules.ts";
import { parsedJson } from "./rules/view.ts";

/** The objects of an API's answers: the body, and an event or chunk by its type; `undefined`: the API has no such event. */
const schemas: Readonly<Record<CapturedApi, readonly [z.ZodType, (type: unknown) => z.ZodType | undefined]>> = {
  chat: [chatCompletion, () => chatChunk],
  completions: [completion, () => completion],
  responses: [
    response,
    (type) => writtenEvents.get(type) ?? (isKnownResponseEvent(String(type)) ? z.unknown() : undefined),
  ],
  messages: [message, (type) => (isKnownMessageEvent(type) ? streamEvent : undefined)],
};

/**
 * Returns a captured answer without the events and members that the schemas of its API do not have. `values`: unknown values of enumerations
 * are replaced by known ones. All other bytes stay, except for sequence numbers and the length of obfuscation, which depend on what was
 * removed. Vendors add to their APIs: an answer that is right without the unknown is right. Linear in the length of the answer.
 */
export function knownPart(capture: string, api: CapturedApi, values: boolean): string {
  const [body, event] = schemas[api];
  if (isBody(capture)) return new KnownText(capture, values, 0).read(body, parsedJson(capture));
  let dropped = 0;
  return capture
    .split(/(?<=\n\n)/)
    .map((block) => {
      const [, head = "", data = ""] = /^((?:event: [^\n]*\n)?data: )(\{[^\n]*\})\n\n$/.exec(block) ?? [];
      const value = data === "" ? undefined : parsedJson(data);
      if (!isObject(value)) return block;
      const schema = event(value["type"]);
      if (schema) return `${head}${knownEvent(data, schema, values, dropped, value)}\n\n`;
      dropped++;
      return "";
    })
    .join("");
}

function knownEvent(data: string, schema: z.ZodType, values: boolean, dropped: number, value: unknown): string {
  const known = new KnownText(data, values, dropped).read(schema, value);
  const hidden = /,"obfuscation":"\w*"\}$/;
  if (schema !== chatChunk || known === data || !hidden.test(data)) return known;
  const padded = (json: string): string => obfuscate(json.replace(hidden, ""), () => 0);
  return padded(data).length === data.length ? padded(known) : known;
}

const otherType = z.enum(["other:type"]);
const ofOtherType = z.looseObject({ type: otherType });

/** The text of a JSON value, read next to the parsed value and its schema. */
class KnownText {
  readonly #json: string;
  readonly #values: boolean;
  /** The number of events before this one that were left out. */
  readonly #dropped: number;
  #at = 0;

  constructor(json: string, values: boolean, dropped: number) {
    this.#json = json;
    this.#values = values;
    this.#dropped = dropped;
  }

  /** Returns the text without unknown members. `value`: what the text says. */
  read(schema: z.ZodType, value: unknown): string {
    const lead = this.#take(/[ \t\r\n]*/y);
    return lead + this.#value(unwrapped(schema), value) + this.#json.slice(this.#at);
  }

  #value(schema: z.ZodType | undefined, value: unknown): string {
    const inner = schema && unwrapped(schema);
    const described = inner && isObject(value) ? objectSchema(inner, value) : undefined;
    if (described && isObject(value)) return this.#object(described, value);
    // An item or a part of a new type is one of the types with a colon, which servers may add.
    if (inner instanceof z.ZodUnion && isObject(value) && !described && !inner.safeParse(value).success)
      return this.#object(ofOtherType, value);
    const item = inner instanceof z.ZodArray ? (inner.element as z.ZodType) : undefined;
    if (item && Array.isArray(value)) return this.#array(item, value);
    const text = this.#skip();
    const isNews = inner instanceof z.ZodEnum && typeof value === "string" && !inner.options.includes(value);
    return isNews && value !== "" && (this.#values || inner === otherType) ? JSON.stringify(inner.options[0]) : text;
  }

  #object(schema: z.ZodObject, value: Readonly<Record<string, unknown>>): string {
    const members = new Map(membersOf(schema).map((member) => [member.name, member.schema]));
    const kept: string[] = [];
    this.#at++;
    for (;;) {
      const space = this.#take(/[ \t\r\n]*/y);
      if (this.#json[this.#at] === "}") return this.#close(kept, space, "{}");
      const key = this.#skip();
      const colon = this.#take(/[ \t\r\n]*:[ \t\r\n]*/y);
      const name = String(parsedJson(key));
      const member = members.get(name);
      const text =
        name === "sequence_number" && this.#dropped > 0
          ? String(Number(this.#skip()) - this.#dropped)
          : this.#value(member, value[name]);
      if (member || isOpen(schema)) kept.push(space + key + colon + text);
      const end = this.#take(/[ \t\r\n]*/y);
      if (this.#json[this.#at] !== ",") return this.#close(kept, end, "{}");
      this.#at++;
    }
  }

  #array(item: z.ZodType, value: readonly unknown[]): string {
    const kept: string[] = [];
    this.#at++;
    for (;;) {
      const space = this.#take(/[ \t\r\n]*/y);
      if (this.#json[this.#at] === "]") return this.#close(kept, space, "[]");
      kept.push(space + this.#value(item, value[kept.length]));
      const end = this.#take(/[ \t\r\n]*/y);
      if (this.#json[this.#at] !== ",") return this.#close(kept, end, "[]");
      this.#at++;
    }
  }

  #close(parts: readonly string[], space: string, [open, close]: string): string {
    this.#at++;
    return `${open}${parts.join(",")}${space}${close}`;
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [text = ""] = pattern.exec(this.#json) ?? [];
    this.#at += text.length;
    return text;
  }

  /** Moves behind the next value, known or not, and returns its text. */
  #skip(): string {
    const json = this.#json;
    const from = this.#at;
    let depth = 0;
    do {
      const first = json[this.#at++] ?? "";
      if (first === '"') this.#endString();
      else if (first === "{" || first === "[") depth++;
      else if (first === "}" || first === "]") depth--;
      else if (depth === 0) while (this.#at < json.length && !",]} \t\r\n".includes(json[this.#at] ?? "")) this.#at++;
    } while (depth > 0 && this.#at < json.length);
    return json.slice(from, this.#at);
  }

  /** Passes over the rest of a string, whose first quote has been read. */
  #endString(): void {
    const json = this.#json;
    while (this.#at < json.length && json[this.#at] !== '"') this.#at += json[this.#at] === "\\" ? 2 : 1;
    this.#at++;
  }
}
