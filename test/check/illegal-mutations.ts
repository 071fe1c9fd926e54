import { chunksOf, type Draft, hasError, insert, type Json, type Piece, piecesOf, remove } from "./draft.ts";
import { between, oneOf } from "./random.ts";

/** A change that makes a legal stream illegal. `apply` says whether it could be made in this stream. */
export interface Mutation {
  /** The rule that must notice. */
  readonly rule: string;
  readonly name: string;
  apply(draft: Draft, random: () => number): boolean;
}

const isFinish = (piece: Piece) => typeof piece.choice.finish_reason === "string";
const hasText = (piece: Piece) =>
  typeof piece.delta.content === "string" && piece.delta.content !== "" && !piece.choice.logprobs;
const isLater = (draft: Draft) => {
  const first = new Map<unknown, Json>();
  for (const piece of piecesOf(draft)) if (!first.has(piece.choice.index)) first.set(piece.choice.index, piece.chunk);
  return (piece: Piece) => first.get(piece.choice.index) !== piece.chunk;
};
const elements = (piece: Piece) => (Array.isArray(piece.delta.tool_calls) ? (piece.delta.tool_calls as Json[]) : []);
const isHeader = (piece: Piece) => elements(piece).some((element) => "id" in element);
const isArguments = (piece: Piece) => elements(piece).some((element) => !("id" in element));
const hasUsage = (chunk: Json) => typeof chunk.usage === "object" && chunk.usage !== null;
const chat = (draft: Draft) => draft.endpoint === "chat";

/** Changes one chunk of those that fit. */
function onChunk(
  rule: string,
  name: string,
  fits: (chunk: Json, draft: Draft) => boolean,
  change: (chunk: Json, draft: Draft) => void,
): Mutation {
  return {
    rule,
    name,
    apply(draft, random) {
      const chunks = chunksOf(draft).filter((chunk) => fits(chunk, draft));
      if (chunks.length === 0) return false;
      change(oneOf(chunks, random), draft);
      return true;
    },
  };
}

/** Changes one choice in one chunk of those that fit. */
function onPiece(
  rule: string,
  name: string,
  fits: (draft: Draft) => (piece: Piece) => boolean,
  change: (piece: Piece, draft: Draft) => void,
): Mutation {
  return {
    rule,
    name,
    apply(draft, random) {
      const pieces = piecesOf(draft, fits(draft));
      if (pieces.length === 0) return false;
      change(oneOf(pieces, random), draft);
      return true;
    },
  };
}

/** Rewrites the text of the body. */
function onText(
  rule: string,
  name: string,
  rewrite: (body: string, random: () => number) => string | undefined,
): Mutation {
  return {
    rule,
    name,
    apply(draft, random) {
      draft.rewrite = (body) => rewrite(body, random) ?? body;
      return true;
    },
  };
}

const chatPiece = (fits: (piece: Piece) => boolean) => (draft: Draft) => (piece: Piece) => chat(draft) && fits(piece);
const first = (elements: Json[]) => elements[0] as Json;
const fn = (piece: Piece) => (first(elements(piece)).function ?? {}) as Json;
const always = () => true;

