import type * as z from "zod";
import { isOpen, membersOf, variantsOf } from "../../../../wire/apis/members.ts";
import {
  contentBlock,
  deltaTexts,
  extendedBlocks,
  messageUsage as usageSchema,
} from "../../../../wire/apis/messages/schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { atMember, shown } from "../place.ts";
import type { StreamRule } from "../rule.ts";
import { streamRulesOf } from "../stream/stream-rule.ts";
import { type Json, parsedJson, type StreamView } from "../view.ts";
import { messageEvents, promptTokens, type StreamEvent, textIn } from "./message-view.ts";

const streaming = "Anthropic's documentation: Streaming messages";
const lost = "text is lost or wrong";
const breaking = "tool calls break";
const wrongCounts = "token counts are wrong";

const blocks = (view: StreamView) => messageEvents(view).blocks;
const hasBlocks = (view: StreamView) => blocks(view).length > 0;
const ofType = (type: string) => (view: StreamView) => blocks(view).filter(({ value }) => value.type === type);
const calls = ofType("tool_use");
const thinking = ofType("thinking");

/** Rules about the start of blocks, and their deltas. Source: 586 recorded blocks and 5949 deltas of 2024 to 2026; issues as named. */
export const blockRules: readonly StreamRule[] = streamRulesOf(
  ["messages"],
  [
    {
      id: "messages/block-start",
      severity: "error",
      concern: lost,
      says: "content_block_start holds a block with all its members: text; thinking and signature; id, name and input; data.",
      source: `${streaming}; recordings 585 of 586 blocks; llama.cpp #22960, #20090`,
      breaks: ["typed clients (Go, Rust, Java, C#)", "AI SDK (schema)"],
      shown: hasBlocks,
      *judge(view) {
        for (const { start, value } of blocks(view)) {
          const { content_block: block } = start.chunk.value;
          if (!isObject(block) || typeof block.type !== "string") {
            yield atMember(start.chunk, "content_block", `content_block is ${shown(block)}`);
            continue;
          }
          const schema = variantsOf(contentBlock).get(block.type);
          const missing = schema && requiredMembers(schema).find((name) => !(name in value));
          if (missing !== undefined) yield atMember(start.chunk, "content_block", `${block.type} without ${missing}`);
        }
      },
    },
    {
      id: "messages/block-begins-empty",
      severity: "warning",
      concern: lost,
      says: 'A block begins empty: text "", thinking "", input {}; its deltas fill it.',
      source: `${streaming}; recordings 586 of 586 blocks; opencode #38733`,
      breaks: ["clients that read deltas only (they lose it)", "opencode before #38733"],
      shown: hasBlocks,
      *judge(view) {
        for (const { start, value } of blocks(view)) {
          const { type, text, thinking, input } = value;
          if (type === "text" && typeof text === "string" && text !== "")
            yield atMember(start.chunk, "text", shown(text));
          if (type === "thinking" && typeof thinking === "string" && thinking !== "")
            yield atMember(start.chunk, "thinking", shown(thinking));
          if (type === "tool_use" && isObject(input) && Object.keys(input).length > 0)
            yield atMember(start.chunk, "input", shown(input));
        }
      },
    },
    {
      id: "messages/delta-kind",
      severity: "error",
      concern: lost,
      says: "A delta is of its block's kind: text_delta in text, input_json_delta in tool_use, thinking_delta in thinking.",
      source: `${streaming}; recordings 5949 of 5949 deltas; SGLang #24293, CLIProxyAPI #539`,
      breaks: ["Claude Code (Content block is not a text block)", "official SDKs' stream helpers (they pass over it)"],
      shown: hasBlocks,
      *judge(view) {
        for (const { value, deltas } of blocks(view)) {
          for (const { event, value: delta } of deltas) {
            if (judgedBlocks.has(value.type) && extendedBlocks.get(delta.type)?.has(value.type) === false)
              yield atMember(event.chunk, "delta", `${String(delta.type)} in a block of type ${String(value.type)}`);
          }
        }
      },
    },
    {
      id: "messages/delta-member",
      severity: "error",
      concern: lost,
      says: "A delta has its type, and its text as a string: text, thinking, signature or partial_json.",
      source: `${streaming}; recordings 5949 of 5949 deltas`,
      breaks: ["every client (it concatenates strings)"],
      shown: (view) => blocks(view).some(({ deltas }) => deltas.length > 0),
      *judge(view) {
        for (const { event, value: delta } of blocks(view).flatMap(({ deltas }) => deltas)) {
          const { type } = delta;
          const member = deltaTexts.get(type);
          if (typeof type !== "string") yield atMember(event.chunk, "delta", `a delta of type ${shown(type)}`);
          else if (member !== undefined && typeof delta[member] !== "string")
            yield atMember(event.chunk, member, `${member} is ${shown(delta[member])}`);
        }
      },
    },
    {
      id: "messages/input-json",
      severity: "error",
      concern: breaking,
      says: "The joined partial_json of a call is one JSON object, or nothing at all.",
      source: `${streaming}; recordings 92 of 92 calls that were not cut; vLLM #45287`,
      breaks: ["every agent (JSON.parse throws)"],
      shown: (view) => calls(view).some(({ stop }) => stop !== undefined),
      *judge(view) {
        for (const { start, deltas, stop } of calls(view)) {
          const json = deltas.map(({ value }) => textIn(value, "partial_json")).join("");
          if (stop && json !== "" && !isObject(parsedJson(json)))
            yield atMember((deltas.at(-1)?.event ?? start).chunk, "partial_json", `input ${shown(json)}`);
        }
      },
    },
    {
      id: "messages/input-first",
      severity: "note",
      concern: "it differs from Anthropic",
      says: 'The first input_json_delta of a call is "".',
      source: "recordings 93 of 93 calls",
      shown: (view) => calls(view).length > 0,
      *judge(view) {
        for (const { start, deltas } of calls(view)) {
          const [first] = deltas;
          if (!first) yield atMember(start.chunk, "input", "a call without a delta");
          else if (first.value.partial_json !== "")
            yield atMember(first.event.chunk, "partial_json", "a first delta with text");
        }
      },
    },
    {
      id: "messages/signature",
      severity: "warning",
      concern: lost,
      says: "A thinking block gets one signature_delta, after all its thinking.",
      source: "Anthropic's documentation: Extended thinking; recordings 29 of 30 blocks; llama.cpp #20090",
      breaks: [
        "Claude Code and agents that send the block back (Anthropic refuses it)",
        "AI SDK (it drops the reasoning)",
      ],
      shown: (view) => thinking(view).some(({ stop }) => stop !== undefined),
      *judge(view) {
        for (const { start, deltas, stop } of thinking(view)) {
          const places = deltas.flatMap(({ value }, at) => (value.type === "signature_delta" ? [at] : []));
          const [first] = places;
          if (!stop) continue;
          if (first === undefined) yield atMember(start.chunk, "thinking", "thinking without a signature");
          else if (places.length > 1) yield atMember(start.chunk, "thinking", `${places.length} signatures`);
          else if (first !== deltas.length - 1)
            yield atMember(start.chunk, "thinking", "a signature before the end of the thinking");
        }
      },
    },
  ],
);

