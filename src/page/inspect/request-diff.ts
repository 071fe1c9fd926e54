import { diffArrays, diffWordsWithSpace } from "diff";
import { outlineRequest } from "../../wire/apis/prompt-history.ts";
import { brokenPrefix, likenessTo } from "../../wire/core/compare-outlines.ts";
import type { BrokenPrefix } from "../../wire/core/compare-outlines.ts";
import { isObject } from "../../wire/core/json.ts";
import type { AssistantPart, ContentPart, Message, Tool } from "../../wire/core/message.ts";
import { runSync } from "../../wire/core/steps.ts";
import { ExactNumber } from "../parts/json-text.ts";
import { parsePath, pathText } from "./json-tree.ts";
import type { ParsedRequest } from "./readable-request.ts";

/** An entry of a list in two requests, with its place in each. `after` absent: it was removed; `before` absent: it was added. */
export type Change<T> =
  | {
      readonly kind: "same" | "changed";
      readonly before: T;
      readonly after: T;
      readonly at: number;
      readonly from: number;
    }
  | { readonly kind: "added"; readonly after: T; readonly at: number }
  | { readonly kind: "removed"; readonly before: T; readonly from: number };

/** A part of a text that both texts have, or only one of them. */
export interface TextChange {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
}

/** A parameter whose value differs. */
export interface ParameterChange {
  readonly name: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** Where the prompts of two requests begin to differ. */
export interface PromptComparison {
  /** The earlier prompt is the beginning of the later one. */
  readonly continues: boolean;
  /** The number of messages at the beginning that are the same. */
  readonly sharedMessages: number;
  /** The cause, and estimates in tokens; null if no cause is known. */
  readonly broken: BrokenPrefix | null;
}

/** A comparison takes at most this time, in milliseconds. Then everything counts as replaced. */
const timeout = 1000;
/** The parts of longer texts that differ are not compared word by word. In characters. */
const maxWords = 60_000;
/** Texts that share fewer of their words are different messages. */
const minShared = 0.3;

/**
 * The changes from one list of messages to another, in order. Marks of what a server is to cache, which clients move with each turn, and ids
 * of reasoning do not count.
 */
export function diffMessages(before: readonly Message[], after: readonly Message[]): Change<Message>[] {
  const keys = new Map<string, number>();
  const numbered = (message: Message): number => {
    const key = JSON.stringify([message.role, comparedParts(message), comparedMembers(message)]);
    const known = keys.get(key) ?? keys.size;
    keys.set(key, known);
    return known;
  };
  const chunks = diffArrays(before.map(numbered), after.map(numbered), { timeout }) ?? [
    { count: before.length, removed: true, added: false },
    { count: after.length, removed: false, added: true },
  ];
  const changes: Change<Message>[] = [];
  let [from, at] = [0, 0];
  /** Indices of the messages of a run of removed ones that have no counterpart yet. */
  let removed: number[] = [];
  const flush = (until = Infinity): void => {
    const gone = removed.filter((index) => index < until);
    removed = removed.filter((index) => index >= until);
    for (const index of gone) changes.push({ kind: "removed", before: before[index] as Message, from: index });
  };
  for (const chunk of chunks) {
    const { count } = chunk;
    if (chunk.removed) {
      for (let index = 0; index < count; index++) removed.push(from++);
      continue;
    }
    for (let index = 0; index < count; index++, at++) {
      const message = after[at] as Message;
      if (!chunk.added) {
        flush();
        changes.push({ kind: "same", before: before[from] as Message, after: message, at, from: from++ });
        continue;
      }
      const counterpart = removed.find((one) => isVersion(before[one] as Message, message));
      if (counterpart === undefined) {
        changes.push({ kind: "added", after: message, at });
        continue;
      }
      flush(counterpart);
      removed = removed.filter((one) => one !== counterpart);
      changes.push({ kind: "changed", before: before[counterpart] as Message, after: message, at, from: counterpart });
    }
  }
  flush();
  return changes;
}

/** Whether a message is another version of an earlier one. */
function isVersion(before: Message, after: Message): boolean {
  if (before.role !== after.role) return false;
  const [one, other] = [wordsOf(before), wordsOf(after)];
  if (one.size === 0 || other.size === 0) return one.size === other.size;
  let shared = 0;
  for (const word of one) if (other.has(word)) shared++;
  return shared / Math.max(one.size, other.size) >= minShared;
}

function wordsOf(message: Message): Set<string> {
  return new Set(messageText(message).slice(0, maxWords).split(/\s+/));
}

/** The changes from one list of tools to another, in the order of the later one; tools are found by their names. */
export function diffTools(before: readonly Tool[], after: readonly Tool[]): Change<Tool>[] {
  const places = new Map(before.map((tool, at) => [tool.name, at]));
  const names = new Set(after.map(({ name }) => name));
  const changes = after.map((tool, at): Change<Tool> => {
    const from = places.get(tool.name);
    const known = from === undefined ? undefined : before[from];
    if (from === undefined || !known) return { kind: "added", after: tool, at };
    const isSame = toolText(known) === toolText(tool);
    return { kind: isSame ? "same" : "changed", before: known, after: tool, at, from };
  });
  const removed = before.flatMap((tool, from): Change<Tool>[] =>
    names.has(tool.name) ? [] : [{ kind: "removed", before: tool, from }],
  );
  return [...changes, ...removed];
}

/** Whether tools that both requests have are in another order. */
export function areReordered(changes: readonly Change<Tool>[]): boolean {
  const places = changes.flatMap((change) => ("from" in change && "at" in change ? [change.from] : []));
  return places.some((from, at) => from < (places[at - 1] ?? 0));
}

/** The parameters whose values differ, as the clients wrote them; members of objects each by their path, in any order. */
export function diffParameters(
  before: readonly (readonly [string, unknown])[],
  after: readonly (readonly [string, unknown])[],
): ParameterChange[] {
  const [known, now] = [new Map(before.flatMap(leavesOf)), new Map(after.flatMap(leavesOf))];
  return [...new Set([...known.keys(), ...now.keys()])].flatMap((name): ParameterChange[] => {
    const [one, other] = [known.get(name), now.get(name)];
    if (known.has(name) && now.has(name) && JSON.stringify(one) === JSON.stringify(other)) return [];
    return [{ name, ...(known.has(name) && { before: one }), ...(now.has(name) && { after: other }) }];
  });
}

function leavesOf([name, value]: readonly [string, unknown]): (readonly [string, unknown])[] {
  const members = isObject(value) && !(value instanceof ExactNumber) ? Object.entries(value) : [];
  if (members.length === 0) return [[name, value]];
  return members.flatMap(([key, member]) => leavesOf([pathText([...parsePath(name), key]), member]));
}

/** The changes from one text to another, word by word; if that takes too long, the part that differs as a whole. */
export function diffTexts(before: string, after: string): TextChange[] {
  // Most of a long text is the same: only the part that differs is compared.
  const start = sharedStart(before, after);
  const end = sharedEnd(before, after, start);
  const [gone, come] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  const isShort = gone.length + come.length <= maxWords;
  const middle: TextChange[] | undefined = isShort
    ? diffWordsWithSpace(gone, come, { timeout })?.map(({ value, added, removed }) => ({
        kind: added ? "added" : removed ? "removed" : "same",
        text: value,
      }))
    : undefined;
  const changes: TextChange[] = [
    { kind: "same", text: after.slice(0, start) },
    ...(middle ?? [
      { kind: "removed" as const, text: gone },
      { kind: "added" as const, text: come },
    ]),
    { kind: "same", text: after.slice(after.length - end) },
  ];
  return changes.filter(({ text }) => text !== "");
}

/** The length of the common beginning, up to the beginning of a word. */
function sharedStart(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  let at = 0;
  while (at < length && one.charCodeAt(at) === other.charCodeAt(at)) at++;
  if (at === one.length && at === other.length) return at;
  while (at > 0 && !/\s/.test(one[at - 1] ?? "")) at--;
  return at;
}

/** The length of the common end after `start`, from the end of a word. */
function sharedEnd(one: string, other: string, start: number): number {
  const length = Math.min(one.length, other.length) - start;
  let end = 0;
  while (end < length && one.charCodeAt(one.length - end - 1) === other.charCodeAt(other.length - end - 1)) end++;
  while (end > 0 && !/\s/.test(one[one.length - end] ?? "")) end--;
  return end;
}

/** The text in which two versions of a message are compared: its parts, one below the other. */
export function messageText(message: Message): string {
  return comparedParts(message)
    .map((part) => {
      switch (part.type) {
        case "text":
        case "reasoning":
          return part.text;
        case "refusal":
          return part.refusal;
        case "tool-call":
          return `calls ${part.name} ${part.arguments}`;
        case "image":
          return `image ${part.url}`;
        case "audio":
          return `audio ${part.data}`;
        case "file":
          return `file ${part.name ?? ""} ${part.text ?? part.data ?? part.url ?? part.id ?? ""}`;
      }
    })
    .join("\n\n");
}

/** The parts that a prompt is made of; a string is a text. */
function comparedParts({ content }: Message): (AssistantPart | ContentPart)[] {
  if (content === null || content === "") return [];
  if (typeof content === "string") return [{ type: "text", text: content }];
  return content.map((part): AssistantPart | ContentPart => {
    if (part.type === "reasoning") return { ...part, id: "" };
    if (!("cacheMinutes" in part)) return part;
    const { cacheMinutes: _, ...rest } = part;
    return rest;
  });
}

function comparedMembers(message: Message): unknown {
  const { path: _, role: __, content: ___, ...members } = message;
  const { cacheMinutes: ____, ...compared } = members as { readonly cacheMinutes?: number };
  return compared;
}

/** The text in which two versions of a tool are compared. */
export function toolText(versioned: Tool): string {
  const { path: _, cacheMinutes: __, description = "", ...tool } = versioned;
  return `${description}\n${JSON.stringify(tool, null, 2)}`;
}

/** Compares the prompts of two requests of one conversation. */
export function comparePrompts(before: ParsedRequest, after: ParsedRequest): PromptComparison {
  const [known, asked] = [messagesOf(before), messagesOf(after)];
  const changes = diffMessages(known, asked);
  const differs = changes.findIndex(({ kind }) => kind !== "same");
  const sharedMessages = differs === -1 ? changes.length : differs;
  const [one, other] = [runSync(outlineRequest(before)), runSync(outlineRequest(after))];
  const broken = one && other && likenessTo(other)(one) > 0 ? brokenPrefix(one, other) : null;
  return { continues: !broken && sharedMessages === known.length, sharedMessages, broken };
}

export function messagesOf({ prompt }: ParsedRequest): readonly Message[] {
  return prompt.kind === "chat" ? prompt.messages : [];
}

/** How many messages of two requests are the same, to find the previous turn of a conversation. */
export function sharedMessages(before: ParsedRequest, after: ParsedRequest): number {
  return diffMessages(messagesOf(before), messagesOf(after)).filter(({ kind }) => kind === "same").length;
}
