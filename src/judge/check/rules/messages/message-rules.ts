import * as z from "zod";
import { isOpen, membersOf, unwrapped, variantsOf } from "../../../../wire/apis/members.ts";
import {
  contentBlock,
  messageDiagnostics,
  messageIdentity,
  messageUsage as usageSchema,
  stopReason,
} from "../../../../wire/apis/messages/schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { callIn, notOnlyJson, reasoningTagIn, specialTokenIn } from "../violations.ts";
import { shown } from "../place.ts";
import type { Json } from "../view.ts";
import {
  callsIn,
  messageExpectations,
  isUncut,
  type MessageBlock,
  type MessageRule,
  messageRulesOf,
  messageText,
  type MessageView,
  promptTokens,
} from "./message-view.ts";

/* Rules about messages, streamed or not. Source: 316 recorded streams and 586 recorded bodies of 2024 to 2026; issues as named. */

const lost = "text is lost or wrong";
const breaking = "tool calls break";
const ending = "the answer seems to end wrongly";
const wrongCounts = "token counts are wrong";
const misunderstood = "requests are misunderstood";
const shapes = "Anthropic's documentation: Messages; official SDKs: the types of 0.120.0";

/** The schemas of the reasons of a cache miss, by type. */
const missReasons = variantsOf(
  unwrapped(messageDiagnostics.shape.cache_miss_reason) as z.ZodDiscriminatedUnion,
) as ReadonlyMap<unknown, z.ZodObject>;

const hasCalls = (view: MessageView) => callsIn(view).length > 0;
const isNamed = (value: unknown) => typeof value === "string" && value !== "";

