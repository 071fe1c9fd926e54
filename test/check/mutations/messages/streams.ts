import {
  blockOf,
  deltaOf,
  deltas,
  type DraftEvent,
  hasFailed,
  insertAfter,
  insertBefore,
  type Json,
  made,
  type MessageDraft,
  type MessageMutation,
  ofType,
  onEvent,
  onText,
  remove,
  starts,
  stopOf,
} from "./message-draft.ts";

const all = ({ events }: MessageDraft) => events;
const type = (name: string) => (draft: MessageDraft) => ofType(draft, name);
const begins = type("message_start");
const blocks = type("content_block_start");
const endings = type("message_delta");
const errors = type("error");
const startOf =
  (...types: string[]) =>
  (draft: MessageDraft) =>
    starts(draft, ...types);
const deltaOfType =
  (...types: string[]) =>
  (draft: MessageDraft) =>
    deltas(draft, ...types);
const messageOf = ({ data }: DraftEvent) => data.message as Json;
const usageOf = ({ data }: DraftEvent) => (data.usage ?? (data.message as Json).usage) as Json;
const errorOf = ({ data }: DraftEvent) => data.error as Json;

/** Blocks that end, and that another follows. */
const followed = (draft: MessageDraft) =>
  blocks(draft)
    .slice(0, -1)
    .filter((event) => stopOf(draft, event));
/** Blocks that end in a stream that does. */
const closed = (draft: MessageDraft) => (hasFailed(draft) ? [] : blocks(draft).filter((event) => stopOf(draft, event)));
/** Calls that end, and are given arguments. */
const calls = (draft: MessageDraft) =>
  starts(draft, "tool_use").filter((event) => stopOf(draft, event) && piecesOf(draft, event).length > 1);
const piecesOf = (draft: MessageDraft, { data }: DraftEvent) =>
  ofType(draft, "content_block_delta").filter((event) => event.data.index === data.index);
const whole = (draft: MessageDraft) => (hasFailed(draft) ? [] : endings(draft));

