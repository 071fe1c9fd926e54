import type { Exchange } from "../../../src/judge/check/rules/exchange.ts";
import { accumulate } from "../../../src/wire/core/accumulate.ts";
import type { GenerationEvent } from "../../../src/wire/core/events.ts";
import { invalidRequest } from "../../../src/wire/core/failure.ts";
import { runSync } from "../../../src/wire/core/steps.ts";
import {
  bodyTooLarge,
  incorrectApiKey,
  internalError,
  malformedJson,
  missingApiKey,
  modelNotFound,
  unknownUrl,
} from "../../../src/wire/apis/failures.ts";
import { messagesPort } from "../../../src/wire/apis/messages/port.ts";
import type { AnswerContext } from "../../../src/wire/apis/port.ts";
import { exact, lean, type Profile } from "../../../src/wire/apis/profile.ts";
import { between, oneOf, seeded } from "../random.ts";
import { batches } from "./events.ts";
import { messageEventsFor, messageRequest } from "./message-events.ts";
import type { Legal } from "./stream.ts";

const headers = { "content-type": "application/json", "request-id": "req_1" };

/** A legal streamed message, made by our own reader and writer from random events. */
export function legalMessageStream(seed: number): Legal {
  const random = seeded(seed);
  const profile = oneOf([lean, exact], random);
  const body = { ...messageRequest(random), stream: true };
  return { exchange: writtenMessageStream(body, messageEventsFor(body, random, true), profile, random), profile };
}

/** A streamed message with these events. */
export function writtenMessageStream(
  body: Record<string, unknown>,
  events: readonly GenerationEvent[],
  profile: Profile,
  random: () => number,
): Exchange {
  const writer = runSync(messagesPort.readRequest(body, "req_1", { profile })).streamWriter(contextOf(profile, random));
  const text = batches(events, random).map((batch) => writer.write(batch));
  const answer = exchangeOf("messages", "/v1/messages", text.join(""), body);
  const streamHeaders = { ...messagesPort.streamHeaders(profile), "request-id": "req_1" };
  return { ...answer, response: { ...answer.response, headers: streamHeaders } };
}

/** A message with these events, whole. */
export function writtenMessageBody(
  body: Record<string, unknown>,
  events: readonly GenerationEvent[],
  profile: Profile,
  random: () => number,
): Exchange {
  const { writeResponse } = runSync(messagesPort.readRequest(body, "req_1", { profile }));
  return exchangeOf("messages", "/v1/messages", writeResponse(accumulate(events), contextOf(profile, random)), body);
}

/** A legal exchange of the Messages API without a stream: a message, a count, a list of models, a model, or an error. */
export function legalMessageBody(seed: number): Legal {
  const random = seeded(seed);
  const profile = oneOf([lean, exact], random);
  const kind = random();
  if (kind < 0.6) {
    const body = messageRequest(random);
    return { exchange: writtenMessageBody(body, messageEventsFor(body, random, false), profile, random), profile };
  }
  if (kind < 0.65) {
    const text = messagesPort.tokenCounter?.write(between(1, 9000, random)) ?? "";
    return { exchange: exchangeOf("message-tokens", "/v1/messages/count_tokens", text, {}), profile };
  }
  return { exchange: kind < 0.8 ? listed(random) : refusedMessage(profile, random), profile };
}

function listed(random: () => number): Exchange {
  const models = ["small", "org/large:7b", "claude-x"].slice(0, between(1, 3, random)).map((id) => ({
    id,
    created: between(1_700_000_000, 1_800_000_000, random),
    ownedBy: "truewire",
    endpoints: ["chat" as const],
    ...(random() < 0.5 && { contextLength: 4096 }),
  }));
  const { list, one } = messagesPort.errorFormat.models ?? {};
  const [first] = models;
  if (first && random() < 0.4) return exchangeOf("anthropic-model", `/v1/models/${first.id}`, one?.(first) ?? "");
  return exchangeOf("anthropic-models", "/v1/models", list?.(models) ?? "");
}

/** An error, as the API may answer. */
export function refusedMessage(profile: Profile, random: () => number): Exchange {
  const { failure } = oneOf(
    [
      incorrectApiKey("sk-a-key-that-is-wrong"),
      missingApiKey(),
      modelNotFound("no-such-model", []),
      unknownUrl("POST", "/v1/nope"),
      bodyTooLarge(1024),
      malformedJson(),
      internalError(new Error("a defect")),
      invalidRequest("temperature: range: 0..1", "temperature"),
      invalidRequest("messages.0.role: Input should be 'user'", "messages.0.role"),
    ],
    random,
  );
  const { status, body } = messagesPort.errorFormat.writeFailure(failure, profile, "req_1");
  const answer = exchangeOf("messages", "/v1/messages", body, { model: "m", max_tokens: 1, messages: [] });
  return { ...answer, response: { ...answer.response, status } };
}

/** What our server adds to an answer of the model "m". */
function contextOf(profile: Profile, random: () => number): AnswerContext {
  return { profile, created: between(1_700_000_000, 1_800_000_000, random), model: "m", settings: {}, random };
}

function exchangeOf(
  endpoint: Exchange["endpoint"],
  path: string,
  body: string,
  request?: Record<string, unknown>,
): Exchange {
  return {
    endpoint,
    request: { method: request ? "POST" : "GET", path, ...(request && { body: request }) },
    response: { status: 200, headers, body, complete: true },
  };
}