/** Rules about the message and its blocks. */
const contentRules: readonly MessageRule[] = messageRulesOf([
  {
    id: "messages/message",
    severity: "error",
    concern: lost,
    says: 'A message has an id, type "message", role "assistant", its model, and content, an array of blocks with a type.',
    source: `${shapes}; recordings 902 of 902`,
    breaks: ["typed clients (Go, Rust, Java, C#)", "AI SDK (schema)"],
    *judge({ message, at }) {
      for (const { name, schema } of membersOf(messageIdentity))
        if (!schema.safeParse(message[name]).success) yield at(name, `${name} ${shown(message[name])}`);
      const { content } = message;
      if (!Array.isArray(content)) yield at("content", `content is ${shown(content)}`);
      else if (!content.every((block) => isObject(block) && isNamed(block.type)))
        yield at("content", "a block without a type");
    },
  },
  {
    id: "messages/block-members",
    severity: "error",
    concern: lost,
    says: "A text block has its text, a thinking block its thinking and signature, a call its input, an object.",
    source: `${shapes}; recordings 812 of 812 blocks`,
    breaks: ["typed clients (Go, Rust, Java, C#)", "AI SDK (schema)", "agents (there is no input)"],
    // A stream's events have rules of their own.
    shown: ({ isStream, blocks }) => !isStream && blocks.length > 0,
    *judge({ blocks }) {
      for (const { value, at } of blocks) {
        const name = wrongMember(value);
        if (name !== undefined) yield at(name, `${String(value.type)} with ${name} ${shown(value[name])}`);
      }
    },
  },
  {
    id: "messages/id-form",
    severity: "note",
    concern: "it differs from Anthropic",
    says: "The id of a message begins with msg_, that of a call with toolu_.",
    source: "recordings 902 of 902 messages, 245 of 245 calls",
    *judge(view) {
      const { id } = view.message;
      if (typeof id === "string" && !id.startsWith("msg_")) yield view.at("id", `id ${shown(id)}`);
      for (const { value, at } of callsIn(view))
        if (typeof value.id === "string" && !value.id.startsWith("toolu_")) yield at("id", `id ${shown(value.id)}`);
    },
  },
  {
    id: "messages/diagnostics",
    severity: "error",
    concern: "requests are misunderstood",
    says: "diagnostics is null or has cache_miss_reason: null, or an object with a type, and with a count of tokens where the request has changed.",
    source: "Anthropic's documentation: Cache diagnostics; the types of SDK 1.12.0; recordings since 2026-09",
    breaks: ["typed clients (Go, Rust, Java, C#)"],
    shown: ({ message }) => isObject(message.diagnostics),
    *judge({ message, at }) {
      const { diagnostics } = message;
      const reason = isObject(diagnostics) ? diagnostics.cache_miss_reason : undefined;
      if (reason === null) return;
      if (!isObject(reason) || !isNamed(reason.type))
        return yield at("cache_miss_reason", `cache_miss_reason is ${shown(reason)}`);
      const isWrong = missReasons.get(reason.type)?.safeParse(reason).success === false;
      if (isWrong) yield at("cache_miss_reason", `cache_miss_reason is ${shown(reason)}`);
    },
  },
  {
    id: "messages/diagnostics-known",
    severity: "note",
    concern: "it differs from Anthropic",
    says: `The reason of a cache miss is one of ${[...missReasons.keys()].join(", ")}.`,
    source: "Anthropic's documentation: Cache diagnostics",
    shown: ({ message }) => isObject(message.diagnostics) && isObject(message.diagnostics.cache_miss_reason),
    *judge({ message, at }) {
      const { diagnostics } = message;
      const reason = isObject(diagnostics) ? diagnostics.cache_miss_reason : undefined;
      if (isObject(reason) && isNamed(reason.type) && !missReasons.has(reason.type))
        yield at("cache_miss_reason", `the reason ${shown(reason.type)}`);
    },
  },
  {
    id: "messages/empty-text",
    severity: "warning",
    concern: breaking,
    says: "No text block next to a call is empty.",
    source: "recordings 221 of 221 messages with calls; LiteLLM #34692, claude-code #88536",
    breaks: ["Claude Code and agents that send it back (text content blocks must be non-empty)"],
    shown: hasCalls,
    *judge({ blocks }) {
      for (const { value, at } of blocks)
        if (value.type === "text" && value.text === "") yield at("text", "an empty text");
    },
  },
  {
    id: "messages/tool-id",
    severity: "error",
    concern: breaking,
    says: "Every call has an id of its own.",
    source: `${shapes} (results are matched by it)`,
    breaks: ["every agent (a result cannot be matched)"],
    shown: hasCalls,
    *judge(view) {
      const seen = new Set<unknown>();
      for (const { value, at } of callsIn(view)) {
        if (!isNamed(value.id)) yield at("id", `a call with id ${shown(value.id)}`);
        else if (seen.has(value.id)) yield at("id", `the id ${shown(value.id)} again`);
        seen.add(value.id);
      }
    },
  },
  {
    id: "messages/tool-id-letters",
    severity: "warning",
    concern: breaking,
    says: "The id of a call has letters, digits, _ and - only.",
    source: "recordings 245 of 245 calls; CLIProxyAPI #1875, ClawRouter #17 (Anthropic refuses others in a history)",
    breaks: ["agents that go on with another server (tool_use.id: String should match pattern)"],
    shown: hasCalls,
    *judge(view) {
      for (const { value, at } of callsIn(view))
        if (typeof value.id === "string" && /[^a-zA-Z0-9_-]/.test(value.id)) yield at("id", `id ${shown(value.id)}`);
    },
  },
  {
    id: "messages/tool-name",
    severity: "error",
    concern: breaking,
    says: "Every call has the name of its tool.",
    source: shapes,
    breaks: ["every agent (there is nothing to run)"],
    shown: hasCalls,
    *judge(view) {
      for (const { value, at } of callsIn(view))
        if (!isNamed(value.name)) yield at("name", `a call named ${shown(value.name)}`);
    },
  },
  {
    id: "messages/known-tool",
    severity: "error",
    concern: breaking,
    says: "Only tools that the request declared are called.",
    source: "Anthropic's documentation: Tool use; recordings 244 of 245 calls (a proxy had added the tool)",
    breaks: ["every agent (there is nothing to run)"],
    shown: (view) => hasCalls(view) && messageExpectations(view).tools !== undefined,
    *judge(view) {
      const { tools } = messageExpectations(view);
      for (const { value, at } of callsIn(view))
        if (isNamed(value.name) && tools?.has(value.name) === false) yield at("name", `a call of ${shown(value.name)}`);
    },
  },
  {
    id: "messages/reasoning-in-text",
    severity: "warning",
    concern: lost,
    says: "Text does not begin with reasoning in <think> or similar tags.",
    source: "Qwen2API #121, local-openai2anthropic #1; recordings 899 of 902 (Claude 3 wrote <thinking>)",
    breaks: ["clients that show the text", "structured output (the JSON begins with reasoning)"],
    *judge({ blocks }) {
      for (const { at, found } of texts(blocks, reasoningTagIn)) yield at("text", `text that begins ${shown(found)}`);
    },
  },
  {
    id: "messages/call-in-text",
    severity: "warning",
    concern: breaking,
    says: "Text does not contain tool calls in the model's own markup.",
    source: "LM Studio #2115, oMLX #2565; recordings 902 of 902",
    breaks: ["every agent: it sees text and no call"],
    shown: (view) => view.exchange.request.body !== undefined && !messageExpectations(view).silent,
    *judge({ blocks, message }) {
      // A call that the limit cut before its name was complete can only be shown as the text that it is.
      if (message.stop_reason === "max_tokens") return;
      for (const { at, found } of texts(blocks, callIn)) yield at("text", `${found} in text`);
    },
  },
  {
    id: "messages/special-token",
    severity: "warning",
    concern: lost,
    says: "Text does not end with a special token of the model.",
    source: "vLLM #2538, mlx-examples #489; recordings 902 of 902",
    breaks: ["users see <|im_end|>"],
    *judge({ blocks }) {
      for (const { at, found } of texts(blocks, specialTokenIn)) yield at("text", `text that ends with ${found}`);
    },
  },
]);

