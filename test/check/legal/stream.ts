import type { Exchange } from "../../../src/check/rules/exchange.ts";
import type { GenerationEvent } from "../../../src/generation/event.ts";
import { streamHeaders } from "../../../src/server/stream-headers.ts";
import type { ChoicesContext } from "../../../src/wire/choices-answer.ts";
import { chatEndpoint } from "../../../src/wire/chat/endpoint.ts";
import { completionsEndpoint } from "../../../src/wire/completions/endpoint.ts";
import { answerId } from "../../../src/wire/ids.ts";
import { exact, lean, type Profile } from "../../../src/wire/profile.ts";
import { between, oneOf, seeded } from "../random.ts";
import { batches, eventsFor } from "./events.ts";
import { chatRequest, completionRequest, streamed } from "./requests.ts";

/** An exchange, and the profile that it was written in. */
export interface Legal {
  readonly exchange: Exchange;
  readonly profile: Profile;
}

/**
 * A legal streamed exchange, made by our own reader and writer from random events: any endpoint and profile, one to three choices,
 * text, reasoning, refusals, calls, log probabilities, usage, errors.
 */
export function legalStream(seed: number): Legal {
  const random = seeded(seed);
  const profile = oneOf([lean, exact], random);
  const plain = random() < 0.85 ? chatRequest(random) : completionRequest(random);
  const body = streamed(plain, random);
  return { exchange: writtenStream(body, eventsFor(body, random, true), profile, random), profile };
}

/** A streamed answer with these events. */
export function writtenStream(
  body: Record<string, unknown>,
  events: readonly GenerationEvent[],
  profile: Profile,
  random: () => number,
): Exchange {
  const endpoint = "messages" in body ? chatEndpoint : completionsEndpoint;
  const writer = endpoint.streamWriter(contextOf(body, profile, random));
  const text = batches(events, random).map((batch) => writer.write(batch));
  return {
    endpoint: endpoint.name,
    request: { method: "POST", path: pathOf(body), body },
    response: {
      status: 200,
      headers: { ...streamHeaders(endpoint.name, profile), "x-request-id": "req_1" },
      body: text.join(""),
      complete: true,
    },
  };
}

/** What our server adds to an answer of the model "m". */
export function contextOf(body: Record<string, unknown>, profile: Profile, random: () => number): ChoicesContext {
  const endpoint = "messages" in body ? chatEndpoint : completionsEndpoint;
  const { asked } = endpoint.readRequest(body, "req_1", { profile });
  const created = between(1_700_000_000, 1_800_000_000, random);
  const id = answerId(endpoint === chatEndpoint ? "chatcmpl-" : "cmpl-", created, random);
  return { profile, asked, id, created, model: "m", settings: {}, random };
}

export function pathOf(body: Record<string, unknown>): string {
  return "messages" in body ? "/v1/chat/completions" : "/v1/completions";
}
