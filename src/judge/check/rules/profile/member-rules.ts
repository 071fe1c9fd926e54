import type * as z from "zod";
import {
  chatChoice,
  chatChunk,
  chatCompletion,
  chatMessage,
  chunkChoice,
  errorBody,
  errorObjectSchema,
} from "../../../../wire/apis/chat/schema.ts";
import { completion, completionChoice } from "../../../../wire/apis/completions/schema.ts";
import { embeddings } from "../../../../wire/apis/embeddings/schema.ts";
import type { Presence } from "../../../../wire/apis/members.ts";
import { openaiModel, openaiModelList } from "../../../../wire/apis/models/schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { atMember, atName, bodyChoices, messageOf, objectOf } from "../place.ts";
import { apiOfEndpoint, type Exchange, requestsUsage } from "../exchange.ts";
import type { BodyView, Chunk, Json, StreamView } from "../view.ts";
import { expectedMembers, memberViolation } from "./member-order.ts";
import { type ProfileName } from "./profile-rule.ts";
import { type Rules, type Violation, notShown } from "../rule.ts";

/** Which members answers have, and their order. Source: recordings of 2025-08 to 2026-08. */
export const memberStreamRules: Rules<StreamView, ProfileName> = {
  // The events of a response are judged in ../responses/.
  *"profile/members"(view, profile) {
    if (view.chunks.length === 0 || apiOfEndpoint[view.exchange.endpoint] === "responses") return notShown;
    const violations = view.exchange.endpoint === "chat" ? chatChunkViolations : completionChunkViolations;
    for (const chunk of view.chunks) if (!("error" in chunk.value)) yield* violations(view, chunk, profile);
  },
  *"profile/error-members"(view) {
    if (apiOfEndpoint[view.exchange.endpoint] === "responses" || !view.chunks.some((chunk) => "error" in chunk.value))
      return notShown;
    for (const chunk of view.chunks) {
      const found = "error" in chunk.value ? errorViolation(chunk.value) : undefined;
      if (found !== undefined) yield atMember(chunk, "error", found);
    }
  },
};

export const memberBodyRules: Rules<BodyView, ProfileName> = {
  *"profile/members"(view, profile) {
    if (view.exchange.response.status >= 400 || !isObject(view.value) || bodyMembers(view, "lean") === undefined)
      return notShown;
    const expected = bodyMembers(view, profile);
    const found = expected && memberViolation(objectOf(view), expected, profile === "lean");
    if (found !== undefined) yield atName(view, "object", found);
    yield* bodyChoiceViolations(view, profile);
  },
  *"profile/error-members"(view) {
    if (view.exchange.response.status < 400 || !isObject(view.value)) return notShown;
    const found = errorViolation(objectOf(view));
    if (found !== undefined) yield atName(view, "error", found);
  },
};

function errorViolation(value: Json): string | undefined {
  const outer = memberViolation(value, expectedMembers(errorBody, "exact"), false);
  if (outer !== undefined) return outer;
  if (!isObject(value.error)) return "an error that is no object";
  return memberViolation(value.error, expectedMembers(errorObjectSchema, "exact"), false);
}

function* chatChunkViolations(view: StreamView, chunk: Chunk, profile: ProfileName): Generator<Violation> {
  const isLean = profile === "lean";
  const isAudio = chunk.choices.some(({ delta }) => isObject(delta) && "audio" in delta);
  const expected = expectedMembers(chatChunk, profile, { usage: usagePresence(view, chunk, isAudio) });
  const found = memberViolation(chunk.value, expected, isLean);
  // OpenAI writes usage before choices in the chunks of parallel calls (recorded 154 of 154).
  const usageFirst = moved(
    expected.filter((name) => name !== "moderation?"),
    ["usage", "usage?"],
    "choices",
  );
  if (found !== undefined && (isLean || memberViolation(chunk.value, usageFirst, false) !== undefined))
    yield atMember(chunk, "object", found);
  // The chunk that says when audio expires has no finish reason.
  const choiceMembers = expectedMembers(chunkChoice, profile, isAudio ? { finish_reason: "sometimes" } : {});
  yield* choiceViolations(chunk, choiceMembers, isLean);
}

function* completionChunkViolations(view: StreamView, chunk: Chunk, profile: ProfileName): Generator<Violation> {
  const isLean = profile === "lean";
  const members = expectedMembers(completion, profile, { usage: usagePresence(view, chunk, false) });
  const isLast = chunk.choices.length === 0;
  const expected = isLean
    ? members
    : isLast
      ? moved(members, ["usage", "usage?"], "choices")
      : moved(members, ["choices"], "model");
  const found = memberViolation(chunk.value, expected, isLean);
  if (found !== undefined) yield atMember(chunk, "object", found);
  yield* choiceViolations(chunk, expectedMembers(completionChoice, profile), isLean);
}

function* choiceViolations(chunk: Chunk, expected: readonly string[], further: boolean): Generator<Violation> {
  for (const choice of chunk.choices) {
    const found = memberViolation(choice, expected, further);
    if (found !== undefined) yield atMember(chunk, "choices", `a choice with ${found}`);
  }
}

/** The list with `names` moved before the name `before`. */
function moved(list: readonly string[], names: readonly string[], before: string): readonly string[] {
  const others = list.filter((name) => !names.includes(name));
  return others.toSpliced(others.indexOf(before), 0, ...list.filter((name) => names.includes(name)));
}

/** `usage` is in every chunk or in none, as the request says. */
function usagePresence(view: StreamView, chunk: Chunk, isAudio: boolean): Presence {
  const requested = requestsUsage(view.exchange);
  if (requested === undefined || isAudio || chunk.choices.length === 0) return "sometimes";
  return requested ? "always" : "never";
}

/** The bodies whose members are judged here. */
const bodySchemas: Partial<Readonly<Record<Exchange["endpoint"], z.ZodObject>>> = {
  chat: chatCompletion,
  completions: completion,
  models: openaiModelList,
  model: openaiModel,
  embeddings,
};

function bodyMembers({ exchange }: BodyView, profile: ProfileName): readonly string[] | undefined {
  if (exchange.endpoint === "response-tokens") return ["object", "input_tokens"];
  const schema = bodySchemas[exchange.endpoint];
  return schema && expectedMembers(schema, profile);
}

function* bodyChoiceViolations(view: BodyView, profile: ProfileName): Generator<Violation> {
  const { endpoint } = view.exchange;
  if (endpoint !== "chat" && endpoint !== "completions") return;
  const isLean = profile === "lean";
  const choiceMembers = expectedMembers(endpoint === "chat" ? chatChoice : completionChoice, profile);
  for (const choice of bodyChoices(view)) {
    const found = memberViolation(choice, choiceMembers, isLean);
    if (found !== undefined) yield atName(view, "choices", `a choice with ${found}`);
    if (endpoint !== "chat") continue;
    const inMessage = memberViolation(messageOf(choice), expectedMembers(chatMessage, profile), isLean);
    if (inMessage !== undefined) yield atName(view, "message", `a message with ${inMessage}`);
  }
}