/** Returns the members that blocks of every date start with, without the type. */
function requiredMembers(schema: z.ZodObject): readonly string[] {
  const required = membersOf(schema).filter(({ always, since }) => always && since === undefined && !isOpen(schema));
  return required.flatMap(({ name }) => (name === "type" ? [] : [name]));
}

/** The blocks whose deltas are known: all but the results of Anthropic's own tools, which may get deltas of any type. */
const judgedBlocks: ReadonlySet<unknown> = new Set([
  ...[...variantsOf(contentBlock)].flatMap(([type, schema]) => (isOpen(schema) ? [] : [type])),
  ...[...extendedBlocks.values()].flatMap((types) => [...types]),
]);

function startOf(view: StreamView): StreamEvent | undefined {
  return messageEvents(view).events.find(({ type }) => type === "message_start");
}

function usageOf({ chunk }: StreamEvent): Json | undefined {
  const { usage, message } = chunk.value;
  const found = isObject(message) ? message.usage : usage;
  return isObject(found) ? found : undefined;
}

/** Rules about the usage of a stream. Source: 316 recorded streams of 2024 to 2026. */
export const messageUsageRules: readonly StreamRule[] = streamRulesOf(
  ["messages"],
  [
    {
      id: "messages/start-usage",
      severity: "error",
      concern: wrongCounts,
      says: "The message of message_start has a usage with input_tokens and output_tokens.",
      source: `${streaming}; recordings 316 of 316; free-claude-code #43, claude-code #46932`,
      breaks: ["Claude Code (undefined is not an object)", "AI SDK, pi (they read usage.input_tokens)"],
      shown: (view) => startOf(view) !== undefined,
      *judge(view) {
        const start = startOf(view);
        const usage = start && usageOf(start);
        if (!start) return;
        if (!usage) yield atMember(start.chunk, "usage", "no usage");
        for (const { name, always, since } of membersOf(usageSchema))
          if (always && since === undefined && usage && typeof usage[name] !== "number")
            yield atMember(start.chunk, "usage", `${name} is ${shown(usage[name])}`);
      },
    },
    {
      id: "messages/start-input",
      severity: "warning",
      concern: wrongCounts,
      says: "message_start has the tokens of the prompt, not 0.",
      source: `${streaming}; recordings 316 of 316; SGLang #20678, LiteLLM #41406, CLIProxyAPI #1700`,
      breaks: ["Claude Code (it shows an empty context while it works)"],
      shown: (view) => {
        const last = messageEvents(view).endings.at(-1);
        return startOf(view) !== undefined && last !== undefined && promptTokens(usageOf(last) ?? {}) > 0;
      },
      *judge(view) {
        const start = startOf(view);
        const usage = start && usageOf(start);
        if (usage && promptTokens(usage) === 0) yield atMember(start.chunk, "input_tokens", "a prompt of 0 tokens");
      },
    },
    {
      id: "messages/end-usage",
      severity: "error",
      concern: wrongCounts,
      says: "message_delta has a usage with output_tokens.",
      source: `${streaming}; recordings 316 of 316; pi #6567`,
      breaks: ["official SDKs' stream helpers (a TypeError: they read usage.output_tokens)", "pi"],
      shown: (view) => messageEvents(view).endings.length > 0,
      *judge(view) {
        for (const ending of messageEvents(view).endings) {
          const usage = usageOf(ending);
          if (!usage) yield atMember(ending.chunk, "delta", "no usage");
          else if (typeof usage.output_tokens !== "number")
            yield atMember(ending.chunk, "usage", `output_tokens is ${shown(usage.output_tokens)}`);
        }
      },
    },
    {
      id: "messages/usage-grows",
      severity: "warning",
      concern: wrongCounts,
      says: "Counts are cumulative: no later output_tokens is smaller than an earlier one.",
      source: `${streaming}: "cumulative"; recordings 316 of 316`,
      breaks: ["cost meters (they take the last count for the sum)"],
      shown: (view) => messageEvents(view).endings.length > 0,
      *judge(view) {
        const start = startOf(view);
        let before = 0;
        for (const event of [...(start ? [start] : []), ...messageEvents(view).endings]) {
          const count = usageOf(event)?.output_tokens;
          if (typeof count !== "number") continue;
          if (count < before) yield atMember(event.chunk, "output_tokens", `${count} after ${before}`);
          before = Math.max(before, count);
        }
      },
    },
  ],
);