const framing: readonly Mutation[] = [
  onText("sse/json", "an event is cut in the middle", (body, random) => {
    const at = body.indexOf('"choices"', between(0, Math.floor(body.length / 3), random));
    return at < 0 ? undefined : `${body.slice(0, at)}\n\n${body.slice(at)}`;
  }),
  onText("sse/json", "two chunks in one event", (body) => body.replace("\n\ndata: {", "{")),
  onText("sse/json", "an event whose data is empty", (body) => `data: \n\n${body}`),
  onText("sse/field", "a chunk without data:", (body) => body.replace("data: {", "{")),
  onText("sse/field", "an unknown field", (body) => `content: {}\n\n${body}`),
  onText("sse/one-data-line", "a chunk over two data lines", (body) =>
    body.replace(',"choices"', ',\ndata: "choices"'),
  ),
  onText("sse/event-name", "named events", (body) => body.replaceAll("data: {", "event: message\ndata: {")),
  onText("sse/id-retry", "an id line", (body) => `id: 1\n${body}`),
  onText("sse/id-retry", "a retry line", (body) => `retry: 3000\n${body}`),
  onText("sse/crlf", "CRLF", (body) => body.replaceAll("\n", "\r\n")),
  onText("sse/space", "no space after data:", (body) => body.replace("data: {", "data:{")),
  onText("sse/space", "two spaces after data:", (body) => body.replace("data: {", "data:  {")),
  onText("sse/blank-line", "no blank line at the end", (body) => body.replace(/\n\n$/, "\n")),
  onText("sse/bom", "a byte order mark", (body) => `\uFEFF${body}`),
  onText("sse/compact", "spaces between tokens", (body) => body.replace('","object":"', '", "object": "')),
  onText("sse/raw-unicode", "escaped letters", (body) => body.replace('"model":"m"', '"model":"\\u006d"')),
  onText("end/done", "no [DONE]", (body) => body.replace("data: [DONE]\n\n", "")),
  onText("end/done-last", "[DONE] twice", (body) => `${body}data: [DONE]\n\n`),
  onText("end/done-last", "a chunk after [DONE]", (body) => `${body}${body.slice(0, body.indexOf("\n\n") + 2)}`),
  onText("end/done-exact", "[done]", (body) => body.replace("[DONE]", "[done]")),
  onText("end/done-exact", '"[DONE]"', (body) => body.replace("[DONE]", '"[DONE]"')),
  {
    rule: "end/complete",
    name: "a cut connection",
    apply(draft) {
      draft.complete = false;
      return true;
    },
  },
  {
    rule: "headers/event-stream",
    name: "another content type",
    apply(draft) {
      if (draft.headers) draft.headers["content-type"] = "application/json";
      return draft.headers !== null;
    },
  },
  {
    rule: "headers/stream-request-id",
    name: "no x-request-id",
    apply(draft) {
      if (draft.headers) delete draft.headers["x-request-id"];
      return draft.headers !== null;
    },
  },
  {
    rule: "headers/stream-length",
    name: "a content-length",
    apply(draft) {
      if (draft.headers) draft.headers["content-length"] = "1000";
      return draft.headers !== null;
    },
  },
];

const notFirst = (chunk: Json, draft: Draft) => chunksOf(draft)[0] !== chunk;

const envelope: readonly Mutation[] = [
  onChunk("stream/id", "no id", always, (chunk) => delete chunk.id),
  onChunk("stream/id", "an empty id", always, (chunk) => (chunk.id = "")),
  onChunk("stream/one-id", "another id", notFirst, (chunk) => (chunk.id = "chatcmpl-other")),
  {
    rule: "stream/id-prefix",
    name: "ids of another form",
    apply: (draft) => each(draft, (chunk) => (chunk.id = "gen-1")),
  },
  onChunk("stream/object", "another object", always, (chunk) => (chunk.object = "chat.completion")),
  onChunk("stream/object", "no object", always, (chunk) => delete chunk.object),
  onChunk("stream/created", "a fraction", always, (chunk) => (chunk.created = 1_700_000_000.25)),
  onChunk("stream/created", "a string", always, (chunk) => (chunk.created = "1700000000")),
  onChunk("stream/created", "no created", always, (chunk) => delete chunk.created),
  onChunk(
    "stream/one-created",
    "created moves on",
    notFirst,
    (chunk) => (chunk.created = (chunk.created as number) + 1),
  ),
  onChunk("stream/model", "no model", always, (chunk) => delete chunk.model),
  onChunk("stream/one-model", "another model", notFirst, (chunk) => (chunk.model = "other")),
  onChunk("stream/fingerprint", "a number", always, (chunk) => (chunk.system_fingerprint = 7)),
  onChunk("stream/service-tier", "an unknown tier", always, (chunk) => (chunk.service_tier = "gold")),
  onChunk("stream/choices", "null", always, (chunk) => (chunk.choices = null)),
  onChunk("stream/choices", "no choices", always, (chunk) => delete chunk.choices),
  onChunk("stream/choices-empty", "an empty chunk before the answer", always, (chunk, draft) =>
    insert(draft, chunk, { ...chunk, choices: [], usage: undefined }, "before"),
  ),
  onPiece(
    "stream/one-choice",
    "two choices in a chunk",
    () => always,
    ({ chunk, choice }) => (chunk.choices as Json[]).push({ ...choice }),
  ),
  onChunk("stream/known-members", "a member of its own", always, (chunk) => (chunk.provider = "Acme")),
  onChunk(
    "stream/key-order",
    "choices first",
    (_, draft) => chat(draft),
    (chunk) => reorder(chunk, ["choices"]),
  ),
  onPiece(
    "choice/index",
    "no index",
    () => always,
    ({ choice }) => delete choice.index,
  ),
  onPiece(
    "choice/index",
    "an index beyond n",
    () => always,
    ({ choice }) => (choice.index = 7),
  ),
  onPiece(
    "choice/index",
    "an index as text",
    () => always,
    ({ choice }) => (choice.index = "0"),
  ),
  {
    rule: "choice/all",
    name: "one choice of several is missing",
    apply(draft) {
      if (typeof draft.request?.n !== "number" || !chat(draft) || hasError(draft)) return false;
      for (const { chunk } of piecesOf(draft, (piece) => piece.choice.index === 1)) remove(draft, chunk);
      return true;
    },
  },
  onPiece(
    "choice/finish-key",
    "no finish_reason",
    () => (piece) => piece.choice.finish_reason === null,
    ({ choice }) => delete choice.finish_reason,
  ),
];

