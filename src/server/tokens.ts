import { FailureError, invalidRequest } from "../generation/failure.ts";
import { modelNotFound } from "../wire/failures.ts";
import { objectBody, readDetokenizeRequest, readTokenizeRequest } from "../wire/tokens/read-request.ts";
import { writeSlots, writeText, writeTokens } from "../wire/tokens/write-tokens.ts";
import { ClientGone } from "./exchange.ts";
import { modelsOf, type ModelView } from "./keys/models-of-client.ts";
import { takeTurn } from "./keys/take-turn.ts";
import { takeSteps } from "./turns.ts";
import type { ServedModel } from "./model-directory.ts";
import { readJson } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { unknownModel } from "./unknown-model.ts";

/** `POST /tokenize`, as llama.cpp's server and vLLM have it. */
export async function tokenize(reply: Reply, service: Service): Promise<void> {
  const { body, model, name } = await asked(reply, service);
  const { engine, forwards } = model.from;
  const options = { profile: reply.profile, forwards: forwards?.includes("chat") ?? false };
  const { request, form, withTexts } = await takeSteps(readTokenizeRequest(body, name, reply.requestId, options));
  if (!engine.tokenize) throw tellsNoTokens(name);
  const meant = { ...request, model: model.engineModel };
  const told = await untilGone(reply, engine.tokenize(meant, reply.exchange.departure.signal));
  reply.send(200, "application/json", writeTokens(told, form, withTexts, model.info.contextLength));
}

/** `POST /detokenize`. */
export async function detokenize(reply: Reply, service: Service): Promise<void> {
  const { body, model, name } = await asked(reply, service);
  const request = readDetokenizeRequest(body, model.engineModel, reply.requestId);
  const { engine } = model.from;
  if (!engine.detokenize) throw tellsNoTokens(name);
  const text = await untilGone(reply, engine.detokenize(request, reply.exchange.departure.signal));
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
      if (!engine.slots) return [];
      const model = engine.models()[0]?.id ?? name;
      return (await untilGone(reply, engine.slots(exchange.departure.signal))).map((slot) => ({ ...slot, model }));
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

/** The body, and the model that it means: where it names none, the only one that there is. `name`: as the client calls it. */
async function asked(
  reply: Reply,
  service: Service,
): Promise<{ body: Readonly<Record<string, unknown>>; model: ServedModel; name: string }> {
  const directory = modelsOf(reply.client, service.directory);
  const body = objectBody((await readJson(reply.exchange, service.settings.bodyLimit)).value);
  const named = body["model"] ?? undefined;
  if (named !== undefined && typeof named !== "string")
    throw invalidRequest("Invalid type for 'model': expected a string.", "model", "invalid_type");
  const model = named === undefined ? onlyModel(directory) : found(directory, named, reply);
  reply.useProfile(model.from.profile);
  const name = named ?? model.info.id;
  reply.record.model = name;
  if (reply.client?.limits) await takeTurn(reply, service, 0);
  return { body, model, name };
}

function onlyModel(directory: ModelView): ServedModel {
  const [first, ...others] = directory.list();
  if (first && others.every(({ from, engineModel }) => from === first.from && engineModel === first.engineModel))
    return first;
  throw invalidRequest(
    "Several models are served: say which one is meant, as 'model'.",
    "model",
    "missing_required_parameter",
  );
}

function found(directory: ModelView, name: string, { profile }: Reply): ServedModel {
  const model = directory.find(name);
  if (model) return model;
  const known = profile.listsModels ? directory.list().map(({ info }) => info.id) : [];
  throw unknownModel(name, directory, modelNotFound(name, known));
}

async function untilGone<T>({ exchange }: Reply, answer: Promise<T>): Promise<T> {
  return answer.catch((error: unknown) => {
    throw exchange.departure.happened ? new ClientGone({ cause: error }) : error;
  });
}

function tellsNoTokens(model: string): FailureError {
  const message = `The tokens of '${model}' are not known: only local models, and servers that have /tokenize, can tell.`;
  return new FailureError({ kind: "internal", message, status: 501 });
}
