import { chunksOf, type Draft, type Json, type Piece, piecesOf } from "./stream-draft.ts";
import { type DraftMutation, onPart, onText as onDraftText } from "../draft-mutation.ts";

export type StreamMutation = DraftMutation<Draft>;

export function isFinish({ choice }: Piece): boolean {
  return typeof choice.finish_reason === "string";
}

/** Text, without log probabilities, which would have to be changed with it. */
export function hasText({ delta, choice }: Piece): boolean {
  return typeof delta.content === "string" && delta.content !== "" && !choice.logprobs;
}

export function isLater(draft: Draft): (piece: Piece) => boolean {
  const firsts = new Map<unknown, Json>();
  for (const piece of piecesOf(draft)) if (!firsts.has(piece.choice.index)) firsts.set(piece.choice.index, piece.chunk);
  return (piece) => firsts.get(piece.choice.index) !== piece.chunk;
}

export function elements({ delta }: Piece): Json[] {
  return Array.isArray(delta.tool_calls) ? (delta.tool_calls as Json[]) : [];
}

export function isHeader(piece: Piece): boolean {
  return elements(piece).some((element) => "id" in element);
}

export function isArguments(piece: Piece): boolean {
  return elements(piece).some((element) => !("id" in element));
}

export function hasUsage(chunk: Json): boolean {
  return typeof chunk.usage === "object" && chunk.usage !== null;
}

export function chat(draft: Draft): boolean {
  return draft.endpoint === "chat";
}

/** Changes one chunk of those that fit. */
export function onChunk(
  rule: string,
  name: string,
  fits: (chunk: Json, draft: Draft) => boolean,
  change: (chunk: Json, draft: Draft) => void,
): StreamMutation {
  return onPart(rule, name, (draft) => chunksOf(draft).filter((chunk) => fits(chunk, draft)), change);
}

/** Changes one choice in one chunk of those that fit. */
export function onPiece(
  rule: string,
  name: string,
  fits: (draft: Draft) => (piece: Piece) => boolean,
  change: (piece: Piece, draft: Draft) => void,
): StreamMutation {
  return onPart(rule, name, (draft) => piecesOf(draft, fits(draft)), change);
}

/** Rewrites the text of the body, where there is something to rewrite. */
export function onText(
  rule: string,
  name: string,
  rewrite: (body: string, random: () => number) => string | undefined,
): StreamMutation {
  return onDraftText(rule, name, always, (body, random) => rewrite(body, random) ?? body);
}

export function chatPiece(fits: (piece: Piece) => boolean): (draft: Draft) => (piece: Piece) => boolean {
  return (draft) => (piece) => chat(draft) && fits(piece);
}

export function first(list: Json[]): Json {
  return list[0] as Json;
}

/** The function of a delta's first call. */
export function fn(piece: Piece): Json {
  return (first(elements(piece)).function ?? {}) as Json;
}

export function always(): boolean {
  return true;
}

export function withDelta(piece: Piece, delta: Json): Json {
  return { ...piece.chunk, choices: [{ ...piece.choice, delta, finish_reason: null }] };
}

export function rename(object: Json, from: string, to: string, value: unknown = object[from]): void {
  delete object[from];
  object[to] = value;
}