const delta: readonly Mutation[] = [
  onPiece(
    "stream/role-first",
    "no role",
    chatPiece((piece) => "role" in piece.delta),
    (piece) => delete piece.delta.role,
  ),
  onPiece(
    "stream/role-first",
    "the role chunk is dropped",
    chatPiece((piece) => "role" in piece.delta && !isHeader(piece)),
    (piece, draft) => {
      const others = piecesOf(draft, (other) => other.choice.index === piece.choice.index).length;
      if (others > 1) remove(draft, piece.chunk);
      else delete piece.delta.role;
    },
  ),
  onPiece(
    "stream/role-once",
    "the role on a later delta",
    (draft) => (piece) => chat(draft) && isLater(draft)(piece),
    (piece) => (piece.delta.role = "assistant"),
  ),
  onPiece(
    "stream/role-value",
    "another role",
    chatPiece((piece) => "role" in piece.delta),
    (piece) => (piece.delta.role = "model"),
  ),
  onPiece("delta/object", "no delta", chatPiece(isLaterText), ({ choice }) => delete choice.delta),
  onPiece(
    "delta/content-type",
    "content as parts",
    chatPiece(hasText),
    (piece) => (piece.delta.content = [{ type: "text", text: "x" }]),
  ),
  onPiece("delta/content-type", "content as a number", chatPiece(hasText), (piece) => (piece.delta.content = 7)),
  onPiece(
    "delta/content-null",
    "null later on",
    (draft) => (piece) => chat(draft) && isLater(draft)(piece) && isArguments(piece),
    (piece) => (piece.delta.content = null),
  ),
  onPiece("delta/content-empty", "an empty fragment", chatPiece(hasText), (piece, draft) =>
    insert(draft, piece.chunk, withDelta(piece, { content: "" }), "after"),
  ),
  onPiece("delta/empty", "an empty delta", chatPiece(hasText), (piece, draft) =>
    insert(draft, piece.chunk, withDelta(piece, {}), "after"),
  ),
  onPiece("delta/null-calls", "null tool_calls", chatPiece(hasText), (piece) => (piece.delta.tool_calls = null)),
  onPiece("delta/null-calls", "null function_call", chatPiece(hasText), (piece) => (piece.delta.function_call = null)),
  onPiece(
    "delta/one-field",
    "text and reasoning together",
    chatPiece(hasText),
    (piece) => (piece.delta.reasoning_content = "hm"),
  ),
  onPiece("delta/one-field", "text beside a call", chatPiece(isArguments), (piece) => (piece.delta.content = "x")),
  onPiece(
    "delta/refusal-type",
    "an object",
    chatPiece((piece) => "refusal" in piece.delta),
    (piece) => (piece.delta.refusal = {}),
  ),
  onPiece(
    "delta/reasoning-name",
    "reasoning_text",
    chatPiece((piece) => "reasoning_content" in piece.delta),
    (piece) => rename(piece.delta, "reasoning_content", "reasoning_text"),
  ),
  onPiece(
    "delta/reasoning-type",
    "an array",
    chatPiece((piece) => "reasoning_content" in piece.delta),
    (piece) => (piece.delta.reasoning_content = ["hm"]),
  ),
  {
    rule: "delta/reasoning-in-content",
    name: "a thought in content",
    apply(draft) {
      const [piece] = piecesOf(draft, chatPiece(hasText)(draft));
      if (piece) piece.delta.content = `<think>hm</think>${piece.delta.content as string}`;
      return (
        piece !== undefined &&
        piecesOf(
          draft,
          (other) =>
            typeof other.delta.content === "string" &&
            other.delta.content !== "" &&
            other.choice.index === piece.choice.index,
        )[0]?.chunk === piece.chunk
      );
    },
  },
  onPiece(
    "delta/call-in-content",
    "the model's markup in content",
    (draft) => (piece) =>
      chat(draft) && hasText(piece) && Array.isArray(draft.request?.tools) && draft.request.tool_choice !== "none",
    (piece) => (piece.delta.content = '<tool_call>{"name":"f"}</tool_call>'),
  ),
  {
    rule: "delta/special-token",
    name: "a special token at the end",
    apply(draft) {
      const piece = piecesOf(draft, (one) => typeof one.delta.content === "string" && one.delta.content !== "").at(-1);
      if (!chat(draft) || !piece) return false;
      piece.delta.content = `${piece.delta.content as string}<|im_end|>`;
      return true;
    },
  },
  onPiece("delta/after-finish", "text after the finish reason", chatPiece(isFinish), (piece, draft) =>
    insert(draft, piece.chunk, withDelta(piece, { content: "more" }), "after"),
  ),
  onPiece(
    "delta/known-members",
    "a member of its own",
    chatPiece(hasText),
    (piece) => (piece.delta.provider_specific_fields = {}),
  ),
  onPiece(
    "text/present",
    "no text",
    (draft) => () => !chat(draft),
    ({ choice }) => delete choice.text,
  ),
  onPiece(
    "text/present",
    "null",
    (draft) => () => !chat(draft),
    ({ choice }) => (choice.text = null),
  ),
  onPiece(
    "text/after-finish",
    "text after the finish reason",
    (draft) => (piece) => !chat(draft) && isFinish(piece),
    (piece, draft) =>
      insert(
        draft,
        piece.chunk,
        { ...piece.chunk, choices: [{ ...piece.choice, text: "more", finish_reason: null }] },
        "after",
      ),
  ),
];

