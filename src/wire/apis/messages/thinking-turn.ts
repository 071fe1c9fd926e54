import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { isOn } from "../adapt/server-profile.ts";
import type { NoteAdaptation, RequestBody, ServerProfile } from "../adapt/server-profile.ts";
import { claudeVersion, fittingEffort, thinkingBudget } from "./claude-versions.ts";
import type { ClaudeVersion } from "./claude-versions.ts";

/*
 * A turn of the assistant, all steps of its tool loop included, is in one mode of thinking: with `thinking: enabled`, it begins with a
 * thinking block; without thinking, it has none. A turn that another model has begun, or whose blocks are lost, cannot continue with
 * `enabled`: Anthropic answers "Expected `thinking` or `redacted_thinking`, but found `tool_use`". Later steps of a turn need no block: without
 * interleaved thinking, a model thinks only at the beginning. Sources:
 * https://platform.claude.com/docs/en/build-with-claude/extended-thinking, "Toggling thinking modes in conversations";
 * https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking: a turn with `adaptive` may begin with any block.
 */

/**
 * Returns the body of a request with thinking that its running turn can continue with: `adaptive` where the model has it, else none, without
 * what depends on thinking. Returns `body` itself if it is right. Calls `note` for a change.
 */
export function withFittingThinking(body: RequestBody, profile: ServerProfile, note: NoteAdaptation): RequestBody {
  const { thinking, messages } = body;
  if (!isObject(thinking) || thinking["type"] !== "enabled" || !isOn(profile, "thinking-mode")) return body;
  if (profile.reasoningHistory === true) return body;
  const begin = beginOfTurn(messages);
  if (begin === undefined || startsWithThinking(messageAt(messages, begin))) return body;
  note("thinking-mode", "thinking");
  const { budget_tokens: _, ...others } = thinking;
  if (claudeVersion(body["model"])?.thinking.includes("adaptive"))
    return { ...body, thinking: { ...others, type: "adaptive" } };
  return withoutThinking(body);
}

/** Returns the body without `thinking` and what depends on it. */
function withoutThinking(body: RequestBody): RequestBody {
  const { thinking: _, ...others } = body;
  const { context_management: management, messages } = body;
  return {
    ...others,
    messages: withoutTurnThinking(messages),
    ...(isObject(management) && { context_management: withoutThinkingEdits(management) }),
  };
}

/**
 * Returns the body of a client that has written it for another model, with the thinking and the effort that this version of Claude takes, as near
 * as it can be. Returns `body` itself if the version takes it as it is. Calls `note` for a change.
 */
export function withVersionThinking(
  body: RequestBody,
  version: ClaudeVersion,
  profile: ServerProfile,
  note: NoteAdaptation,
): RequestBody {
  if (!isOn(profile, "thinking-mode")) return body;
  const { thinking, output_config: config, max_tokens: limit, tool_choice: choice } = body;
  const effort = isObject(config) && typeof config["effort"] === "string" ? config["effort"] : undefined;
  let fitted = body;
  if (isObject(config) && effort !== undefined && !version.efforts.includes(effort)) {
    note("thinking-mode", "output_config.effort");
    const { effort: _, ...others } = config;
    const nearest = fittingEffort(effort, version.efforts);
    const { output_config: __, ...rest } = body;
    if (nearest !== undefined) fitted = { ...rest, output_config: { ...others, effort: nearest } };
    else fitted = Object.keys(others).length > 0 ? { ...rest, output_config: others } : rest;
  }
  const takes = (type: unknown) => version.thinking.some((one) => one === type);
  if (!isObject(thinking) || takes(thinking["type"])) return fitted;
  note("thinking-mode", "thinking");
  const { type, budget_tokens: _, ...others } = thinking;
  if (type === "enabled" && takes("adaptive")) return { ...fitted, thinking: { ...others, type: "adaptive" } };
  // A forced call is refused together with a budget.
  const isForced = isObject(choice) && (choice["type"] === "any" || choice["type"] === "tool");
  const budget =
    type === "adaptive" && takes("enabled") && !isForced
      ? thinkingBudget({ ...(effort !== undefined && { effort }) }, typeof limit === "number" ? limit : undefined)
      : undefined;
  if (budget === undefined) return withoutThinking(fitted);
  return { ...fitted, thinking: { ...others, type: "enabled", budget_tokens: budget } };
}