/** How a message is streamed. */
export const streamMutations: readonly MessageMutation[] = [
  onText("sse/json", "NaN for a number", (body) => body.replace(/"output_tokens":\d+/, '"output_tokens":NaN')),
  onText("sse/crlf", "CRLF", (body) => body.replaceAll("\n", "\r\n")),
  onText("sse/space", "no space after data:", (body) => body.replace("data: {", "data:{")),
  onText("sse/blank-line", "no blank line at the end", (body) => body.replace(/\n\n$/, "\n")),
  {
    rule: "end/complete",
    name: "a cut connection of a message",
    apply(draft) {
      draft.complete = false;
      return true;
    },
  },
  onEvent("messages/event-name", "no name", all, (event) => (event.name = null)),
  onEvent("messages/event-name", "another name", all, (event) => (event.name = "message")),
  onEvent("messages/event-name", "data without a type", all, ({ data }) => delete data.type),
  onEvent("messages/known-types", "an unknown event", begins, (event, draft) =>
    insertAfter(draft, event, made("heartbeat")),
  ),
  onEvent("messages/known-types", "an unknown block", blocks, (event) => (blockOf(event).type = "reasoning")),
  onEvent(
    "messages/known-types",
    "an unknown delta",
    type("content_block_delta"),
    (event) => (deltaOf(event).type = "audio_delta"),
  ),
  onText("messages/no-done", "[DONE]", (body) => `${body}data: [DONE]\n\n`),
  header("messages/stream-request-id", "request-id"),
  onEvent("messages/error-shape", "an error without a message", errors, (event) => delete errorOf(event).message),
  onEvent("messages/error-shape", "an error without a type", errors, (event) => delete errorOf(event).type),
  onEvent("messages/error-shape", "a text", errors, ({ data }) => (data.error = "failed")),
  onEvent("messages/error-shape", "OpenAI's form", errors, (event) => {
    event.name = null;
    delete event.data.type;
  }),
  onEvent("messages/error-last", "an invented end", errors, (event, draft) =>
    insertAfter(draft, event, made("message_delta", { delta: { stop_reason: "end_turn" } }), made("message_stop")),
  ),
  onEvent("messages/error-last", "message_stop", errors, (event, draft) =>
    insertAfter(draft, event, made("message_stop")),
  ),
  onEvent("messages/error-type", "OpenAI's type", errors, (event) => (errorOf(event).type = "server_error")),
  onEvent(
    "messages/error-overflow",
    "OpenAI's words",
    errors,
    (event) => (errorOf(event).message = "This model's maximum context length is 2048 tokens."),
  ),
  onEvent("messages/start-first", "no start", begins, (event, draft) => remove(draft, event)),
  onEvent("messages/start-first", "a late start", begins, (event, draft) => {
    remove(draft, event);
    insertAfter(draft, draft.events[0] as DraftEvent, event);
  }),
  onText("messages/start-first", "nothing", () => ""),
  onEvent("messages/start-once", "two starts", begins, (event, draft) =>
    insertAfter(draft, event, structuredClone(event)),
  ),
  onEvent(
    "messages/start-empty",
    "a block in the start",
    begins,
    (event) => (messageOf(event).content = [{ type: "text", text: "" }]),
  ),
  onEvent("messages/start-empty", "no content", begins, (event) => delete messageOf(event).content),
  onEvent(
    "messages/start-empty",
    "an end in the start",
    begins,
    (event) => (messageOf(event).stop_reason = "end_turn"),
  ),
  onEvent("messages/start-empty", "no message", begins, ({ data }) => delete data.message),
  onEvent("messages/block-order", "a block without its end before the next", followed, (event, draft) =>
    remove(draft, stopOf(draft, event) as DraftEvent),
  ),
  onEvent("messages/block-order", "an end after the next begins", followed, (event, draft) => {
    const stop = stopOf(draft, event) as DraftEvent;
    const next = blocks(draft)[blocks(draft).indexOf(event) + 1] as DraftEvent;
    remove(draft, stop);
    insertAfter(draft, next, stop);
  }),
  onEvent("messages/block-index", "from 1", begins, (_, draft) => {
    for (const { data } of draft.events) if (typeof data.index === "number") data.index++;
  }),
  onEvent("messages/block-index", "one index for all", followed, (_, draft) => {
    for (const { data } of draft.events) if (typeof data.index === "number") data.index = 0;
  }),
  onEvent("messages/block-index", "a text for a number", blocks, ({ data }) => (data.index = String(data.index))),
  onEvent("messages/block-open", "a delta of no block", type("content_block_delta"), ({ data }) => (data.index = 77)),
  onEvent(
    "messages/block-open",
    "a delta without its block",
    type("content_block_delta"),
    ({ data }) => delete data.index,
  ),
  onEvent("messages/block-open", "a delta after the end", type("content_block_stop"), (event, draft) =>
    insertAfter(
      draft,
      event,
      made("content_block_delta", { index: event.data.index, delta: { type: "text_delta", text: "x" } }),
    ),
  ),
  onEvent("messages/block-open", "two ends", type("content_block_stop"), (event, draft) =>
    insertAfter(draft, event, structuredClone(event)),
  ),
  onEvent("messages/block-open", "no beginning", blocks, (event, draft) => {
    if (piecesOf(draft, event).length > 0 || stopOf(draft, event)) remove(draft, event);
  }),
  onEvent("messages/block-stop", "a block without its end", closed, (event, draft) => {
    (deltaOf(endings(draft)[0] as DraftEvent) satisfies Json).stop_reason = "end_turn";
    remove(draft, stopOf(draft, event) as DraftEvent);
  }),
  onEvent("messages/message-delta", "none", whole, (event, draft) => remove(draft, event)),
  onEvent("messages/message-delta", "without a delta", whole, ({ data }) => delete data.delta),
  onEvent("messages/after-delta", "a block's end after it", closed, (event, draft) => {
    const ending = endings(draft)[0] as DraftEvent;
    remove(draft, ending);
    insertBefore(draft, stopOf(draft, event) as DraftEvent, ending);
  }),
  onEvent("messages/message-stop", "none", type("message_stop"), (event, draft) => remove(draft, event)),
  onText(
    "messages/message-stop",
    "cut in the middle",
    (body) => body.slice(0, body.length * 0.6),
    (draft) => !hasFailed(draft),
  ),
  onEvent("messages/stop-last", "two ends", type("message_stop"), (event, draft) =>
    insertAfter(draft, event, structuredClone(event)),
  ),
  onEvent("messages/stop-last", "the usage after the end", type("message_stop"), (event, draft) =>
    insertAfter(draft, event, ...endings(draft)),
  ),
  ...["id", "name", "input"].map((member) =>
    onEvent(
      "messages/block-start",
      `a call without ${member}`,
      startOf("tool_use"),
      (event) => delete blockOf(event)[member],
    ),
  ),
  onEvent("messages/block-start", "a text without text", startOf("text"), (event) => delete blockOf(event).text),
  onEvent(
    "messages/block-start",
    "a thought without a signature",
    startOf("thinking"),
    (event) => delete blockOf(event).signature,
  ),
  onEvent("messages/block-start", "no block", blocks, ({ data }) => delete data.content_block),
  onEvent(
    "messages/block-begins-empty",
    "a text in the start",
    startOf("text"),
    (event) => (blockOf(event).text = "Hi"),
  ),
  onEvent(
    "messages/block-begins-empty",
    "a thought in the start",
    startOf("thinking"),
    (event) => (blockOf(event).thinking = "Hm."),
  ),
  onEvent("messages/block-begins-empty", "an input in the start", startOf("tool_use"), (event) => {
    blockOf(event).input = { city: "Rome" };
  }),
  onEvent("messages/delta-kind", "text in a call", deltaOfType("input_json_delta"), ({ data }) => {
    data.delta = { type: "text_delta", text: "\n" };
  }),
  onEvent("messages/delta-kind", "a thought in a text", deltaOfType("text_delta"), ({ data }) => {
    data.delta = { type: "thinking_delta", thinking: "Hm." };
  }),
  onEvent("messages/delta-kind", "text in a thought", deltaOfType("thinking_delta"), ({ data }) => {
    data.delta = { type: "text_delta", text: "Hm." };
  }),
  onEvent("messages/delta-kind", "a call in a text", deltaOfType("text_delta"), ({ data }) => {
    data.delta = { type: "input_json_delta", partial_json: "{}" };
  }),
  onEvent(
    "messages/delta-member",
    "null for a text",
    deltaOfType("text_delta"),
    (event) => (deltaOf(event).text = null),
  ),
  onEvent(
    "messages/delta-member",
    "no thought",
    deltaOfType("thinking_delta"),
    (event) => delete deltaOf(event).thinking,
  ),
  onEvent("messages/delta-member", "an object for its text", deltaOfType("input_json_delta"), (event) => {
    deltaOf(event).partial_json = { city: "Rome" };
  }),
  onEvent("messages/delta-member", "no type", type("content_block_delta"), (event) => delete deltaOf(event).type),
  onEvent("messages/input-json", "a piece is lost", calls, (event, draft) =>
    remove(draft, piecesOf(draft, event).at(-1) as DraftEvent),
  ),
  onEvent("messages/input-json", "an object twice", calls, (event, draft) => {
    const last = piecesOf(draft, event).at(-1) as DraftEvent;
    insertAfter(draft, last, structuredClone(last));
  }),
  onEvent("messages/input-json", "null", calls, (event, draft) => {
    for (const piece of piecesOf(draft, event)) deltaOf(piece).partial_json = "";
    deltaOf(piecesOf(draft, event).at(-1) as DraftEvent).partial_json = "null";
  }),
  onEvent("messages/input-first", "a call whole", calls, (event, draft) =>
    remove(draft, piecesOf(draft, event)[0] as DraftEvent),
  ),
  onEvent("messages/input-first", "no delta at all", startOf("tool_use"), (event, draft) => {
    for (const piece of piecesOf(draft, event)) remove(draft, piece);
  }),
  onEvent("messages/signature", "none", deltaOfType("signature_delta"), (event, draft) => remove(draft, event)),
  onEvent("messages/signature", "two", deltaOfType("signature_delta"), (event, draft) =>
    insertAfter(draft, event, structuredClone(event)),
  ),
  onEvent("messages/signature", "before the thought", deltaOfType("signature_delta"), (event, draft) => {
    const first = piecesOf(draft, event)[0] as DraftEvent;
    if (first === event) {
      const thought = made("content_block_delta", {
        index: event.data.index,
        delta: { type: "thinking_delta", thinking: "x" },
      });
      insertAfter(draft, event, thought);
    } else {
      remove(draft, event);
      insertBefore(draft, first, event);
    }
  }),
  onEvent("messages/start-usage", "no usage", begins, (event) => delete messageOf(event).usage),
  onEvent("messages/start-usage", "no input_tokens", begins, (event) => delete usageOf(event).input_tokens),
  onEvent("messages/start-usage", "null for a count", begins, (event) => (usageOf(event).output_tokens = null)),
  onEvent("messages/start-input", "a prompt of 0 tokens at first", begins, (event, draft) => {
    if (hasFailed(draft)) return;
    for (const name of ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"])
      usageOf(event)[name] = 0;
  }),
  onEvent("messages/end-usage", "no usage", endings, ({ data }) => delete data.usage),
  onEvent("messages/end-usage", "OpenAI's usage", endings, ({ data }) => {
    data.usage = { prompt_tokens: 9, completion_tokens: 40 };
  }),
  onEvent("messages/usage-grows", "more at first", begins, (event, draft) => {
    if (!hasFailed(draft)) usageOf(event).output_tokens = 99;
  }),
];

function header(rule: string, name: string): MessageMutation {
  return {
    rule,
    name: `no ${name}`,
    apply(draft) {
      if (draft.headers) delete draft.headers[name];
      return draft.headers !== null;
    },
  };
}