const tools: readonly Mutation[] = [
  onPiece(
    "tool/index",
    "no index",
    chatPiece((piece) => elements(piece).length > 0),
    (piece) => delete first(elements(piece)).index,
  ),
  onPiece(
    "tool/index-order",
    "numbers from 1",
    chatPiece((piece) => isHeader(piece)),
    (_, draft) =>
      piecesOf(draft)
        .flatMap(elements)
        .forEach((element) => (element.index = (element.index as number) + 1)),
  ),
  onPiece("tool/one-element", "two calls in one delta", chatPiece(isHeader), (piece) =>
    elements(piece).push({ ...first(elements(piece)), index: 9 }),
  ),
  onPiece("tool/id", "no id", chatPiece(isHeader), (piece) => delete first(elements(piece)).id),
  onPiece("tool/id", "an empty id", chatPiece(isHeader), (piece) => (first(elements(piece)).id = "")),
  onPiece(
    "tool/id-stable",
    "a new id in a later delta",
    chatPiece(isArguments),
    (piece) => (first(elements(piece)).id = "call_other"),
  ),
  onPiece(
    "tool/id-stable",
    "an empty id in a later delta",
    chatPiece(isArguments),
    (piece) => (first(elements(piece)).id = ""),
  ),
  {
    rule: "tool/id-unique",
    name: "two calls with one id",
    apply(draft) {
      const headers = piecesOf(draft, (piece) => isHeader(piece) && piece.choice.index === 0);
      const [one, two] = headers;
      if (!one || !two) return false;
      first(elements(two)).id = first(elements(one)).id;
      return true;
    },
  },
  onPiece("tool/type", "no type", chatPiece(isHeader), (piece) => delete first(elements(piece)).type),
  onPiece("tool/name", "no name", chatPiece(isHeader), (piece) => delete fn(piece).name),
  onPiece(
    "tool/name",
    "the header is dropped",
    chatPiece((piece) => isHeader(piece) && !("role" in piece.delta)),
    (piece, draft) => {
      remove(draft, piece.chunk);
    },
  ),
  onPiece("tool/name-once", "the name again", chatPiece(isArguments), (piece) => (fn(piece).name = "f")),
  onPiece("tool/name-once", "an empty name", chatPiece(isArguments), (piece) => (fn(piece).name = "")),
  onPiece(
    "tool/id-once",
    "the type again",
    chatPiece(isArguments),
    (piece) => (first(elements(piece)).type = "function"),
  ),
  onPiece(
    "tool/arguments-type",
    "arguments as an object",
    chatPiece(isArguments),
    (piece) => (fn(piece).arguments = {}),
  ),
  onPiece("tool/arguments-type", "null arguments", chatPiece(isHeader), (piece) => (fn(piece).arguments = null)),
  onPiece("tool/arguments-key", "no arguments", chatPiece(isHeader), (piece) => delete fn(piece).arguments),
  onPiece(
    "tool/header-alone",
    "arguments in the first delta",
    chatPiece(isHeader),
    (piece) => (fn(piece).arguments = " "),
  ),
  {
    rule: "tool/arguments-json",
    name: "an empty string for no arguments",
    apply(draft) {
      if (hasError(draft) || piecesOf(draft, (piece) => piece.choice.finish_reason === "length").length > 0)
        return false;
      const calls = piecesOf(draft, isArguments);
      for (const piece of calls) remove(draft, piece.chunk);
      return calls.length > 0;
    },
  },
  onPiece("tool/known-name", "a tool that nobody declared", chatPiece(isHeader), (piece) => (fn(piece).name = "rm_rf")),
];

