import { canAnswer } from "../core/engine.ts";
import { FailureError } from "../core/failure.ts";
import { readDetokenizeRequest, readTokenizeRequest } from "../apis/tokens/read-request.ts";
import { writeAdapters, writeSlots, writeText, writeTokens } from "../apis/tokens/write-tokens.ts";
import { modelsOf } from "./keys/models-of-client.ts";
import { found, modelAsked, untilGone } from "./model-asked.ts";
import { takeSteps } from "./turns.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";

/** `POST /tokenize`, as llama.cpp's server and vLLM have it. */
export async function tokenize(reply: Reply, service: Service): Promise<void> {
  const { body, model, name } = await modelAsked(reply, service);
  const { engine, forwards } = model.from;
  const options = { profile: reply.profile, forwards: forwards?.includes("chat") ?? false };
  const { request, form, withTexts } = await takeSteps(readTokenizeRequest(body, name, reply.requestId, options));
  if (!canAnswer(engine, "tokenize")) throw tellsNoTokens(name);
  const meant = { ...request, model: model.engineModel };
  const told = await untilGone(
    reply,
    engine.ask({ kind: "tokenize", request: meant }, reply.exchange.departure.signal),
  );
  const written = await takeSteps(writeTokens(told, form, withTexts, model.info.contextLength));
  reply.send(200, "application/json", written);
}

/** `POST /detokenize`. */
export async function detokenize(reply: Reply, service: Service): Promise<void> {
  const { body, model, name } = await modelAsked(reply, service);
  const request = readDetokenizeRequest(body, model.engineModel, reply.requestId);
  const { engine } = model.from;
  if (!canAnswer(engine, "detokenize")) throw tellsNoTokens(name);
  const text = await untilGone(reply, engine.ask({ kind: "detokenize", request }, reply.exchange.departure.signal));
  reply.send(200, "application/json", writeText(text));
}

/**
 * `GET /slots`: what each slot of the local models does, of one model with `?model=NAME`. 503 with `?fail_on_no_slot=1` while none is
 * free, as llama.cpp's server has it; 501 where nothing that is served has slots.
 */
export async function answerSlots(reply: Reply, service: Service): Promise<void> {
  const { exchange } = reply;
  const directory = modelsOf(reply.client, service.directory);
  const asked = exchange.query("model");
  const only = asked === undefined ? undefined : found(directory, asked, reply);
  const engines = [...new Set((only ? [only] : directory.list()).map(({ from }) => from))];
  const slots = await Promise.all(
    engines.map(async ({ engine, name }) => {
      if (!canAnswer(engine, "slots")) return [];
      const model = engine.models()[0]?.id ?? name;
      const slots = await untilGone(reply, engine.ask({ kind: "slots", request: null }, exchange.departure.signal));
      return slots.map((slot) => ({ ...slot, model }));
    }),
  );
  const all = slots.flat();
  if (all.length === 0)
    throw new FailureError({
      kind: "internal",
      status: 501,
      message: "No local model is served, so there are no slots.",
    });
  if (exchange.query("fail_on_no_slot") !== undefined && all.every(({ busy }) => busy))
    throw new FailureError({ kind: "unavailable", status: 503, message: "No slot is free.", retryAfterSeconds: 1 });
  reply.send(200, "application/json", writeSlots(all));
}

/** `GET /lora-adapters`, as llama.cpp's server has it: the adapters of all models, or of one with `?model=NAME`. */
export function answerAdapters(reply: Reply, service: Service): void {
  const directory = modelsOf(reply.client, service.directory);
  const asked = reply.exchange.query("model");
  const models = asked === undefined ? directory.list() : [found(directory, asked, reply)];
  const all = models.flatMap(({ info }) => (info.adapters ?? []).map((adapter) => ({ ...adapter, model: info.id })));
  reply.send(200, "application/json", writeAdapters(all));
}

function tellsNoTokens(model: string): FailureError {
  const message = `The tokens of '${model}' are not known: only local models, and servers that have /tokenize, can tell.`;
  return new FailureError({ kind: "internal", message, status: 501 });
}
