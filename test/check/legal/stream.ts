import type { Exchange } from "../../../src/judge/check/rules/exchange.ts";
import type { GenerationEvent } from "../../../src/wire/core/events.ts";
import type { ChoicesContext } from "../../../src/wire/apis/choices-answer.ts";
import { chatPort } from "../../../src/wire/apis/chat/port.ts";
import { readChatRequest } from "../../../src/wire/apis/chat/request.ts";
import { ChatStreamWriter } from "../../../src/wire/apis/chat/write-stream.ts";
import { completionsPort } from "../../../src/wire/apis/completions/port.ts";
import { readCompletionRequest } from "../../../src/wire/apis/completions/request.ts";
import { CompletionStreamWriter } from "../../../src/wire/apis/completions/write-stream.ts";
import { answerId } from "../../../src/wire/apis/ids.ts";
import { exact, lean, type Profile } from "../../../src/wire/apis/profile.ts";
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
  const isChat = "messages" in body;
  const context = contextOf(body, profile, random);
  const writer = isChat ? new ChatStreamWriter(context) : new CompletionStreamWriter(context);
  const text = batches(events, random).map((batch) => writer.write(batch));
  return {
    endpoint: isChat ? "chat" : "completions",
    request: { method: "POST", path: pathOf(body), body },
    response: {
      status: 200,
      headers: { ...(isChat ? chatPort : completionsPort).streamHeaders(profile), "x-request-id": "req_1" },
      body: text.join(""),
      complete: true,
    },
  };
}

/** What our server adds to an answer of the model "m". */
export function contextOf(body: Record<string, unknown>, profile: Profile, random: () => number): ChoicesContext {
  const isChat = "messages" in body;
  const { requested: asked } = (isChat ? readChatRequest : readCompletionRequest)(body, "req_1", { profile });
  const created = between(1_700_000_000, 1_800_000_000, random);
  const id = answerId(isChat ? "chatcmpl-" : "cmpl-", created, random);
  return { profile, requested: asked, id, created, model: "m", settings: {}, random };
}

export function pathOf(body: Record<string, unknown>): string {
  return "messages" in body ? "/v1/chat/completions" : "/v1/completions";
}