const finish: readonly Mutation[] = [
  onPiece(
    "finish/present",
    "the finish chunk is dropped",
    (draft) => (piece) => isFinish(piece) && !hasError(draft),
    (piece, draft) => remove(draft, piece.chunk),
  ),
  onPiece("finish/once", "the finish chunk twice", chatPiece(isFinish), (piece, draft) =>
    insert(draft, piece.chunk, structuredClone(piece.chunk), "after"),
  ),
  onPiece(
    "finish/value",
    "eos",
    () => isFinish,
    ({ choice }) => (choice.finish_reason = "eos"),
  ),
  onPiece(
    "finish/value",
    "the empty string",
    () => isFinish,
    ({ choice }) => (choice.finish_reason = ""),
  ),
  onPiece(
    "finish/own-chunk",
    "text beside the finish reason",
    chatPiece(isFinish),
    (piece) => (piece.delta.content = "the end"),
  ),
  onPiece(
    "finish/empty-delta",
    "an empty content beside the finish reason",
    chatPiece(isFinish),
    (piece) => (piece.delta.content = ""),
  ),
  onPiece(
    "finish/calls",
    "stop after calls",
    (draft) => (piece) =>
      chat(draft) && piece.choice.finish_reason === "tool_calls" && typeof draft.request?.tool_choice !== "object",
    ({ choice }) => (choice.finish_reason = "stop"),
  ),
  onPiece(
    "finish/calls-made",
    "tool_calls without a call",
    (draft) => (piece) =>
      chat(draft) && isFinish(piece) && piecesOf(draft, (other) => elements(other).length > 0).length === 0,
    ({ choice }) => (choice.finish_reason = "tool_calls"),
  ),
];

const asked = (draft: Draft) => (draft.request?.stream_options as Json | undefined)?.include_usage === true;
const counts = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 };

