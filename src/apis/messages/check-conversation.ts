import { invalidRequest } from "../../core/failure.ts";
import { Pace } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import type { Profile } from "../profile.ts";
import { refusal } from "./request-issue.ts";
import type { RawBlock, RawMessage, RawRequest } from "./request-shapes.ts";

/**
 * What is wrong with a conversation beyond its shape, in Anthropic's words. What no model could make sense of is refused; what a model
 * copes with, because programs cut histories anywhere, is refused in profile `exact` alone, and told in the log.
 */
export function* checkConversation(
  { messages }: RawRequest,
  { judgesAsVendor }: Profile,
  warnings: string[],
): Steps<void> {
  if (messages.length === 0) throw refusal("messages", "at least one message is required");
  const complain = (path: string, words: string): void => {
    if (judgesAsVendor) throw refusal(path, words);
    warnings.push(`${path}: ${words}`);
  };
  let open: string[] = [];
  const pace = new Pace();
  for (const [index, message] of messages.entries()) {
    const blocks = blocksOf(message);
    if (pace.isOver(1 + blocks.length)) yield;
    checkRoles(message, blocks, index);
    if (isEmpty(message, index === messages.length - 1)) {
      complain(
        `messages.${index}`,
        "all messages must have non-empty content except for the optional final assistant message",
      );
    }
    if (message.role === "system") continue;
    if (message.role === "user") {
      const { leading, all } = resultIds(blocks);
      if (leading.size < all.size && !judgesAsVendor) warnings.push(`messages.${index}: ${movedResults}`);
      // Anthropic reads only the results that come before every other block.
      const results = judgesAsVendor ? leading : all;
      const called = new Set(open);
      for (const id of all) if (!called.has(id)) complain(`messages.${index}`, unexpectedResult(id));
      const missing = open.filter((id) => !results.has(id));
      if (missing.length > 0) complain(`messages.${index - 1}`, unansweredCall(missing));
      open = [];
    } else {
      for (const block of blocks) if (block.type === "tool_use") open.push(block.id);
    }
  }
  if (open.length > 0) complain(`messages.${messages.length - 1}`, unansweredCall(open));
  checkPrefill(messages.at(-1), complain);
}

function blocksOf({ content }: RawMessage): readonly RawBlock[] {
  return typeof content === "object" ? content : [];
}

/** The ids that a message's `tool_result` blocks answer: all, and those of the blocks that come before every other block. */
function resultIds(blocks: readonly RawBlock[]): {
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

const movedResults = "`tool_result` blocks come first in a message; these were moved before its other blocks";

function isEmpty({ role, content, output_config: config }: RawMessage, isLast: boolean): boolean {
  return (content?.length ?? 0) === 0 && !(isLast && role === "assistant") && !config;
}

const ofUsers: ReadonlySet<string> = new Set(["image", "document", "search_result", "tool_result"]);
const ofSystem: ReadonlySet<string> = new Set(["tool_addition", "tool_removal"]);
const ofAssistants: ReadonlySet<string> = new Set(["thinking", "redacted_thinking", "tool_use"]);

function checkRoles({ role }: RawMessage, blocks: readonly RawBlock[], index: number): void {
  for (const { type } of blocks) {
    const owner = ofUsers.has(type)
      ? "user"
      : ofAssistants.has(type)
        ? "assistant"
        : ofSystem.has(type)
          ? "system"
          : role;
    if (owner === role) continue;
    throw invalidRequest(
      `messages.${index}: \`${type}\` blocks can only be in \`${owner}\` messages`,
      `messages.${index}`,
    );
  }
}

function checkPrefill(last: RawMessage | undefined, complain: (path: string, words: string) => void): void {
  if (last?.role !== "assistant") return;
  const final = typeof last.content === "string" ? last.content : blocksOf(last).at(-1);
  const text = typeof final === "string" ? final : final?.type === "text" ? final.text : "";
  if (/\s$/.test(text)) complain("messages", "final assistant content cannot end with trailing whitespace");
}

function unexpectedResult(id: string): string {
  return `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
}

function unansweredCall(ids: readonly string[]): string {
  return `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
}