/** Returns messages without the thinking of the running turn, `messages` itself if it has none. */
export function withoutTurnThinking<Messages>(messages: Messages): Messages | unknown[] {
  const begin = beginOfTurn(messages);
  if (begin === undefined || !Array.isArray(messages)) return messages;
  const isInTurn = (message: unknown, at: number) => at >= begin && blocksOf(message).some(isThinking);
  if (!messages.some(isInTurn)) return messages;
  return messages.map((message: unknown, at) =>
    isObject(message) && isInTurn(message, at)
      ? { ...message, content: blocksOf(message).filter((block) => !isThinking(block)) }
      : message,
  );
}

/** Returns the index of the assistant's first message in a tool loop that the request continues; `undefined` if it continues none. */
export function beginOfTurn(messages: unknown): number | undefined {
  if (!Array.isArray(messages)) return undefined;
  let begin: number | undefined;
  let isContinued = false;
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messageAt(messages, at);
    if (message?.["role"] === "system") continue;
    if (message?.["role"] === "assistant") {
      if (!isContinued) return undefined;
      begin = at;
    } else if (blocksOf(message).some(({ type }) => type === "tool_result")) isContinued = true;
    else break;
  }
  return begin;
}

function messageAt(messages: unknown, at: number): JsonObject | undefined {
  const message: unknown = Array.isArray(messages) ? messages[at] : undefined;
  return isObject(message) ? message : undefined;
}

function blocksOf(message: unknown): readonly JsonObject[] {
  const content = isObject(message) ? message["content"] : undefined;
  return Array.isArray(content) ? content.filter(isObject) : [];
}

function isThinking({ type }: JsonObject): boolean {
  return type === "thinking" || type === "redacted_thinking";
}

function startsWithThinking(message: JsonObject | undefined): boolean {
  const [first] = blocksOf(message);
  return first !== undefined && isThinking(first);
}

/** Anthropic refuses `clear_thinking_20251015` in a request without thinking. */
function withoutThinkingEdits(management: JsonObject): JsonObject {
  const { edits } = management;
  if (!Array.isArray(edits)) return management;
  const isOfThinking = (edit: unknown): boolean =>
    isObject(edit) && typeof edit["type"] === "string" && edit["type"].startsWith("clear_thinking");
  return { ...management, edits: edits.filter((edit) => !isOfThinking(edit)) };
}

/*
 * Servers with this API and models of their own, such as DeepSeek's and Kimi's, read thinking without a signature, and demand it back: "The
 * `content[].thinking` in the thinking mode must be passed back to the API." (anomalyco/opencode#24791, decolua/9router#2397)
 */

/** Returns the block of reasoning without a signature; none for servers that refuse it, as Anthropic does. */
export function unsignedThinking(text: string, profile: ServerProfile): RequestBody[] {
  return text !== "" && profile.reasoningHistory === true ? [{ type: "thinking", thinking: text, signature: "" }] : [];
}

/** Whether a server demands thinking with the calls of every message. */
export function demandsThinking(profile: ServerProfile): boolean {
  return (
    profile.reasoningDemand !== undefined && profile.reasoningHistory === true && isOn(profile, "reasoning-demand")
  );
}

/** Returns messages with empty thinking where the assistant has called a tool without any. Calls `note` for each such message. */
export function withDemandedThinking(messages: unknown, note: NoteAdaptation): unknown {
  if (!Array.isArray(messages)) return messages;
  return messages.map((message: unknown, at) => {
    const blocks = blocksOf(message);
    if (!isObject(message) || !blocks.some(({ type }) => type === "tool_use") || blocks.some(isThinking))
      return message;
    note("reasoning-demand", `messages[${at}]`);
    return { ...message, content: [{ type: "thinking", thinking: "", signature: "" }, ...blocks] };
  });
}
