import { variantsOf } from "../../../apis/members.ts";
import { contentBlock, contentDelta, errorStatuses, streamEvent } from "../../../apis/messages/schema.ts";
import { atFrame, atMember, shown } from "../place.ts";
import type { StreamRule } from "../rule.ts";
import { isObject } from "../../../core/json.ts";
import { errorShapeOffence, overflowOffence } from "./error-shape.ts";
import { messageEvents } from "./stream-events.ts";
import type { StreamView } from "../view.ts";

const endpoints = ["messages"] as const;
const hidden = "errors look like answers";
const errors = "Anthropic's documentation: Errors";

const failed = (view: StreamView) => messageEvents(view).errors.length > 0;
const knownEvents = variantsOf(streamEvent);
const knownBlocks = variantsOf(contentBlock);
const knownDeltas = variantsOf(contentDelta);
/** Anthropic adds tools of its own more often than SDKs are published. */
const isKnownBlock = (type: unknown) =>
  knownBlocks.has(type) || (typeof type === "string" && type.endsWith("_tool_result"));

/** The events of a streamed message as such, and errors among them. Source: 316 recorded streams of 2024 to 2026. */
export const eventRules: readonly StreamRule[] = [
  {
    id: "messages/event-name",
    severity: "error",
    concern: "the stream cannot be read",
    says: "Every event has an `event:` line that names the type of its data.",
    source: "Anthropic's documentation: Streaming messages; recordings 316 of 316; pi #1983, #4381",
    breaks: ["official SDKs (they pass over events without a name)", "AI SDK (of data without a type)"],
    judges: "stream",
    endpoints,
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
    breaks: [],
    judges: "stream",
    endpoints,
    *judge(view) {
      const { events } = messageEvents(view);
      for (const { type, chunk } of events) {
        const { content_block: block, delta } = chunk.value;
        if (!knownEvents.has(type)) yield atMember(chunk, "type", `an event of type ${shown(type)}`);
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
    breaks: [],
    judges: "stream",
    endpoints,
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
    breaks: [],
    judges: "stream",
    endpoints,
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
    judges: "stream",
    endpoints,
    shown: failed,
    *judge(view) {
      for (const { chunk, name } of messageEvents(view).errors) {
        const found = name === "error" ? errorShapeOffence(chunk.value) : `an error named ${shown(name)}`;
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
    judges: "stream",
    endpoints,
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
    judges: "stream",
    endpoints,
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
    judges: "stream",
    endpoints,
    shown: failed,
    *judge(view) {
      for (const { chunk } of messageEvents(view).errors) {
        const { error } = chunk.value;
        const found = isObject(error) && typeof error.message === "string" ? overflowOffence(error.message) : undefined;
        if (found !== undefined) yield atMember(chunk, "message", found);
      }
    },
  },
];
