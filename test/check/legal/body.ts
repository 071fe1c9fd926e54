import type { Exchange } from "../../../src/judge/check/rules/exchange.ts";
import { accumulate } from "../../../src/wire/core/accumulate.ts";
import type { GenerationEvent } from "../../../src/wire/core/events.ts";
import { invalidRequest } from "../../../src/wire/core/failure.ts";
import { writeChatResponse } from "../../../src/wire/apis/chat/write-body.ts";
import { writeCompletionResponse } from "../../../src/wire/apis/completions/write-body.ts";
import { writeEmbeddings } from "../../../src/wire/apis/embeddings/embeddings.ts";
import { writeErrorBody } from "../../../src/wire/apis/error-body.ts";
import {
  bodyTooLarge,
  incorrectApiKey,
  internalError,
  malformedJson,
  methodNotAllowed,
  missingApiKey,
  modelDoesNotExist,
  modelNotFound,
  unknownUrl,
} from "../../../src/wire/apis/failures.ts";
import { writeModel, writeModelList } from "../../../src/wire/apis/models/models.ts";
import { exact, lean, type Profile } from "../../../src/wire/apis/profile.ts";
import { emptyArray, missingParameter } from "../../../src/wire/apis/request/refusals.ts";
import { between, oneOf, seeded } from "../random.ts";
import { eventsFor } from "./events.ts";
import { chatRequest, completionRequest } from "./requests.ts";
import { contextOf, type Legal, pathOf } from "./stream.ts";

/** A legal exchange without a stream: an answer of either endpoint, a list of models, a model, embeddings, or an error. */
export function legalBody(seed: number): Legal {
  const random = seeded(seed);
  const profile = oneOf([lean, exact], random);
  const kind = random();
  if (kind < 0.5) return { exchange: answered(chatRequest(random), profile, random), profile };
  if (kind < 0.65) return { exchange: answered(completionRequest(random), profile, random), profile };
  if (kind < 0.75) return { exchange: listed(profile, random), profile };
  if (kind < 0.8) return { exchange: embedded(profile), profile };
  return { exchange: refused(profile, random), profile };
}

function answered(body: Record<string, unknown>, profile: Profile, random: () => number): Exchange {
  return writtenBody(body, eventsFor(body, random, false), profile, random);
}

/** An answer with these events, whole. */
export function writtenBody(
  body: Record<string, unknown>,
  events: readonly GenerationEvent[],
  profile: Profile,
  random: () => number,
): Exchange {
  const isChat = "messages" in body;
  const write = isChat ? writeChatResponse : writeCompletionResponse;
  const text = write(accumulate(events), contextOf(body, profile, random));
  return exchangeOf(isChat ? "chat" : "completions", pathOf(body), text, body);
}

function listed(profile: Profile, random: () => number): Exchange {
  const models = ["small", "org/large:7b", "gpt-4o-mini"].slice(0, between(1, 3, random)).map((id) => ({
    id,
    created: between(1_700_000_000, 1_800_000_000, random),
    ownedBy: "truewire",
    endpoints: ["chat" as const],
  }));
  const [first] = models;
  if (first && random() < 0.4) return exchangeOf("model", `/v1/models/${first.id}`, writeModel(first, profile));
  return exchangeOf("models", "/v1/models", writeModelList(models, profile));
}

function embedded(profile: Profile): Exchange {
  const body = { model: "m", input: "Hello" };
  const text = writeEmbeddings({ vectors: [[0.25, -0.5]], promptTokens: 1 }, "m", "float", profile);
  return exchangeOf("embeddings", "/v1/embeddings", text, body);
}

/** An error, as every endpoint may answer. */
export function refused(profile: Profile, random: () => number): Exchange {
  const { failure } = oneOf(
    [
      incorrectApiKey("sk-a-key-that-is-wrong"),
      missingApiKey(),
      modelNotFound("no-such-model", []),
      modelDoesNotExist("no-such-model"),
      unknownUrl("POST", "/v1/nope"),
      methodNotAllowed("GET", "/v1/chat/completions", ["POST"]),
      bodyTooLarge(1024),
      malformedJson(),
      internalError(new Error("a defect")),
      missingParameter("messages"),
      emptyArray("messages"),
      invalidRequest("x < y & z", "temperature", "invalid_value"),
    ],
    random,
  );
  const { status, contentType, body } = writeErrorBody(failure, profile);
  const { response, ...rest } = exchangeOf("chat", "/v1/chat/completions", body, { model: "m", messages: [] });
  return { ...rest, response: { ...response, status, headers: { ...response.headers, "content-type": contentType } } };
}

function exchangeOf(
  endpoint: Exchange["endpoint"],
  path: string,
  text: string,
  body?: Record<string, unknown>,
): Exchange {
  return {
    endpoint,
    request: { method: body ? "POST" : "GET", path, ...(body && { body }) },
    response: {
      status: 200,
      headers: { "content-type": "application/json", "x-request-id": "req_1" },
      body: text,
      complete: true,
    },
  };
}
