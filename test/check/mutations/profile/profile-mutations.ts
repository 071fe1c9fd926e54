import {
  type BodyDraft,
  choicesOf,
  errorsOf,
  isAnswer,
  type Json as BodyJson,
  messagesOf,
} from "../body/body-draft.ts";
import { illegalBody } from "../body/illegal-bodies.ts";
import { type BodyMutation, onBodyText, onObject } from "../body/on-body.ts";
import type { IllegalChange } from "../mutation.ts";
import { illegalStream } from "../stream/illegal-streams.ts";
import {
  always,
  chat,
  elements,
  fn,
  hasText,
  isFinish,
  isHeader,
  onChunk,
  onPiece,
  onText,
  type StreamMutation,
} from "../stream/on-stream.ts";
import { chunksOf, type Draft, type Json, type Piece } from "../stream/stream-draft.ts";

const inChat = (fits: (piece: Piece) => boolean) => (draft: Draft) => (piece: Piece) => chat(draft) && fits(piece);
const isOpenai = (draft: Draft) => chunksOf(draft).some((chunk) => "service_tier" in chunk);
const firstText = (draft: Draft) => (piece: Piece) =>
  chat(draft) && "role" in piece.delta && !("tool_calls" in piece.delta);

/** Streams of a demanded profile, changed into what is legal and not that profile. */
const streams: readonly StreamMutation[] = [
  onText("profile/layout", "spaces between tokens", (body) => body.replace('","object":"', '", "object": "')),
  onText("profile/layout", "an escaped letter", (body) => body.replace('"model":"m"', '"model":"\\u006d"')),
  onChunk("profile/members", "another order", always, (chunk) => reversed(chunk)),
  onChunk("profile/members", "no choices", always, (chunk) => delete chunk.choices),
  onChunk("profile/members", "a member of the other profile", always, (chunk, draft) => {
    if (!chat(draft)) delete chunk.model;
    else if (isOpenai(draft)) delete chunk.service_tier;
    else delete chunk.system_fingerprint;
  }),
  onPiece(
    "profile/members",
    "another order in a choice",
    () => always,
    ({ choice }) => reversed(choice),
  ),
  onPiece(
    "profile/members",
    "no finish_reason",
    inChat((piece) => !isFinish(piece)),
    ({ choice }) => {
      delete choice.finish_reason;
    },
  ),
  {
    rule: "profile/error-members",
    name: "another order",
    apply(draft) {
      const failed = draft.frames.find((frame): frame is Json => typeof frame === "object" && "error" in frame);
      if (failed) reversed(failed.error as Json);
      return failed !== undefined;
    },
  },
  onPiece("profile/first-delta", "the other profile's", firstText, (piece, draft) => {
    if (isOpenai(draft)) for (const name of ["content", "refusal"]) delete piece.delta[name];
    else Object.assign(piece.delta, { content: "", refusal: null });
  }),
  onPiece("profile/first-delta", "that of 2024", firstText, (piece) => {
    delete piece.delta.refusal;
    piece.delta.content = "";
  }),
  onPiece("profile/deltas", "a null next to the text", inChat(hasText), (piece) => (piece.delta.refusal = null)),
  onPiece(
    "profile/deltas",
    "an empty text next to the finish reason",
    inChat(isFinish),
    (piece) => (piece.delta.content = ""),
  ),
  onPiece("profile/deltas", "a call whole", inChat(isHeader), (piece) => (fn(piece).arguments = "{}")),
  onPiece("profile/deltas", "the id behind the type", inChat(isHeader), (piece) => {
    for (const element of elements(piece)) reversed(element);
  }),
  {
    rule: "profile/obfuscation",
    name: "the other way round",
    apply(draft) {
      const options = (draft.request?.stream_options ?? {}) as Json;
      if (!chat(draft)) return false;
      const has = chunksOf(draft).some((chunk) => "obfuscation" in chunk);
      (draft.request as Json).stream_options = { ...options, include_obfuscation: !has };
      return true;
    },
  },
  onText("profile/obfuscation", "of another length", (body) => body.replace(/"obfuscation":"/, '"obfuscation":"x')),
  onPiece(
    "profile/finish",
    "the other profile's",
    (draft) => (piece) => {
      const named = typeof draft.request?.tool_choice === "object";
      return named && (piece.choice.finish_reason === "stop" || piece.choice.finish_reason === "tool_calls");
    },
    ({ choice }) => (choice.finish_reason = choice.finish_reason === "stop" ? "tool_calls" : "stop"),
  ),
  onPiece(
    "profile/logprobs",
    "the other profile's first",
    (draft) => (piece) => firstText(draft)(piece) && draft.request?.logprobs === true && piece.delta.content !== null,
    ({ choice }) => (choice.logprobs = choice.logprobs === null ? { content: [], refusal: null } : null),
  ),
  onPiece(
    "profile/logprobs",
    "an empty list in the last",
    (draft) => (piece) => chat(draft) && isFinish(piece) && draft.request?.logprobs === true,
    ({ choice }) => (choice.logprobs = { content: [], refusal: null }),
  ),
  onText("profile/numbers", "printed otherwise", (body) => body.replace('"logprob":-0.25', '"logprob":-2.5e-1')),
  header("another charset", (headers) => (headers["content-type"] = "text/event-stream; charset=UTF-8")),
  header("another cache-control", (headers) => (headers["cache-control"] = "no-store")),
];

/** The same for bodies. */
const bodies: readonly BodyMutation[] = [
  {
    rule: "profile/layout",
    name: "of other white space",
    apply(draft) {
      draft.layout.indent = draft.layout.indent === 0 ? 2 : 0;
      return true;
    },
  },
  {
    rule: "profile/layout",
    name: "another end",
    apply(draft) {
      // Both ends of a list of models were recorded.
      if (draft.layout.indent > 0 && (draft.endpoint === "models" || draft.endpoint === "model")) return false;
      draft.layout.end = draft.layout.end === "" ? "\n" : "";
      // An unknown path is refused in either of two layouts, which differ in more than their ends.
      return true;
    },
  },
  onBodyText("profile/layout", "escaped letters", isAnswer, (body) => body.replace('"m"', '"\\u006d"')),
  onObject("profile/members", "another order", answers, (value) => reversed(value)),
  onObject("profile/members", "no id", answers, (value) => delete value.id),
  onObject("profile/members", "another order in a choice", choicesOf, (choice) => reversed(choice)),
  onObject("profile/members", "another order in a message", messagesOf, (message) => reversed(message)),
  onObject("profile/error-members", "another order", errorsOf, (error) => reversed(error)),
  onObject("profile/error-members", "a status in it", errorsOf, (error) => (error.status = 400)),
  onObject(
    "profile/finish",
    "the other profile's",
    (draft) =>
      typeof draft.request?.tool_choice === "object"
        ? choicesOf(draft).filter(({ message }) => "tool_calls" in (message as BodyJson))
        : [],
    (choice) => (choice.finish_reason = choice.finish_reason === "stop" ? "tool_calls" : "stop"),
  ),
  onBodyText("profile/numbers", "printed otherwise", isAnswer, (body) =>
    body.replace(/("logprob": ?)-0.25/, "$1-2.5e-1"),
  ),
  onObject("profile/headers", "another content type", headersOf, (headers) => {
    headers["content-type"] = "application/json;charset=UTF-8";
  }),
];

export const profileMutations: readonly IllegalChange[] = [
  ...streams.map((mutation) => illegalStream(mutation, true)),
  ...bodies.map((mutation) => illegalBody(mutation, true)),
];

function answers(draft: BodyDraft): BodyJson[] {
  return isAnswer(draft) ? [draft.value] : [];
}

function headersOf(draft: BodyDraft): BodyJson[] {
  return draft.headers ? [draft.headers] : [];
}

/** The same members, the last first. */
function reversed(object: Json): void {
  const entries = Object.entries(object).toReversed();
  for (const key of Object.keys(object)) delete object[key];
  for (const [key, value] of entries) object[key] = value;
}

function header(name: string, change: (headers: Record<string, string>) => void): StreamMutation {
  return {
    rule: "profile/headers",
    name,
    apply(draft) {
      if (draft.headers) change(draft.headers);
      return draft.headers !== null;
    },
  };
}
