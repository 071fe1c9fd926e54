import * as z from "zod";
import { isOpen, membersOf, variantsOf } from "../../../apis/members.ts";
import { contentBlock, contentDelta, extendedBlocks } from "../../../apis/messages/schema.ts";
import { isObject } from "../../../core/json.ts";
import { atMember, shown } from "../place.ts";
import type { StreamRule } from "../rule.ts";
import { parsedJson, type StreamView } from "../view.ts";
import { messageEvents, textIn } from "./stream-events.ts";

const endpoints = ["messages"] as const;
const streaming = "Anthropic's documentation: Streaming messages";
const lost = "text is lost or wrong";
const breaking = "tool calls break";

const blocks = (view: StreamView) => messageEvents(view).blocks;
const hasBlocks = (view: StreamView) => blocks(view).length > 0;
const ofType = (type: string) => (view: StreamView) => blocks(view).filter(({ value }) => value.type === type);
const calls = ofType("tool_use");
const thoughts = ofType("thinking");

/** How blocks begin, and their deltas. Source: 586 recorded blocks and 5949 deltas of 2024 to 2026; issues as named. */
export const deltaRules: readonly StreamRule[] = [
  {
    id: "messages/block-start",
    severity: "error",
    concern: lost,
    says: "content_block_start holds a block with all its members: text; thinking and signature; id, name and input; data.",
    source: `${streaming}; recordings 585 of 586 blocks; llama.cpp #22960, #20090`,
    breaks: ["typed clients (Go, Rust, Java, C#)", "AI SDK (schema)"],
    judges: "stream",
    endpoints,
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
    judges: "stream",
    endpoints,
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
    judges: "stream",
    endpoints,
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
    judges: "stream",
    endpoints,
    shown: (view) => blocks(view).some(({ deltas }) => deltas.length > 0),
    *judge(view) {
      for (const { event, value: delta } of blocks(view).flatMap(({ deltas }) => deltas)) {
        const { type } = delta;
        const member = typeof type === "string" ? textMember(type) : undefined;
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
    judges: "stream",
    endpoints,
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
    breaks: [],
    judges: "stream",
    endpoints,
    shown: (view) => calls(view).length > 0,
    *judge(view) {
      for (const { start, deltas } of calls(view)) {
        const [first] = deltas;
        if (!first) yield atMember(start.chunk, "input", "a call without a delta");
        else if (first.value.partial_json !== "") yield atMember(first.event.chunk, "partial_json", "a first piece");
      }
    },
  },
  {
    id: "messages/signature",
    severity: "warning",
    concern: lost,
    says: "A thinking block gets one signature_delta, after all its thinking.",
    source: "Anthropic's documentation: Extended thinking; recordings 29 of 30 blocks; llama.cpp #20090",
    breaks: ["Claude Code and agents that send the block back (Anthropic refuses it)", "AI SDK (it drops the thought)"],
    judges: "stream",
    endpoints,
    shown: (view) => thoughts(view).some(({ stop }) => stop !== undefined),
    *judge(view) {
      for (const { start, deltas, stop } of thoughts(view)) {
        const places = deltas.flatMap(({ value }, at) => (value.type === "signature_delta" ? [at] : []));
        const [first] = places;
        if (!stop) continue;
        if (first === undefined) yield atMember(start.chunk, "thinking", "a thought without a signature");
        else if (places.length > 1) yield atMember(start.chunk, "thinking", `${places.length} signatures`);
        else if (first !== deltas.length - 1)
          yield atMember(start.chunk, "thinking", "a signature before the thought's end");
      }
    },
  },
];

/** The members that a block of any date begins with, without its type. */
function requiredMembers(schema: z.ZodObject): readonly string[] {
  const required = membersOf(schema).filter(({ always, since }) => always && since === undefined && !isOpen(schema));
  return required.flatMap(({ name }) => (name === "type" ? [] : [name]));
}

/** The member of a delta that is appended to the block's text; undefined for a delta of another kind. */
function textMember(type: string): string | undefined {
  const schema = variantsOf(contentDelta).get(type);
  return schema && membersOf(schema).find(({ schema }) => schema instanceof z.ZodString)?.name;
}

/** The blocks whose deltas are known: all but the results of Anthropic's own tools, which may get deltas of any type. */
const judgedBlocks: ReadonlySet<unknown> = new Set([
  ...[...variantsOf(contentBlock)].flatMap(([type, schema]) => (isOpen(schema) ? [] : [type])),
  ...[...extendedBlocks.values()].flatMap((types) => [...types]),
]);
