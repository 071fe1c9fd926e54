import { variantsOf } from "../../../../wire/apis/members.ts";
import { contentBlock, contentDelta, errorStatuses, streamEvent } from "../../../../wire/apis/messages/schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { atEnd, atFrame, atMember, shown } from "../place.ts";
import type { StreamRule } from "../rule.ts";
import { streamRulesOf } from "../stream/stream-rule.ts";
import type { StreamView } from "../view.ts";
import { blockRules, messageUsageRules } from "./block-rules.ts";
import { errorShapeProblem, overflowProblem } from "./body-rules.ts";
import { messageEvents, type StreamEvent } from "./message-view.ts";

/* Rules about the events of a streamed message. Source: 316 recorded streams of 2024 to 2026. */

const unreadable = "the stream cannot be read";
const ending = "the answer seems to end wrongly";
const hidden = "errors look like answers";
const errors = "Anthropic's documentation: Errors";
const streaming = "Anthropic's documentation: Streaming messages";

const failed = (view: StreamView) => messageEvents(view).errors.length > 0;
const hasBlocks = (view: StreamView) => messageEvents(view).blocks.length > 0;
const knownEvents = variantsOf(streamEvent);
/** Whether Anthropic's API has events of this type. */
export const isKnownEvent = (type: unknown): boolean => knownEvents.has(type);
const knownBlocks = variantsOf(contentBlock);
const knownDeltas = variantsOf(contentDelta);
/** Anthropic adds tools of its own more often than SDKs are published. */
const isKnownBlock = (type: unknown) =>
  knownBlocks.has(type) || (typeof type === "string" && type.endsWith("_tool_result"));

/** Rules about single events, and about errors. */
const eventRules: readonly StreamRule[] = streamRulesOf(
  ["messages"],
  [
    {
      id: "messages/event-name",
      severity: "error",
      concern: "the stream cannot be read",
      says: "Every event has an `event:` line that names the type of its data.",
      source: "Anthropic's documentation: Streaming messages; recordings 316 of 316; pi #1983, #4381",
      breaks: ["official SDKs (they pass over events without a name)", "AI SDK (of data without a type)"],
      *judge(view) {
        for (const chunk of view.chunks) {
          const { type } = chunk.value;
          const name = chunk.frame.lines.find(({ field }) => field === "event")?.value;
          if (name === undefined) yield atFrame(chunk.frame, "an event without a name");
          else if (name !== type) yield atFrame(chunk.frame, `the event ${name} with data of type ${shown(type)}`);
        }
      },
    },
    {
      id: "messages/known-types",
      severity: "note",
      concern: "it differs from Anthropic",
      says: "Events, blocks and deltas are of types that Anthropic's API has.",
      source: "official SDKs: the types of 0.120.0; recordings 316 of 316",
      *judge(view) {
        const { events } = messageEvents(view);
        for (const { type, chunk } of events) {
          const { content_block: block, delta } = chunk.value;
          if (!isKnownEvent(type)) yield atMember(chunk, "type", `an event of type ${shown(type)}`);
          else if (type === "content_block_start" && isObject(block) && !isKnownBlock(block.type))
            yield atMember(chunk, "content_block", `a block of type ${shown(block.type)}`);
          else if (type === "content_block_delta" && isObject(delta) && !knownDeltas.has(delta.type))
            yield atMember(chunk, "delta", `a delta of type ${shown(delta.type)}`);
        }
      },
    },
    {
      id: "messages/no-done",
      severity: "note",
      concern: "it differs from Anthropic",
      says: "There is no [DONE].",
      source: "recordings 316 of 316; free-claude-code #43",
      *judge(view) {
        const frame = view.frames[view.done];
        if (frame) yield atFrame(frame, "[DONE]");
      },
    },
    {
      id: "messages/stream-request-id",
      severity: "note",
      concern: "it differs from Anthropic",
      says: "Every stream has the header request-id.",
      source: "recordings (some recorders left it out)",
      shown: ({ exchange }) => exchange.response.headers !== null,
      *judge({ exchange }) {
        if (!exchange.response.headers?.["request-id"]) yield { start: 0, end: 0, found: "no request-id" };
      },
    },
    {
      id: "messages/error-shape",
      severity: "error",
      concern: hidden,
      says: 'An error in a stream is the event error with {"type": "error", "error": {type, message}}.',
      source: `${errors}; official SDKs`,
      breaks: ["official SDKs (an event of another name is passed over)"],
      shown: failed,
      *judge(view) {
        for (const { chunk, name } of messageEvents(view).errors) {
          const found = name === "error" ? errorShapeProblem(chunk.value) : `an error named ${shown(name)}`;
          if (found !== undefined) yield atMember(chunk, "error", found);
        }
      },
    },
    {
      id: "messages/error-last",
      severity: "error",
      concern: hidden,
      says: "Nothing follows an error: no stop_reason is invented, no message_stop.",
      source: `${errors} (official SDKs stop at it); LiteLLM #32159`,
      breaks: ["clients that take a later stop_reason for success"],
      shown: failed,
      *judge(view) {
        const { events, errors: all } = messageEvents(view);
        const [first] = all;
        const next = first && events[events.indexOf(first) + 1];
        if (next) yield atFrame(next.chunk.frame, `${shown(next.type)} after an error`);
      },
    },
    {
      id: "messages/error-type",
      severity: "warning",
      concern: hidden,
      says: "The type of an error in a stream is one of Anthropic's.",
      source: errors,
      breaks: ["clients that ask again at overloaded_error and rate_limit_error only"],
      shown: failed,
      *judge(view) {
        for (const { chunk } of messageEvents(view).errors) {
          const { error } = chunk.value;
          if (isObject(error) && typeof error.type === "string" && !Object.hasOwn(errorStatuses, error.type))
            yield atMember(chunk, "error", `an error of type ${shown(error.type)}`);
        }
      },
    },
    {
      id: "messages/error-overflow",
      severity: "warning",
      concern: hidden,
      says: "An error in a stream says that a prompt is too long as `prompt is too long: N tokens > M maximum`.",
      source: "recorded error of 2026-08; Floway #166 (what Claude Code looks for)",
      breaks: ["Claude Code (it compacts its history at these words, and at no others)"],
      shown: failed,
      *judge(view) {
        for (const { chunk } of messageEvents(view).errors) {
          const { error } = chunk.value;
          const found =
            isObject(error) && typeof error.message === "string" ? overflowProblem(error.message) : undefined;
          if (found !== undefined) yield atMember(chunk, "message", found);
        }
      },
    },
  ],
);