const reasons = "Anthropic's documentation: Handling stop reasons";

const counts = membersOf(usageSchema).filter(({ schema }) => unwrapped(schema) instanceof z.ZodNumber);
const hasUsage = ({ message, isComplete }: MessageView) => isComplete && isObject(message.usage);

/** Rules about the end of a message, and its usage. */
const endingRules: readonly MessageRule[] = messageRulesOf([
  {
    id: "messages/stop-reason",
    severity: "error",
    concern: ending,
    says: "stop_reason is end_turn, max_tokens, stop_sequence, tool_use, pause_turn, refusal, compaction or model_context_window_exceeded.",
    source: `${reasons}; official SDKs: the types of 0.120.0; recordings 902 of 902`,
    breaks: ["typed clients (Rust, Java, C#)", "agents (they do not know whether to go on)"],
    shown: ({ isComplete }) => isComplete,
    *judge({ message, at }) {
      if (!stopReason.safeParse(message.stop_reason).success)
        yield at("stop_reason", `stop_reason ${shown(message.stop_reason)}`);
    },
  },
  {
    id: "messages/tool-stop",
    severity: "error",
    concern: breaking,
    says: "A message with a call ends with tool_use, unless something cut it.",
    source: `${reasons}; recordings 220 of 220; LiteLLM #34692, bifrost #3638`,
    breaks: ["agents (the tool is never run)", "official SDKs' tool runners"],
    shown: (view) => view.isComplete && callsIn(view).length > 0,
    *judge({ message, at }) {
      const { stop_reason: reason } = message;
      if (reason === "end_turn" || reason === "stop_sequence") yield at("stop_reason", `${reason} next to a call`);
    },
  },
  {
    id: "messages/tool-stop-made",
    severity: "error",
    concern: breaking,
    says: "A message that ends with tool_use has a call.",
    source: `${reasons}; recordings 220 of 220`,
    breaks: ["agents (they wait for calls that never come)"],
    shown: ({ message }) => message.stop_reason === "tool_use",
    *judge(view) {
      if (callsIn(view).length === 0) yield view.at("stop_reason", "tool_use without a call");
    },
  },
  {
    id: "messages/stop-sequence",
    severity: "error",
    concern: ending,
    says: "stop_sequence is the sequence of the request that ended the message, with that stop_reason; else null.",
    source: `${reasons}; recordings 902 of 902; vLLM #45807`,
    breaks: ["clients that ask which sequence it was"],
    shown: ({ isComplete }) => isComplete,
    *judge({ message, exchange, at }) {
      const { stop_reason: reason, stop_sequence: stop = null } = message;
      const requested = exchange.request.body?.stop_sequences;
      if (reason !== "stop_sequence") {
        if (stop !== null) yield at("stop_sequence", `${shown(stop)} with ${shown(reason)}`);
      } else if (typeof stop !== "string") yield at("stop_sequence", `stop_sequence ${shown(stop)}`);
      else if (exchange.request.body && !(Array.isArray(requested) && requested.includes(stop)))
        yield at("stop_sequence", `${shown(stop)}, which was not requested`);
    },
  },
  {
    id: "messages/usage",
    severity: "error",
    concern: wrongCounts,
    says: "A message has a usage: input_tokens and output_tokens, and where they are there the tokens of the cache, all whole numbers.",
    source: "Anthropic's documentation: Messages; recordings 902 of 902; free-claude-code #209",
    breaks: ["official SDKs", "AI SDK (schema)", "Claude Code (undefined is not an object)"],
    follows: ["messages/start-usage", "messages/end-usage"],
    shown: ({ isComplete }) => isComplete,
    *judge({ message, at }) {
      const { usage } = message;
      if (!isObject(usage)) {
        yield at("usage", `usage is ${shown(usage)}`);
        return;
      }
      for (const { name, schema, since } of counts) {
        const count = usage[name];
        const isAbsent = since !== undefined && count === undefined;
        if (!isAbsent && !schema.safeParse(count).success) yield at(name, `${name} is ${shown(count)}`);
      }
    },
  },
  {
    id: "messages/usage-counted",
    severity: "warning",
    concern: wrongCounts,
    says: "The tokens of prompt and answer were counted: neither is 0 in the end.",
    source: "recordings 902 of 902; Ollama #13934, grok2api #612, AIClient2API #71",
    breaks: ["Claude Code (it does not see its context fill, and never compacts)", "callers that budget"],
    follows: ["messages/usage"],
    shown: hasUsage,
    *judge({ message, blocks, at }) {
      if (!isObject(message.usage)) return;
      if (promptTokens(message.usage) === 0) yield at("input_tokens", "a prompt of 0 tokens");
      if (blocks.length > 0 && message.usage.output_tokens === 0) yield at("output_tokens", "an answer of 0 tokens");
    },
  },
  {
    id: "messages/usage-thinking",
    severity: "error",
    concern: wrongCounts,
    says: "thinking_tokens are part of output_tokens.",
    source: "official SDKs: output_tokens_details; recordings 169 of 169",
    breaks: ["callers that budget (they subtract)"],
    shown: ({ message }) => isObject(message.usage) && isObject(message.usage.output_tokens_details),
    *judge({ message, at }) {
      const usage = isObject(message.usage) ? message.usage : {};
      const details = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {};
      const { thinking_tokens: thinking } = details;
      if (typeof thinking === "number" && typeof usage.output_tokens === "number" && thinking > usage.output_tokens)
        yield at("thinking_tokens", `${thinking} of ${usage.output_tokens}`);
    },
  },
]);

