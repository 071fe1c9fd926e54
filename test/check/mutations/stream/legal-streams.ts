import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { legalStream } from "../../legal/stream.ts";
import { between, seeded } from "../../random.ts";
import type { LegalChange } from "../mutation.ts";
import { chunksOf, type Draft, draftOf, exchangeOf, type Json, piecesOf } from "./stream-draft.ts";

/** A change that leaves a legal stream legal: nothing may be found after it. */
interface LegalStreamMutation {
  readonly name: string;
  apply(draft: Draft, random: () => number): boolean;
}

const mutations: readonly LegalStreamMutation[] = [
  {
    name: "another id for the whole stream",
    apply(draft, random) {
      const id = `${draft.endpoint === "chat" ? "chatcmpl-" : "cmpl-"}${between(0, 1e9, random)}`;
      for (const chunk of chunksOf(draft)) chunk.id = id;
      return true;
    },
  },
  {
    name: "comments between events",
    apply(draft, random) {
      draft.rewrite = (body) =>
        body.replaceAll("\n\ndata", () => (random() < 0.5 ? "\n\n: keep-alive\n\ndata" : "\n\ndata"));
      return true;
    },
  },
  {
    name: "text split over more deltas",
    apply(draft) {
      const [piece] = piecesOf(
        draft,
        ({ delta, choice }) =>
          typeof delta.content === "string" && [...delta.content].length > 1 && !choice.logprobs && !("role" in delta),
      );
      if (!piece) return false;
      const [head = "", ...tail] = [...(piece.delta.content as string)];
      const second = structuredClone(piece.chunk);
      piece.delta.content = head;
      ((second.choices as Json[])[0] as Json).delta = { content: tail.join("") };
      draft.frames.splice(draft.frames.indexOf(piece.chunk) + 1, 0, second);
      return true;
    },
  },
  {
    name: "arguments split over more deltas",
    apply(draft) {
      const elements = (delta: Json) => (Array.isArray(delta.tool_calls) ? (delta.tool_calls as Json[]) : []);
      const functionOf = (delta: Json) => (elements(delta)[0]?.function ?? {}) as Json;
      const text = (delta: Json) => String(functionOf(delta).arguments ?? "");
      const [piece] = piecesOf(draft, ({ delta }) => text(delta).length > 1 && !("id" in (elements(delta)[0] as Json)));
      if (!piece) return false;
      const whole = text(piece.delta);
      const second = structuredClone(piece.chunk);
      functionOf(piece.delta).arguments = whole.slice(0, 1);
      const later = ((second.choices as Json[])[0] as Json).delta as Json;
      functionOf(later).arguments = whole.slice(1);
      draft.frames.splice(draft.frames.indexOf(piece.chunk) + 1, 0, second);
      return true;
    },
  },
  {
    name: "other names for the calls' ids",
    apply(draft) {
      const headers = piecesOf(draft).flatMap(({ choice, delta }) =>
        (Array.isArray(delta.tool_calls) ? (delta.tool_calls as Json[]) : []).map((element) => ({ choice, element })),
      );
      let count = 0;
      for (const { element } of headers) if ("id" in element) element.id = `toolu_${count++}`;
      return count > 0;
    },
  },
  {
    name: "a request that may be refused and is not",
    apply(draft) {
      if (!draft.request) return false;
      // None of these is a demand that the answer could fail.
      draft.request.n ??= 0;
      draft.request.max_completion_tokens = -1;
      if (draft.request.tools === undefined) draft.request.tool_choice = "required";
      return true;
    },
  },
  {
    name: "the request is not known",
    apply(draft) {
      // Some rules judge by the request; without it they must be silent, not wrong. A named tool explains "stop" after calls.
      if (typeof draft.request?.tool_choice === "object") return false;
      draft.request = undefined;
      return true;
    },
  },
  {
    name: "the headers are not known",
    apply(draft) {
      draft.headers = null;
      return true;
    },
  },
];

/** Judged with its own profile demanded, which none of the changes may leave. */
export const legalStreams: readonly LegalChange[] = mutations.map(({ name, apply }) => ({
  name,
  make(seed) {
    const { exchange, profile } = legalStream(seed);
    const draft = draftOf(exchange);
    return apply(draft, seeded(seed)) ? judge(exchangeOf(draft), profile.name).findings : undefined;
  },
}));