function at({ chunk }: StreamEvent, found: string) {
  return atFrame(chunk.frame, found);
}

/** Rules about the order of events: the start, the blocks one after another, the end. */
const orderRules: readonly StreamRule[] = streamRulesOf(
  ["messages"],
  [
    {
      id: "messages/start-first",
      severity: "error",
      concern: unreadable,
      says: "A stream begins with message_start.",
      source: `${streaming}; recordings 316 of 316; plano #898`,
      breaks: ["official SDKs' stream helpers (they throw)"],
      *judge(view) {
        const [first] = messageEvents(view).events;
        if (!first) yield atEnd(view.exchange.response.body, "no event");
        else if (first.type !== "message_start" && !messageEvents(view).errors.includes(first))
          yield at(first, `${shown(first.type)} first`);
      },
    },
    {
      id: "messages/start-once",
      severity: "error",
      concern: unreadable,
      says: "There is one message_start.",
      source: `${streaming}; recordings 316 of 316`,
      breaks: ["official SDKs' stream helpers (they throw)"],
      *judge(view) {
        const [, ...again] = messageEvents(view).events.filter(({ type }) => type === "message_start");
        for (const event of again) yield at(event, "message_start again");
      },
    },
    {
      id: "messages/start-empty",
      severity: "error",
      concern: unreadable,
      says: "message_start holds a message whose content is [] and whose stop_reason is null.",
      source: `${streaming}; recordings 316 of 316`,
      breaks: ["official SDKs' stream helpers (blocks are appended to what is there)"],
      *judge(view) {
        for (const { type, chunk } of messageEvents(view).events) {
          if (type !== "message_start") continue;
          const { message } = chunk.value;
          if (!isObject(message)) yield atMember(chunk, "message", `message is ${shown(message)}`);
          else if (!Array.isArray(message.content) || message.content.length > 0)
            yield atMember(chunk, "content", `content ${shown(message.content)}`);
          else if (message.stop_reason !== null && message.stop_reason !== undefined)
            yield atMember(chunk, "stop_reason", `stop_reason ${shown(message.stop_reason)}`);
        }
      },
    },
    {
      id: "messages/block-order",
      severity: "error",
      concern: unreadable,
      says: "Blocks come one after another: each ends before the next begins.",
      source: `${streaming}; recordings 586 of 586 blocks; Ollama #17101`,
      breaks: ["Claude Code (Content block not found)", "official SDKs' stream helpers"],
      shown: hasBlocks,
      *judge(view) {
        let open: unknown;
        for (const event of messageEvents(view).events) {
          const { index } = event.chunk.value;
          if (event.type === "content_block_start") {
            if (open !== undefined) yield at(event, `block ${shown(index)} begins inside block ${shown(open)}`);
            open = index ?? null;
          } else if (event.type === "content_block_stop" && index === open) open = undefined;
        }
      },
    },
    {
      id: "messages/block-index",
      severity: "error",
      concern: unreadable,
      says: "Blocks are numbered 0, 1, 2, … in their order.",
      source: `${streaming}: the index in the final content; recordings 586 of 586 blocks; Ollama #17101`,
      breaks: ["official SDKs' stream helpers (deltas go to another block)", "Claude Code"],
      shown: hasBlocks,
      *judge(view) {
        for (const [position, { start }] of messageEvents(view).blocks.entries()) {
          const { index } = start.chunk.value;
          if (index !== position) yield atMember(start.chunk, "index", `index ${shown(index)} at place ${position}`);
        }
      },
    },
    {
      id: "messages/block-open",
      severity: "error",
      concern: unreadable,
      says: "A delta or a stop is about a block that has begun and has not ended.",
      source: `${streaming}; recordings 5949 of 5949 deltas; axonhub #1677, CLIProxyAPI #3720`,
      breaks: ["Claude Code (Content block not found)", "official SDKs' stream helpers"],
      *judge(view) {
        const open = new Set<unknown>();
        for (const event of messageEvents(view).events) {
          const { index } = event.chunk.value;
          if (event.type === "content_block_start") open.add(index);
          else if (event.type === "content_block_delta" || event.type === "content_block_stop") {
            if (!open.has(index)) yield atMember(event.chunk, "index", `${event.type} of block ${shown(index)}`);
            if (event.type === "content_block_stop") open.delete(index);
          }
        }
      },
    },
    {
      id: "messages/block-stop",
      severity: "error",
      concern: unreadable,
      says: "Every block ends with content_block_stop, but for a call that the limit of tokens cut.",
      source: `${streaming}; recordings 585 of 586 blocks (one call that max_tokens cut has none); source code of AI SDK`,
      breaks: ["Claude Code (it runs a tool when its block ends)", "AI SDK (the part never ends)"],
      shown: (view) => hasBlocks(view) && !failed(view),
      *judge(view) {
        const { blocks, endings } = messageEvents(view);
        const delta = endings.at(-1)?.chunk.value.delta;
        const isCut = isObject(delta) && delta.stop_reason === "max_tokens";
        for (const block of blocks) {
          if (isCut && block === blocks.at(-1) && block.value.type === "tool_use") continue;
          if (!block.stop) yield at(block.start, "a block without an end");
        }
      },
    },
    {
      id: "messages/message-delta",
      severity: "error",
      concern: ending,
      says: "message_delta says how the message ended.",
      source: `${streaming}; recordings 316 of 316; axonhub #2000`,
      breaks: ["Claude Code and every agent (there is no stop_reason)"],
      shown: (view) => !failed(view),
      *judge(view) {
        const { endings } = messageEvents(view);
        if (endings.length === 0) yield atEnd(view.exchange.response.body, "no message_delta");
        for (const { chunk } of endings)
          if (!isObject(chunk.value.delta)) yield atMember(chunk, "delta", `delta is ${shown(chunk.value.delta)}`);
      },
    },
    {
      id: "messages/after-delta",
      severity: "error",
      concern: ending,
      says: "After message_delta no block begins, grows or ends.",
      source: `${streaming}; recordings 316 of 316; opencode #38733`,
      breaks: ["clients that finish at message_delta, as opencode did (they lose what follows)"],
      shown: (view) => messageEvents(view).endings.length > 0,
      *judge(view) {
        const { events } = messageEvents(view);
        const ended = events.findIndex(({ type }) => type === "message_delta");
        const late = events.slice(ended).find(({ type }) => type.startsWith("content_block_"));
        if (late) yield at(late, `${late.type} after message_delta`);
      },
    },
    {
      id: "messages/message-stop",
      severity: "error",
      concern: ending,
      says: "A stream ends with message_stop.",
      source: `${streaming}; recordings 316 of 316; charmbracelet/fantasy #245, LiteLLM #32159, opencode #38733`,
      breaks: ["official SDKs' stream helpers (finalMessage rejects)", "opencode", "Crush (it asks again)"],
      shown: (view) => !failed(view),
      *judge(view) {
        if (!messageEvents(view).events.some(({ type }) => type === "message_stop"))
          yield atEnd(view.exchange.response.body, "no message_stop");
      },
    },
    {
      id: "messages/stop-last",
      severity: "error",
      concern: ending,
      says: "message_stop comes once, and nothing follows it.",
      source: `${streaming}; recordings 316 of 316; plano #898, claude-code #40979`,
      breaks: ["Claude Code (Received message_stop without a current message)"],
      shown: (view) => messageEvents(view).events.some(({ type }) => type === "message_stop"),
      *judge(view) {
        const { events } = messageEvents(view);
        const next = events[events.findIndex(({ type }) => type === "message_stop") + 1];
        if (next) yield at(next, `${shown(next.type)} after message_stop`);
      },
    },
  ],
);

/** Every rule about the stream of a message. */
export const messageStreamRules: readonly StreamRule[] = [
  ...eventRules,
  ...orderRules,
  ...blockRules,
  ...messageUsageRules,
];