const choice = "Anthropic's documentation: tool_choice";

/** Rules about a message and its request. */
const requestRules: readonly MessageRule[] = messageRulesOf([
  {
    id: "messages/stop-text",
    severity: "error",
    concern: misunderstood,
    says: "The text does not contain a stop sequence of the request.",
    source: "Anthropic's documentation: stop_sequences; recordings: no counterexample",
    breaks: ["agents that parse text up to a mark"],
    shown: (view) => messageExpectations(view).stops.length > 0,
    *judge(view) {
      const stop = messageExpectations(view).stops.find((one) => messageText(view).includes(one));
      if (stop !== undefined) yield view.at("stop_reason", `the stop sequence ${shown(stop)} in the text`);
    },
  },
  {
    id: "messages/max-tokens",
    severity: "error",
    concern: misunderstood,
    says: "A message has at most max_tokens tokens.",
    source: "Anthropic's documentation: max_tokens; recordings 894 of 894",
    breaks: ["callers that budget"],
    shown: (view) => view.isComplete && messageExpectations(view).limit !== undefined && isObject(view.message.usage),
    *judge(view) {
      const { usage } = view.message;
      const used = isObject(usage) ? usage.output_tokens : 0;
      const { limit = Infinity } = messageExpectations(view);
      if (typeof used === "number" && used > limit) yield view.at("output_tokens", `${used} tokens, ${limit} allowed`);
    },
  },
  {
    id: "messages/required",
    severity: "error",
    concern: misunderstood,
    says: "With tool_choice any, or a named tool, there is a call.",
    source: `${choice}; recordings: no counterexample`,
    breaks: ["agents and structured extraction"],
    shown: (view) => isUncut(view) && messageExpectations(view).forced,
    *judge(view) {
      if (callsIn(view).length === 0) yield view.at("stop_reason", "no call");
    },
  },
  {
    id: "messages/named",
    severity: "error",
    concern: misunderstood,
    says: "With a named tool, only that tool is called.",
    source: `${choice}; recordings: no counterexample`,
    breaks: ["agents and structured extraction"],
    shown: (view) => messageExpectations(view).named !== undefined,
    *judge(view) {
      for (const { value, at } of callsIn(view))
        if (value.name !== messageExpectations(view).named) yield at("name", `a call of ${shown(value.name)}`);
    },
  },
  {
    id: "messages/no-tools",
    severity: "error",
    concern: misunderstood,
    says: "With tool_choice none, or without tools, there is no call.",
    source: `${choice}; recordings: no counterexample`,
    breaks: ["agents that want an answer in words"],
    shown: (view) => messageExpectations(view).silent,
    *judge(view) {
      for (const { value, at } of callsIn(view)) yield at("name", `a call of ${shown(value.name)}`);
    },
  },
  {
    id: "messages/parallel",
    severity: "error",
    concern: misunderstood,
    says: "With disable_parallel_tool_use there is at most one call.",
    source: `${choice}, disable_parallel_tool_use; recordings: no counterexample; ogx #5975`,
    breaks: ["agents whose tools must run one after the other"],
    shown: (view) => messageExpectations(view).single,
    *judge(view) {
      const [, second] = callsIn(view);
      if (second) yield second.at("name", `${callsIn(view).length} calls`);
    },
  },
  {
    id: "messages/json",
    severity: "error",
    concern: misunderstood,
    says: "With output_config.format the text is one JSON value.",
    source: "Anthropic's documentation: Structured outputs; recordings 32 of 32 bodies",
    breaks: ["structured extraction (JSON.parse throws)"],
    shown: (view) => isUncut(view) && messageExpectations(view).json && callsIn(view).length === 0,
    *judge(view) {
      for (const found of notOnlyJson(messageText(view))) yield view.at("stop_reason", found);
    },
  },
  {
    id: "messages/no-thinking",
    severity: "warning",
    concern: misunderstood,
    says: "With thinking disabled there is no thinking block.",
    source: "Anthropic's documentation: Extended thinking; recordings: no counterexample",
    breaks: ["callers that want none (they wait and pay for it)"],
    shown: (view) => messageExpectations(view).withoutThinking,
    *judge({ blocks }) {
      for (const { value, at } of blocks) if (value.type === "thinking") yield at("thinking", "a thinking block");
    },
  },
]);

/** Every rule about a message of the Messages API, streamed or not. */
export const messageRules: readonly MessageRule[] = [...contentRules, ...endingRules, ...requestRules];

/** Returns the first member of a block that its schema refuses. A call's id and name have rules of their own. */
function wrongMember(block: Json): string | undefined {
  const schema = variantsOf(contentBlock).get(block.type);
  if (schema === undefined || isOpen(schema)) return undefined;
  const members = membersOf(schema).filter(
    ({ name, always, since }) => always && since === undefined && !ofCalls.has(name),
  );
  return members.find(({ name, schema }) => !schema.safeParse(block[name]).success)?.name;
}

const ofCalls: ReadonlySet<string> = new Set(["id", "name"]);

/** Returns the text blocks in which `find` finds something. */
function texts(blocks: readonly MessageBlock[], find: (text: string) => string | undefined) {
  return blocks.flatMap(({ value, at }) => {
    const found = value.type === "text" && typeof value.text === "string" ? find(value.text) : undefined;
    return found === undefined ? [] : [{ at, found }];
  });
}
