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
import { type Json, parsedJson, type StreamView } from "../view.ts";
import { messageEvents, promptTokens, type StreamEvent, textIn } from "./message-view.ts";
import { type Rules, notShown, on, whenAll } from "../rule.ts";

const blocks = (view: StreamView) => messageEvents(view).blocks;
const hasBlocks = (view: StreamView) => blocks(view).length > 0;
const ofType = (type: string) => (view: StreamView) => blocks(view).filter(({ value }) => value.type === type);
const calls = ofType("tool_use");
const thinking = ofType("thinking");

/** Rules about the start of blocks, and their deltas. Source: 586 recorded blocks and 5949 deltas of 2024 to 2026; issues as named. */
export const blockRules: Rules<StreamView> = on(["messages"], {
  ...whenAll(hasBlocks, {
    *"messages/block-start"(view) {
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
    *"messages/block-begins-empty"(view) {
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
    *"messages/delta-kind"(view) {
      for (const { value, deltas } of blocks(view)) {
        for (const { event, value: delta } of deltas) {
          if (judgedBlocks.has(value.type) && extendedBlocks.get(delta.type)?.has(value.type) === false)
            yield atMember(event.chunk, "delta", `${String(delta.type)} in a block of type ${String(value.type)}`);
        }
      }
    },
  }),
  *"messages/delta-member"(view) {
    if (!blocks(view).some(({ deltas }) => deltas.length > 0)) return notShown;
    for (const { event, value: delta } of blocks(view).flatMap(({ deltas }) => deltas)) {
      const { type } = delta;
      const member = deltaTexts.get(type);
      if (typeof type !== "string") yield atMember(event.chunk, "delta", `a delta of type ${shown(type)}`);
      else if (member !== undefined && typeof delta[member] !== "string")
        yield atMember(event.chunk, member, `${member} is ${shown(delta[member])}`);
    }
  },
  *"messages/input-json"(view) {
    if (!calls(view).some(({ stop }) => stop !== undefined)) return notShown;
    for (const { start, deltas, stop } of calls(view)) {
      const json = deltas.map(({ value }) => textIn(value, "partial_json")).join("");
      if (stop && json !== "" && !isObject(parsedJson(json)))
        yield atMember((deltas.at(-1)?.event ?? start).chunk, "partial_json", `input ${shown(json)}`);
    }
  },
  *"messages/input-first"(view) {
    if (calls(view).length === 0) return notShown;
    for (const { start, deltas } of calls(view)) {
      const [first] = deltas;
      if (!first) yield atMember(start.chunk, "input", "a call without a delta");
      else if (first.value.partial_json !== "")
        yield atMember(first.event.chunk, "partial_json", "a first delta with text");
    }
  },
  *"messages/signature"(view) {
    if (!thinking(view).some(({ stop }) => stop !== undefined)) return notShown;
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
});

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
export const messageUsageRules: Rules<StreamView> = on(["messages"], {
  *"messages/start-usage"(view) {
    if (startOf(view) === undefined) return notShown;
    const start = startOf(view);
    const usage = start && usageOf(start);
    if (!start) return;
    if (!usage) yield atMember(start.chunk, "usage", "no usage");
    for (const { name, always, since } of membersOf(usageSchema))
      if (always && since === undefined && usage && typeof usage[name] !== "number")
        yield atMember(start.chunk, "usage", `${name} is ${shown(usage[name])}`);
  },
  *"messages/start-input"(view) {
    const last = messageEvents(view).endings.at(-1);
    const start = startOf(view);
    if (!start || !last || promptTokens(usageOf(last) ?? {}) === 0) return notShown;
    const usage = start && usageOf(start);
    if (usage && promptTokens(usage) === 0) yield atMember(start.chunk, "input_tokens", "a prompt of 0 tokens");
  },
  *"messages/end-usage"(view) {
    if (messageEvents(view).endings.length === 0) return notShown;
    for (const ending of messageEvents(view).endings) {
      const usage = usageOf(ending);
      if (!usage) yield atMember(ending.chunk, "delta", "no usage");
      else if (typeof usage.output_tokens !== "number")
        yield atMember(ending.chunk, "usage", `output_tokens is ${shown(usage.output_tokens)}`);
    }
  },
  *"messages/usage-grows"(view) {
    if (messageEvents(view).endings.length === 0) return notShown;
    const start = startOf(view);
    let before = 0;
    for (const event of [...(start ? [start] : []), ...messageEvents(view).endings]) {
      const count = usageOf(event)?.output_tokens;
      if (typeof count !== "number") continue;
      if (count < before) yield atMember(event.chunk, "output_tokens", `${count} after ${before}`);
      before = Math.max(before, count);
    }
  },
});
