import { assistantContent, assistantParts, type Message, type ToolCallPart } from "../../core/message.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type { JsonObject } from "../../core/json.ts";
import { codedRefusal } from "./request-issue.ts";
import type { ContextEdit } from "./request-schema.ts";

/** Counts the tokens of a request's prompt. Rejects with `FailureError`. */
export type CountTokens = (request: GenerationRequest) => Promise<number>;

/** A request after its edits, and `applied_edits` of the answer: the edits that cleared something. */
export interface EditedContext {
  readonly request: GenerationRequest;
  readonly applied: readonly JsonObject[];
}

/** What is left of a cleared result or input. */
const clearedResult = "[The result of this call was cleared to save context.]";
const clearedInput = "{}";

/**
 * Applies the edits of `context_management` to a conversation, in their order. The client's own messages stay as they are.
 *
 * Rejects with `FailureError` if the prompt has reached the trigger of `compact_20260112`: nothing here summarizes conversations. Source:
 * https://platform.claude.com/docs/en/build-with-claude/context-editing, and the types of Anthropic's SDK 1.12.0.
 */
export async function editContext(
  request: GenerationRequest,
  edits: readonly ContextEdit[],
  count: CountTokens,
): Promise<EditedContext> {
  let edited = request;
  const applied: JsonObject[] = [];
  for (const [at, edit] of edits.entries()) {
    if (edit.type === "compact_20260112") {
      const tokens = await count(edited);
      const most = edit.trigger?.value ?? defaultCompactTrigger;
      if (tokens >= most) throw noCompaction(at, tokens, most);
      continue;
    }
    const { messages } = promptOf(edited);
    const { changed, cleared, member } =
      edit.type === "clear_thinking_20251015"
        ? { ...withoutThinking(messages, edit), member: "cleared_thinking_turns" }
        : { ...(await withoutToolUses(edited, edit, count)), member: "cleared_tool_uses" };
    if (cleared === 0) continue;
    const next = withMessages(edited, changed);
    const tokens = (await count(edited)) - (await count(next));
    const least = edit.type === "clear_tool_uses_20250919" ? (edit.clear_at_least?.value ?? 0) : 0;
    if (tokens < least) continue;
    edited = next;
    applied.push({ type: edit.type, [member]: cleared, cleared_input_tokens: Math.max(0, tokens) });
  }
  return { request: edited, applied };
}

const defaultCompactTrigger = 150_000;
const defaultClearTrigger = 100_000;
const defaultKeptToolUses = 3;
const defaultKeptThinkingTurns = 1;

interface Clearing {
  readonly changed: readonly Message[];
  /** The number of tool uses or turns that were cleared. */
  readonly cleared: number;
}

/** Removes the reasoning of all turns but the last ones that have any. A turn ends with the next message of the user. */
function withoutThinking(
  messages: readonly Message[],
  { keep }: Extract<ContextEdit, { type: "clear_thinking_20251015" }>,
): Clearing {
  if (keep === "all" || keep?.type === "all") return { changed: messages, cleared: 0 };
  const kept = keep?.value ?? defaultKeptThinkingTurns;
  let turns = 0;
  let isCounted = false;
  const cleared = new Set<number>();
  const changed = [...messages];
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at];
    if (message?.role === "user") isCounted = false;
    if (message?.role !== "assistant") continue;
    const parts = assistantParts(message);
    const others = parts.filter(({ type }) => type !== "reasoning");
    if (others.length === parts.length) continue;
    if (!isCounted) turns++;
    isCounted = true;
    if (turns <= kept) continue;
    cleared.add(turns);
    changed[at] = { ...message, content: assistantContent(others) };
  }
  return { changed, cleared: cleared.size };
}

/** Clears the results of the oldest calls, and their inputs if the edit says so, if its trigger is reached. */
async function withoutToolUses(
  request: GenerationRequest,
  edit: Extract<ContextEdit, { type: "clear_tool_uses_20250919" }>,
  count: CountTokens,
): Promise<Clearing> {
  const { messages } = promptOf(request);
  const { trigger, keep, exclude_tools: excluded, clear_tool_inputs: inputs } = edit;
  const calls = messages.flatMap((message): readonly ToolCallPart[] =>
    message.role === "assistant" ? assistantParts(message).filter((part) => part.type === "tool-call") : [],
  );
  const size = trigger?.type === "tool_uses" ? calls.length : await count(request);
  if (size <= (trigger?.value ?? defaultClearTrigger)) return { changed: messages, cleared: 0 };
  const answered = new Set(messages.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : [])));
  const old = calls
    .slice(0, Math.max(0, calls.length - (keep?.value ?? defaultKeptToolUses)))
    .filter(({ id, name }) => answered.has(id) && !excluded?.includes(name));
  const ids = new Set(old.map(({ id }) => id));
  const clearsInput = ({ id, name }: ToolCallPart): boolean =>
    ids.has(id) && (inputs === true || (Array.isArray(inputs) && inputs.includes(name)));
  const changed = messages.map((message): Message => {
    if (message.role === "tool") return ids.has(message.toolCallId) ? { ...message, content: clearedResult } : message;
    if (message.role !== "assistant") return message;
    const parts = assistantParts(message);
    if (!parts.some((part) => part.type === "tool-call" && clearsInput(part))) return message;
    return {
      ...message,
      content: parts.map((part) =>
        part.type === "tool-call" && clearsInput(part) ? { ...part, arguments: clearedInput } : part,
      ),
    };
  });
  return { changed, cleared: ids.size };
}

function promptOf({ prompt }: GenerationRequest) {
  if (prompt.kind !== "chat") throw new TypeError("A Messages request has a conversation.");
  return prompt;
}

function withMessages(request: GenerationRequest, messages: readonly Message[]): GenerationRequest {
  return { ...request, prompt: { ...promptOf(request), messages } };
}

/** Anthropic's clients know the code, and continue without compaction. */
function noCompaction(at: number, tokens: number, most: number) {
  const path = `context_management.edits.${at}`;
  return codedRefusal(
    path,
    `The prompt has ${tokens} tokens and reaches the trigger of ${most}, but this server does not summarize conversations. ` +
      "Send a shorter conversation, or `clear_tool_uses_20250919` instead.",
    "compaction_unavailable",
  );
}
