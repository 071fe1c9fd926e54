import { invalidRequest } from "../../core/failure.ts";
import { StepCounter } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import { refuseOrWarn } from "../request/vendor-rules.ts";
import type { Profile } from "../profile.ts";
import { refusal } from "./request-issue.ts";
import { strictVersion } from "./request-schema.ts";
import type {
  ApiFeatures,
  ContentBlockParam,
  MessageParam,
  MessageRequest,
  ResultBlockParam,
} from "./request-schema.ts";

const movedResults = "`tool_result` blocks come first in a message; these were moved before its other blocks";

/**
 * Checks what no schema can say about a conversation, in Anthropic's words. Throws `FailureError` for what no model can read. What a
 * model can read, such as a truncated history, is refused only in profile `exact`, and is a warning otherwise.
 */
export function* checkConversation(
  { messages }: MessageRequest,
  { profile, features }: { readonly profile: Profile; readonly features: ApiFeatures },
  warnings: string[],
): Steps<void> {
  const { judgesAsVendor } = profile;
  if (messages.length === 0) throw refusal("messages", "at least one message is required");
  const refuse = (path: string, words: string): void =>
    refuseOrWarn(refusal(path, words), "Anthropic", { profile, warnings });
  // The ids of the calls in the last assistant message that have no result yet.
  let open: string[] = [];
  const pace = new StepCounter();
  for (const [index, message] of messages.entries()) {
    const blocks = blocksOf(message);
    if (pace.endsStep(1 + blocks.length)) yield;
    const isStrict = judgesAsVendor && features.version >= strictVersion;
    checkRoles(message, blocks, { index, isStrict });
    if (isStrict && message.role === "user") checkCitations(blocks, index);
    if (isEmpty(message) && isEmptyTurn(messages, index)) refuse(`messages.${index}`, emptyTurns[message.role]);
    if (message.role === "system") continue;
    if (message.role === "user") {
      const { leading, all } = resultIds(blocks);
      if (leading.size < all.size && !judgesAsVendor) warnings.push(`messages.${index}: ${movedResults}`);
      // Anthropic reads only the results that come before every other block.
      const results = judgesAsVendor ? leading : all;
      const called = new Set(open);
      for (const id of all) if (!called.has(id)) refuse(`messages.${index}`, unexpectedResult(id));
      const missing = open.filter((id) => !results.has(id));
      if (missing.length > 0) refuse(`messages.${index - 1}`, unansweredCalls(missing));
      open = [];
    } else {
      for (const block of blocks) if (block.type === "tool_use") open.push(block.id);
    }
  }
  if (open.length > 0) refuse(`messages.${messages.length - 1}`, unansweredCalls(open));
  if (endsWithSpace(messages.at(-1))) refuse("messages", "final assistant content cannot end with trailing whitespace");
}

function blocksOf({ content }: MessageParam): readonly ContentBlockParam[] {
  return typeof content === "object" ? content : [];
}

/** The ids that a message's `tool_result` blocks answer: all, and those of the blocks that come before every other block. */
function resultIds(blocks: readonly ContentBlockParam[]): {
  readonly leading: ReadonlySet<string>;
  readonly all: ReadonlySet<string>;
} {
  const all = new Set<string>();
  const leading = new Set<string>();
  let isLeading = true;
  for (const block of blocks) {
    if (block.type !== "tool_result") isLeading = false;
    else {
      all.add(block.tool_use_id);
      if (isLeading) leading.add(block.tool_use_id);
    }
  }
  return { leading, all };
}

function isEmpty({ content = [] }: MessageParam): boolean {
  return content.length === 0;
}

/** Sources: as `messagesCheckOrder`; for the assistant, errors that clients quote. */
const emptyTurns: Readonly<Record<MessageParam["role"], string>> = {
  user: "user messages must have non-empty content",
  assistant: "all messages must have non-empty content except for the optional final assistant message",
  system: "system content must contain at least one block",
};

/** Whether an empty message may not be empty. Successive messages of the user are one turn, which the first one names. */
function isEmptyTurn(messages: readonly MessageParam[], index: number): boolean {
  const message = messages[index];
  if (message?.role === "system") return !message.output_config;
  if (message?.role === "assistant") return index < messages.length - 1;
  if (messages[index - 1]?.role === "user") return false;
  const next = messages.findIndex(({ role }, at) => at > index && role !== "user");
  return messages.slice(index, next === -1 ? undefined : next).every(isEmpty);
}

/** The role whose messages contain a block of this type; absent where every role may. */
const roles: ReadonlyMap<string, MessageParam["role"]> = new Map(
  Object.entries({
    image: "user",
    search_result: "user",
    tool_result: "user",
    thinking: "assistant",
    redacted_thinking: "assistant",
    tool_use: "assistant",
    tool_addition: "system",
    tool_removal: "system",
  } as const),
);

function checkRoles(
  { role }: MessageParam,
  blocks: readonly ContentBlockParam[],
  { index, isStrict }: { readonly index: number; readonly isStrict: boolean },
): void {
  for (const { type } of blocks) {
    // Until version 2026-10-21, assistants' messages may have documents, too. Anthropic's words for them are not known.
    const isDocument = type === "document" && (isStrict || role === "system");
    const due = isDocument ? "user" : (roles.get(type) ?? role);
    if (due === role) continue;
    const path = `messages.${index}`;
    throw invalidRequest(`${path}: \`${type}\` blocks can only be in \`${due}\` messages`, path);
  }
}

/** Since version 2026-10-21, texts of the user have no citations. Anthropic's words are not known; these are those for unknown members. */
function checkCitations(blocks: readonly ContentBlockParam[], index: number): void {
  const check = (block: ResultBlockParam, path: string): void => {
    if (block.type === "text" && Array.isArray(block.citations) && block.citations.length > 0)
      throw refusal(`${path}.text.citations`, "Extra inputs are not permitted");
  };
  for (const [at, block] of blocks.entries()) {
    const path = `messages.${index}.content.${at}`;
    if (block.type === "text") check(block, path);
    else if (block.type === "search_result")
      for (const [inner, text] of block.content.entries()) check(text, `${path}.search_result.content.${inner}`);
  }
}

function endsWithSpace(last: MessageParam | undefined): boolean {
  if (last?.role !== "assistant") return false;
  const final = typeof last.content === "string" ? last.content : blocksOf(last).at(-1);
  const text = typeof final === "string" ? final : final?.type === "text" ? final.text : "";
  return /\s$/.test(text);
}

function unexpectedResult(id: string): string {
  return `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
}

function unansweredCalls(ids: readonly string[]): string {
  return `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
}
