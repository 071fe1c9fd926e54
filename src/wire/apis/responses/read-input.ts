import { type Message } from "../../core/message.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { StepCounter, type Steps } from "../../core/steps.ts";
import { type History } from "./state/history.ts";
import { type PlacedItem, withoutCompactions } from "./state/input-items.ts";
import { type InputOptions, InputReader, type ReadHistory } from "./input-reader.ts";
import type { OpenCall } from "./known-calls.ts";

/**
 * Reads the `input` of a request as a conversation, which begins with the history that the request continues. What the model said, reasoned
 * and called without anything in between is one message. `openCall`: the first call that no output follows. Throws `FailureError`.
 */
export function* readInput(
  input: string | readonly unknown[],
  options: InputOptions,
): Steps<{
  readonly messages: Message[];
  readonly openCall: OpenCall | undefined;
  /** Whether the conversation contains the list of an MCP server's functions. */
  readonly isListed: (label: string) => boolean;
}> {
  const { history } = options.recalled;
  const own: readonly PlacedItem[] =
    typeof input === "string"
      ? [{ item: { role: "user", content: input }, path: "input" }]
      : input.map((item, index) => ({ item, path: `${options.name ?? "input"}[${index}]` }));
  yield;
  const before = history.items.length === 0 ? undefined : yield* readHistory(history, options);
  const reader = yield* readItems(own, history, options, before);
  const messages = reader.done();
  return { messages, openCall: reader.calls.firstOpen, isListed: (label) => reader.calls.isListed(label) };
}

/** Returns what a history contains. It is remembered, so only what was added since the last request is read. */
function* readHistory(history: History, options: InputOptions): Steps<ReadHistory> {
  const { forwards } = options;
  const known = history.read.get(forwards);
  if (known) return known as ReadHistory;
  const last = history.lastRead(forwards);
  const before = last?.read.get(forwards) as ReadHistory | undefined;
  // A history has no warnings of its own; its tools and its changes of settings are part of what was read.
  const reader = yield* readItems(
    history.placed(last?.items.length),
    last ?? history,
    { ...options, found: [], updates: [] },
    before,
  );
  const read = reader.soFar();
  history.setRead(forwards, read);
  return read;
}

/** Reads items that follow `before`, which was read from `history`. */
function* readItems(
  added: readonly PlacedItem[],
  history: History,
  options: InputOptions,
  before: ReadHistory | undefined,
): Steps<InputReader> {
  const isRead = before !== undefined && !(yield* changesMeaning(added, before));
  const items = yield* withoutCompactions(isRead || !before ? added : [...history.placed(), ...added]);
  const reader = new InputReader(options, yield* callsWithResult(items), isRead ? before : undefined);
  const pace = new StepCounter();
  for (const { item, path, again } of items) {
    reader.read(item, path, again);
    if (pace.endsStep(partCount(item))) yield;
  }
  return reader;
}

/**
 * Whether items change what is before them: a compaction may replace it, a call that was cut counts if it has a result, and a result is
 * placed before the last messages of the user.
 */
function* changesMeaning(items: readonly PlacedItem[], { calls, messages, turn }: ReadHistory): Steps<boolean> {
  const pace = new StepCounter();
  const endsWithUser = turn === null && messages.toArray(messages.length - 1)[0]?.role === "user";
  for (const { item } of items) {
    if (isObject(item)) {
      const { type, call_id: id } = item;
      if (type === "compaction") return true;
      const call = hasOutput(item) && typeof id === "string" ? calls.known.get(id) : undefined;
      if (call && (call.isCut === true || endsWithUser)) return true;
    }
    if (pace.endsStep()) yield;
  }
  return false;
}

function partCount(item: unknown): number {
  const content = isObject(item) ? (item["content"] ?? item["output"]) : undefined;
  return 1 + (Array.isArray(content) ? content.length : 0);
}

function hasOutput(item: JsonObject): boolean {
  return "output" in item || item["type"] === "apply_patch_call_output";
}

function* callsWithResult(items: readonly PlacedItem[]): Steps<ReadonlySet<unknown>> {
  const ids = new Set<unknown>();
  const pace = new StepCounter();
  for (const { item } of items) {
    if (isObject(item) && hasOutput(item)) ids.add(item["call_id"] ?? item["id"]);
    if (pace.endsStep()) yield;
  }
  return ids;
}
