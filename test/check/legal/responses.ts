import type { Exchange } from "../../../src/judge/check/rules/exchange.ts";
import { accumulate } from "../../../src/wire/core/accumulate.ts";
import type { GenerationEvent } from "../../../src/wire/core/events.ts";
import { invalidRequest } from "../../../src/wire/core/failure.ts";
import { runSync } from "../../../src/wire/core/steps.ts";
import { incorrectApiKey, modelDoesNotExist } from "../../../src/wire/apis/failures.ts";
import type { AnswerContext } from "../../../src/wire/apis/port.ts";
import { exact, lean, type Profile } from "../../../src/wire/apis/profile.ts";
import { responseBodyText } from "../../../src/wire/apis/responses/form.ts";
import { responsesPort } from "../../../src/wire/apis/responses/port.ts";
import { responsesErrorFormat } from "../../../src/wire/apis/responses/errors.ts";
import { between, oneOf, seeded } from "../random.ts";
import { batches } from "./events.ts";
import { responseEventsFor } from "./response-events.ts";
import { responseRequest, streamedResponseRequest } from "./response-requests.ts";
import { aboutStored, bySocket } from "./stored-responses.ts";
import type { Legal } from "./stream.ts";

/** A legal stream of the Responses API, made by our own reader and writer from random events, with keep-alives between them. */
export function legalResponseStream(seed: number): Legal {
  const random = seeded(seed);
  const profile = oneOf([lean, exact], random);
  const body = streamedResponseRequest(responseRequest(random), random);
  return { exchange: streamOf(body, responseEventsFor(body, random, true), profile, random), profile };
}

/** The same by WebSocket. */
export function legalResponseSocket(seed: number): Legal {
  const { exchange, profile } = legalResponseStream(seed);
  return { exchange: bySocket(exchange), profile };
}

/** A legal answer of the Responses API that is no stream: a response, what is told about a stored one, or an error. */
export function legalResponseBody(seed: number): Legal {
  const random = seeded(seed);
  const profile = oneOf([lean, exact], random);
  if (random() < 0.15) return { exchange: refused(profile, random), profile };
  if (random() < 0.05) return { exchange: counted(profile), profile };
  if (random() < 0.1) return { exchange: aboutStored(profile, random), profile };
  const body = responseRequest(random);
  return { exchange: bodyOf(body, responseEventsFor(body, random, false), profile, random), profile };
}

/** A streamed answer with these events. */
export function streamOf(
  body: Record<string, unknown>,
  events: readonly GenerationEvent[],
  profile: Profile,
  random: () => number,
): Exchange {
  const writer = runSync(responsesPort.readRequest(body, "req_1", { profile })).streamWriter(
    contextOf(profile, random),
  );
  const text = batches(events, random).map(
    (batch) => (random() < 0.05 ? writer.keepAlive() : "") + writer.write(batch),
  );
  return exchangeOf(body, text.join(""), responsesPort.streamHeaders(profile));
}

/** The same, whole. */
export function bodyOf(
  body: Record<string, unknown>,
  events: readonly GenerationEvent[],
  profile: Profile,
  random: () => number,
): Exchange {
  const read = runSync(responsesPort.readRequest(body, "req_1", { profile }));
  const text = read.writeResponse(accumulate(events), contextOf(profile, random));
  return exchangeOf(body, text, { "content-type": "application/json" });
}

/** How many tokens an input has. */
function counted(profile: Profile): Exchange {
  const text = responseBodyText({ object: "response.input_tokens", input_tokens: 11 }, profile);
  const { request, ...rest } = exchangeOf({ model: "m", input: "Hi" }, text, { "content-type": "application/json" });
  return { ...rest, endpoint: "response-tokens", request: { ...request, path: "/v1/responses/input_tokens" } };
}

function refused(profile: Profile, random: () => number): Exchange {
  const { failure } = oneOf(
    [
      modelDoesNotExist("no-such-model"),
      incorrectApiKey("sk-a-key-that-is-wrong"),
      invalidRequest("x < y & z", "text.format.schema", "invalid_json_schema"),
    ],
    random,
  );
  const { status, contentType, body } = responsesErrorFormat.writeFailure(failure, profile, "req_1");
  const { response, ...rest } = exchangeOf({ model: "m", input: "Hi" }, body, { "content-type": contentType });
  return { ...rest, response: { ...response, status } };
}

/** Time passes while the answer is written. */
function contextOf(profile: Profile, random: () => number): AnswerContext {
  const created = between(1_700_000_000, 1_800_000_000, random);
  let now = created;
  return { profile, created, now: () => (now += random()), model: "m", settings: {}, random };
}

function exchangeOf(body: Record<string, unknown>, text: string, headers: Readonly<Record<string, string>>): Exchange {
  return {
    endpoint: "responses",
    request: { method: "POST", path: "/v1/responses", body },
    response: { status: 200, headers: { ...headers, "x-request-id": "req_1" }, body: text, complete: true },
  };
}