const usage: readonly Mutation[] = [
  onChunk(
    "usage/uninvited",
    "usage that nobody asked for",
    (_, draft) => !asked(draft),
    (chunk, draft) => insert(draft, chunksOf(draft).at(-1) as Json, { ...chunk, choices: [], usage: counts }, "after"),
  ),
  onChunk(
    "usage/key-uninvited",
    "a null usage",
    (_, draft) => !asked(draft),
    (chunk) => (chunk.usage = null),
  ),
  onChunk("usage/missing", "the usage chunk is dropped", hasUsage, (chunk, draft) => remove(draft, chunk)),
  onChunk(
    "usage/once",
    "usage on a chunk before",
    (chunk, draft) => asked(draft) && chunk.usage === null && chunksOf(draft).some(hasUsage),
    (chunk) => (chunk.usage = counts),
  ),
  onChunk(
    "usage/own-chunk",
    "usage beside a choice",
    (chunk) => (chunk.choices as unknown[]).length > 0,
    (chunk) => (chunk.usage = counts),
  ),
  onChunk("usage/own-chunk", "usage before the answer", hasUsage, (chunk, draft) => {
    remove(draft, chunk);
    draft.frames.unshift(chunk);
  }),
  onChunk(
    "usage/null-before",
    "no usage key",
    (chunk) => chunk.usage === null,
    (chunk) => delete chunk.usage,
  ),
  onChunk("usage/type", "a count below zero", hasUsage, (chunk) => ((chunk.usage as Json).prompt_tokens = -1)),
  onChunk("usage/type", "a fraction", hasUsage, (chunk) => ((chunk.usage as Json).completion_tokens = 1.5)),
  onChunk("usage/type", "no total", hasUsage, (chunk) => delete (chunk.usage as Json).total_tokens),
  onChunk("usage/sum", "a wrong total", hasUsage, (chunk) => ((chunk.usage as Json).total_tokens = 1)),
  onChunk(
    "usage/details",
    "more cached than there are",
    hasUsage,
    (chunk) => ((chunk.usage as Json).prompt_tokens_details = { cached_tokens: 99 }),
  ),
  onChunk(
    "usage/zero",
    "zeros",
    (chunk, draft) => hasUsage(chunk) && chat(draft),
    (chunk) => (chunk.usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }),
  ),
];

const hasTokens = chatPiece(
  (piece) =>
    Array.isArray((piece.choice.logprobs as Json | null)?.content) &&
    ((piece.choice.logprobs as Json).content as unknown[]).length > 0,
);
const token = (piece: Piece) => first((piece.choice.logprobs as Json).content as Json[]);

const logprobs: readonly Mutation[] = [
  {
    rule: "logprobs/missing",
    name: "none though asked for",
    apply(draft) {
      if (!chat(draft) || draft.request?.logprobs !== true || hasError(draft)) return false;
      for (const { choice } of piecesOf(draft)) choice.logprobs = null;
      return (
        piecesOf(draft, (piece) => typeof piece.delta.content === "string" && piece.delta.content !== "").length > 0
      );
    },
  },
  onPiece(
    "logprobs/uninvited",
    "some that nobody asked for",
    (draft) => (piece) => chat(draft) && hasText(piece) && draft.request?.logprobs !== true,
    ({ choice, delta }) =>
      (choice.logprobs = { content: [{ token: delta.content, logprob: -1, bytes: null, top_logprobs: [] }] }),
  ),
  onPiece("logprobs/shape", "no top_logprobs", hasTokens, (piece) => delete token(piece).top_logprobs),
  onPiece("logprobs/shape", "no bytes", hasTokens, (piece) => delete token(piece).bytes),
  onPiece("logprobs/value", "a probability for its logarithm", hasTokens, (piece) => (token(piece).logprob = 0.7)),
  onPiece("logprobs/bytes", "bytes of another text", hasTokens, (piece) => (token(piece).bytes = [120])),
  onPiece(
    "logprobs/order",
    "the least likely first",
    hasTokens,
    (piece) => (token(piece).top_logprobs = [-3, -1].map((logprob) => ({ token: "x", logprob, bytes: [120] }))),
  ),
  onPiece(
    "logprobs/count",
    "too many",
    hasTokens,
    (piece) =>
      (token(piece).top_logprobs = Array.from({ length: 9 }, () => ({ token: "x", logprob: -3, bytes: [120] }))),
  ),
  onPiece("logprobs/text", "a token that is not in the text", hasTokens, (piece) =>
    ((piece.choice.logprobs as Json).content as Json[]).push({
      token: "x",
      logprob: -1,
      bytes: [120],
      top_logprobs: token(piece).top_logprobs,
    }),
  ),
];

const errorFrame = { error: { message: "The engine failed.", type: "server_error", param: null, code: null } };

const errors: readonly Mutation[] = [
  inError("error/shape", "an error that is a string", () => ({ error: "failed" })),
  inError("error/shape", "an error without code", () => ({
    error: { message: "failed", type: "server_error", param: null },
  })),
  inError("error/own-form", 'an object "error"', () => ({ object: "error", message: "failed", code: 500 })),
  inError("error/no-choices", "choices beside the error", (frame) => ({
    ...frame,
    choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
  })),
  {
    rule: "error/last",
    name: "an answer that goes on after an error",
    apply(draft) {
      draft.frames.splice(1, 0, errorFrame);
      return draft.frames.length > 3;
    },
  },
];

