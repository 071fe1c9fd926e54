import { apiOf, askedForUsage } from "../exchange.ts";
import { atMember } from "../place.ts";
import type { Offence } from "../rule.ts";
import { isObject } from "../../../core/json.ts";
import { type BodyView, type Chunk, type Json, type StreamView } from "../view.ts";
import { atName, choicesOf, messageOf, objectOf } from "../body/body-place.ts";
import { membersOffence } from "./member-order.ts";
import type { ProfileName, ProfileRule } from "./profile-rule.ts";

const concern = "it is not the form that was demanded";

/** Members and their order. Source: recordings of 2025-08 to 2026-08. */
export const memberRules: readonly ProfileRule[] = [
  {
    id: "profile/members",
    severity: "error",
    concern,
    says: "Chunks, bodies, choices and messages have the members of the profile, in its order.",
    source: "recordings 408 of 408 streams, 1458 of 1466 bodies since 2025",
    breaks: ["tests that compare bytes"],
    judges: "profile",
    stream: {
      // A response's events are judged in ../responses/.
      shown: (view) => view.chunks.length > 0 && apiOf[view.exchange.endpoint] !== "responses",
      *judge(view, profile) {
        const ends = view.exchange.endpoint === "chat" ? chatChunk : completionChunk;
        for (const chunk of view.chunks) if (!("error" in chunk.value)) yield* ends(view, chunk, profile);
      },
    },
    body: {
      shown: (view) =>
        view.exchange.response.status < 400 && isObject(view.value) && wantedOf(view, "lean") !== undefined,
      *judge(view, profile) {
        const wanted = wantedOf(view, profile);
        const found = wanted && membersOffence(objectOf(view), wanted, profile === "lean");
        if (found !== undefined) yield atName(view, "object", found);
        yield* bodyChoices(view, profile);
      },
    },
  },
  {
    id: "profile/error-members",
    severity: "error",
    concern,
    says: "An error has message, type, param and code, in this order, and nothing else.",
    source: "every recorded error",
    breaks: ["tests that compare bytes"],
    judges: "profile",
    stream: {
      shown: (view) =>
        apiOf[view.exchange.endpoint] !== "responses" && view.chunks.some((chunk) => "error" in chunk.value),
      *judge(view) {
        for (const chunk of view.chunks) {
          const found = "error" in chunk.value ? errorOffence(chunk.value) : undefined;
          if (found !== undefined) yield atMember(chunk, "error", found);
        }
      },
    },
    body: {
      shown: (view) => view.exchange.response.status >= 400 && isObject(view.value),
      *judge(view) {
        const found = errorOffence(objectOf(view));
        if (found !== undefined) yield atName(view, "error", found);
      },
    },
  },
];

function errorOffence(value: Json): string | undefined {
  const outer = membersOffence(value, ["error"], false);
  if (outer !== undefined) return outer;
  if (!isObject(value.error)) return "an error that is no object";
  return membersOffence(value.error, ["message", "type", "param", "code"], false);
}

function* chatChunk(view: StreamView, chunk: Chunk, profile: ProfileName): Generator<Offence> {
  const isLean = profile === "lean";
  const audio = chunk.choices.some(({ delta }) => isObject(delta) && "audio" in delta);
  const start = ["id", "object", "created", "model", ...(isLean ? [] : ["service_tier"]), "system_fingerprint"];
  const usage = usageIn(view, chunk, audio);
  const plain = [...start, "choices", "moderation?", ...usage, "obfuscation?"];
  // Recorded of parallel calls: their role and call chunks have usage before choices (154 of 154).
  const reversed = [...start, ...usage, "choices", "obfuscation?"];
  const found = membersOffence(chunk.value, plain, isLean);
  if (found !== undefined && (isLean || membersOffence(chunk.value, reversed, false) !== undefined))
    yield atMember(chunk, "object", found);
  const logprobs = isLean ? "logprobs" : "logprobs?";
  // The chunk that tells when audio expires has no finish reason.
  const wanted = ["index", "delta", logprobs, audio ? "finish_reason?" : "finish_reason"];
  for (const choice of chunk.choices) {
    const wrong = membersOffence(choice, wanted, isLean);
    if (wrong !== undefined) yield atMember(chunk, "choices", `a choice with ${wrong}`);
  }
}

function* completionChunk(view: StreamView, chunk: Chunk, profile: ProfileName): Generator<Offence> {
  const usage = usageIn(view, chunk, false);
  const lean = ["id", "object", "created", "model", "system_fingerprint", "choices", ...usage];
  const closing = ["id", "object", "created", "model", ...usage, "choices"];
  const exact = chunk.choices.length === 0 ? closing : ["id", "object", "created", "choices", "model", ...usage];
  const found = membersOffence(chunk.value, profile === "lean" ? lean : exact, profile === "lean");
  if (found !== undefined) yield atMember(chunk, "object", found);
  for (const choice of chunk.choices) {
    const wrong = membersOffence(choice, ["text", "index", "logprobs", "finish_reason"], profile === "lean");
    if (wrong !== undefined) yield atMember(chunk, "choices", `a choice with ${wrong}`);
  }
}

/** `usage` stands in every chunk or in none, as the request has it. */
function usageIn(view: StreamView, chunk: Chunk, audio: boolean): readonly string[] {
  const asked = askedForUsage(view.exchange);
  if (asked === undefined || audio || chunk.choices.length === 0) return ["usage?"];
  return asked ? ["usage"] : [];
}

function wantedOf({ exchange }: BodyView, profile: ProfileName): readonly string[] | undefined {
  const start = ["id", "object", "created", "model"];
  const lean = profile === "lean";
  // A source may not have counted.
  const usage = lean ? "usage?" : "usage";
  switch (exchange.endpoint) {
    case "chat":
      return [...start, "choices", usage, ...(lean ? ["system_fingerprint"] : ["service_tier", "system_fingerprint"])];
    case "completions":
      return [...start, ...(lean ? ["system_fingerprint"] : []), "choices", usage];
    case "models":
      return ["object", "data"];
    case "model":
      return ["id", "object", "created", "owned_by"];
    case "embeddings":
      return ["object", "data", "model", usage];
    case "response-tokens":
      return ["object", "input_tokens"];
    default:
      return undefined;
  }
}

function* bodyChoices(view: BodyView, profile: ProfileName): Generator<Offence> {
  const isLean = profile === "lean";
  if (view.exchange.endpoint === "completions") {
    for (const choice of choicesOf(view)) {
      const found = membersOffence(choice, ["text", "index", "logprobs", "finish_reason"], isLean);
      if (found !== undefined) yield atName(view, "choices", `a choice with ${found}`);
    }
  }
  if (view.exchange.endpoint !== "chat") return;
  const calls = ["tool_calls?", "function_call?"];
  const message = isLean
    ? ["role", "content", "reasoning_content?", "reasoning?", ...calls, "refusal?"]
    : ["role", "content", ...calls, "refusal", "audio?", "annotations"];
  for (const choice of choicesOf(view)) {
    const found = membersOffence(
      choice,
      ["index", "message", isLean ? "logprobs" : "logprobs?", "finish_reason"],
      isLean,
    );
    if (found !== undefined) yield atName(view, "choices", `a choice with ${found}`);
    const wrong = membersOffence(messageOf(choice), message, isLean);
    if (wrong !== undefined) yield atName(view, "message", `a message with ${wrong}`);
  }
}
