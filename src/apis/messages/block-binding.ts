import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { StepCounter } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import { BodyCounter } from "../body-counter.ts";
import { addJson, Digest } from "../cache-diagnosis.ts";
import { promptSystem } from "./conversation.ts";
import { refusal } from "./request-issue.ts";
import type { ContentBlockParam, MessageParam, MessageRequest } from "./request-schema.ts";
import type { BlockBinding, TurnSeal } from "../turn-seal.ts";

/*
 * Binds thinking blocks to the conversation that they were created in, for requests with `thinking.block_binding`. The signature of a block
 * contains digests of the system prompt, the tools and the messages before it. Like the signature itself, this detects mistakes, not
 * forgery. Only blocks that this server has signed in profile `exact`, for such a request, are bound. Anthropic binds blocks without that
 * setting, too, but only of some models and for new accounts; agents that shorten their history or connect tools later rely on the others.
 * Source: recordings of 2026-10-05; the types of Anthropic's SDK 1.12.0, `BetaThinkingBlockBinding`.
 */

/** A change of the request, as `input_transformations` of the message reports it. */
export interface InputTransformation {
  readonly type: "thinking_dropped";
  readonly path: string;
  readonly reason: "prefix_binding_mismatch";
}

export interface BoundRequest {
  /** What thinking blocks of the answer are bound to. */
  readonly binding: BlockBinding;
  /** The messages of the request without the blocks that were dropped. */
  readonly messages: MessageRequest["messages"];
  readonly transformations: readonly InputTransformation[];
}

/**
 * Checks the thinking blocks of a request, and returns what those of its answer are bound to; `undefined` if the request has no
 * `block_binding`. Throws `FailureError` in Anthropic's words for a block of another conversation, unless the request says to drop such
 * blocks.
 */
export function* checkedBindings(request: MessageRequest, seal: TurnSeal): Steps<BoundRequest | undefined> {
  const { system = [], tools = [], thinking } = request;
  const setting = thinking && "block_binding" in thinking ? thinking.block_binding : undefined;
  if (!setting) return undefined;
  const drops = setting.prefix_mismatch_behavior === "drop_block";
  const settings = {
    system: (yield* digestOf(promptSystem(textBlocks(system).map(({ text }) => ({ type: "text", text }))))).value,
    tools: (yield* digestOf(tools.map(compared))).value,
  };
  const transformations: InputTransformation[] = [];
  const messages: MessageParam[] = [];
  const prefix = new Digest();
  const counter = new BodyCounter();
  const pace = new StepCounter();
  for (const [index, message] of request.messages.entries()) {
    // A client may send several answers as one message, so a block is bound to any beginning of its message.
    const prefixes = new Set([prefix.value]);
    const kept: ContentBlockParam[] = [];
    let isDropping = false;
    for (const [at, block] of blocksOf(message).entries()) {
      if (pace.endsStep()) yield;
      if (!isThinking(block)) {
        isDropping = false;
        kept.push(block);
        yield* addJson(prefix, [message.role, compared(block)]);
        prefixes.add(prefix.value);
        continue;
      }
      const bound = seal.open(block.type === "thinking" ? (block.signature ?? "") : block.data, counter)?.bound;
      const differing = bound && differenceOf(bound, settings, prefixes);
      const path = `messages.${index}.content.${at}`;
      if (differing !== undefined && !drops) throw refusal(path, mismatchWords(block.type, differing));
      // The thinking blocks directly after a dropped one are dropped with it.
      isDropping = isDropping || differing !== undefined;
      if (isDropping) transformations.push({ type: "thinking_dropped", path, reason: "prefix_binding_mismatch" });
      else kept.push(block);
    }
    const isChanged = typeof message.content === "object" && kept.length < message.content.length;
    messages.push(isChanged ? { ...message, content: kept } : message);
  }
  return {
    binding: { ...settings, prefix: prefix.value },
    messages,
    transformations,
  };
}

function blocksOf({ content = [] }: MessageParam): readonly ContentBlockParam[] {
  return textBlocks(content);
}

/** Clients send a text as a string or as a block: Claude Code changes its form between two requests. */
function textBlocks<Block>(content: string | Block[]): (Block | { type: "text"; text: string })[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

type ThinkingParam = Extract<ContentBlockParam, { type: "thinking" | "redacted_thinking" }>;

/** Thinking blocks are no part of the prefix: clients may leave out those of earlier turns. */
function isThinking(block: ContentBlockParam): block is ThinkingParam {
  return block.type === "thinking" || block.type === "redacted_thinking";
}

/** Returns a block or a tool without `cache_control`, which clients move with each request. */
function compared(sent: JsonObject): JsonObject {
  const { cache_control: _, ...value } = sent;
  const { content } = value;
  if (typeof content !== "string" && !Array.isArray(content)) return value;
  const blocks = textBlocks<unknown>(content);
  return { ...value, content: blocks.map((block) => (isObject(block) ? compared(block) : block)) };
}

function* digestOf(value: unknown): Steps<Digest> {
  const digest = new Digest();
  yield* addJson(digest, value);
  return digest;
}

type Part = keyof BlockBinding;

function differenceOf(
  bound: BlockBinding,
  { system, tools }: Pick<BlockBinding, "system" | "tools">,
  prefixes: ReadonlySet<string>,
): Part | undefined {
  if (bound.system !== system) return "system";
  if (bound.tools !== tools) return "tools";
  return prefixes.has(bound.prefix) ? undefined : "prefix";
}

/** Anthropic's sentence about different messages is not known, and left out. */
const differences: Readonly<Record<Part, string>> = {
  system: " The `system` prompt differs from the one this block was created with.",
  tools: " The `tools` list differs from the one this block was created with.",
  prefix: "",
};

function mismatchWords(type: ThinkingParam["type"], differing: Part): string {
  const signed = type === "thinking" ? "signature" : "data";
  return `Invalid \`${signed}\` in \`${type}\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block".${differences[differing]}`;
}