const obedience: readonly Mutation[] = [
  {
    rule: "request/stop",
    name: "a stop string in the text",
    apply(draft) {
      const [piece] = piecesOf(draft, hasText);
      if (!chat(draft) || !piece || !draft.request?.stop) return false;
      piece.delta.content = "a <stop> b";
      return true;
    },
  },
  onChunk(
    "request/max-tokens",
    "too many tokens",
    (chunk, draft) => hasUsage(chunk) && typeof draft.request?.max_completion_tokens === "number",
    (chunk) => (chunk.usage = { prompt_tokens: 1, completion_tokens: 9999, total_tokens: 10000 }),
  ),
  {
    rule: "request/required",
    name: "no call though one is required",
    apply(draft) {
      const forced = draft.request?.tool_choice === "required" || typeof draft.request?.tool_choice === "object";
      if (!forced || hasError(draft)) return false;
      for (const piece of piecesOf(draft)) {
        if ("tool_calls" in piece.delta) rename(piece.delta, "tool_calls", "content", "x");
        if (isFinish(piece)) piece.choice.finish_reason = "stop";
      }
      return true;
    },
  },
  onPiece(
    "request/named",
    "another tool than the one named",
    (draft) => (piece) => isHeader(piece) && typeof draft.request?.tool_choice === "object",
    (piece) => (fn(piece).name = "get_weather"),
  ),
  onPiece(
    "request/no-tools",
    "a call though none is allowed",
    chatPiece(isHeader),
    (_, draft) => ((draft.request as Json).tool_choice = "none"),
  ),
  {
    rule: "request/parallel",
    name: "two calls though one is allowed",
    apply(draft) {
      if (piecesOf(draft, (piece) => isHeader(piece) && piece.choice.index === 0).length < 2) return false;
      (draft.request as Json).parallel_tool_calls = false;
      return true;
    },
  },
  {
    rule: "request/json",
    name: "words where JSON was asked for",
    apply(draft) {
      const none =
        piecesOf(
          draft,
          (piece) => elements(piece).length > 0 || ("refusal" in piece.delta && piece.delta.refusal !== null),
        ).length === 0;
      if (
        !chat(draft) ||
        hasError(draft) ||
        !none ||
        piecesOf(draft, (piece) => piece.choice.finish_reason === "length").length > 0
      )
        return false;
      (draft.request as Json).response_format = { type: "json_object" };
      const [piece] = piecesOf(draft, hasText);
      if (piece) piece.delta.content = "Sure! Here is your JSON:";
      return piece !== undefined;
    },
  },
];

const specification: readonly Mutation[] = [
  onChunk(
    "spec/chunk",
    "a usage without prompt_tokens",
    hasUsage,
    (chunk) => delete (chunk.usage as Json).prompt_tokens,
  ),
  onPiece(
    "spec/chunk",
    "a call whose function is text",
    chatPiece(isHeader),
    (piece) => (first(elements(piece)).function = "f"),
  ),
];

export const illegalMutations: readonly Mutation[] = [
  ...specification,
  ...framing,
  ...envelope,
  ...delta,
  ...tools,
  ...finish,
  ...usage,
  ...logprobs,
  ...errors,
  ...obedience,
];

function each(draft: Draft, change: (chunk: Json) => void): boolean {
  for (const chunk of chunksOf(draft)) change(chunk);
  return true;
}

function inError(rule: string, name: string, change: (frame: Json) => Json): Mutation {
  return {
    rule,
    name,
    apply(draft) {
      const at = draft.frames.findIndex((frame) => typeof frame === "object" && "error" in frame);
      if (at >= 0) draft.frames[at] = change(draft.frames[at] as Json);
      return at >= 0;
    },
  };
}

function isLaterText(piece: Piece): boolean {
  return hasText(piece) && !("role" in piece.delta);
}

function withDelta(piece: Piece, delta: Json): Json {
  return { ...piece.chunk, choices: [{ ...piece.choice, delta, finish_reason: null }] };
}

function rename(object: Json, from: string, to: string, value: unknown = object[from]): void {
  delete object[from];
  object[to] = value;
}

function reorder(object: Json, names: readonly string[]): void {
  const entries = Object.entries(object).toSorted(([a], [b]) => Number(names.includes(b)) - Number(names.includes(a)));
  for (const key of Object.keys(object)) delete object[key];
  Object.assign(object, Object.fromEntries(entries));
}
