import { modelNotFound } from "../apis/failures.ts";
import type { TokenCounter } from "../apis/port.ts";
import { readConversation, readDetokenizeRequest, readTokenizeRequest } from "../apis/tokens/read-request.ts";
import { writeAdapters, writeSlots, writeText, writeTokens } from "../apis/tokens/write-tokens.ts";
import { estimateTokens } from "../core/estimate-tokens.ts";
import { FailureError } from "../core/failure.ts";
import type { GenerationRequest } from "../core/request.ts";
import { ClientGone } from "./exchange.ts";
import { takeTurn } from "./keys/take-turn.ts";
import { found, modelAsked, untilGone } from "./model-asked.ts";
import { modelsOf } from "./model-directory.ts";
import type { ServedModel } from "./model-directory.ts";
import { readJson } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { takeSteps } from "./turns.ts";
import { unknownModel } from "./unknown-model.ts";

/** `POST /tokenize`, as llama.cpp's server and vLLM have it. */
export async function tokenize(reply: Reply, service: Service): Promise<void> {
  const { body, model, name } = await modelAsked(reply, service);
  const { engine, forwards } = model.from;
  const options = { profile: reply.profile, forwards: forwards?.includes("chat") ?? false };
  const { request, form, withTexts } = await takeSteps(readTokenizeRequest(body, name, reply.requestId, options));
  if (!engine.tokenize) throw tellsNoTokens(name);
  const meant = { ...request, model: model.engineModel };
  const told = await untilGone(reply, engine.tokenize(meant, reply.exchange.departure.signal));
  const written = await takeSteps(writeTokens(told, form, withTexts, model.info.contextLength));
  reply.send(200, "application/json", written);
}

/** `POST /detokenize`. */
export async function detokenize(reply: Reply, service: Service): Promise<void> {
  const { body, model, name } = await modelAsked(reply, service);
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

/** `POST /apply-template`, as llama.cpp's server has it: the prompt that a chat request makes, which is not answered. */
export async function applyTemplate(reply: Reply, service: Service): Promise<void> {
  const { body, model, name } = await modelAsked(reply, service);
  const options = { profile: reply.profile, forwards: false };
  const request = await takeSteps(readConversation(body, name, reply.requestId, options));
  const { engine } = model.from;
  if (!engine.applyTemplate)
    throw new FailureError({
      kind: "internal",
      message: `The template of '${name}' is not known: only local models can tell.`,
      status: 501,
    });
  const owner = reply.client && { owner: reply.client.owner };
  const meant = { ...request, model: model.engineModel, ...owner };
  const prompt = await untilGone(reply, engine.applyTemplate(meant, reply.exchange.departure.signal));
  reply.send(200, "application/json", JSON.stringify({ prompt }));
}

/** Answers how many tokens a request's prompt has. `api`: the port's name. */
export async function countTokens(api: string, counter: TokenCounter, reply: Reply, service: Service): Promise<void> {
  const { exchange, record, requestId, client } = reply;
  const directory = modelsOf(client, service.directory);
  const received = await readJson(reply, service);
  record.received(received);
  const body = received.value;
  const model = directory.namedIn(body);
  const profile = reply.useProfile(model?.from.profile);
  const forwards = model?.from.forwards?.includes(api) ?? false;
  const header = (name: string): string | undefined => exchange.header(name);
  const request = await takeSteps(counter.readRequest(body, requestId, { profile, forwards, header }));
  record.model = request.model;
  if (!model) {
    const known = profile.listsModels ? directory.list().map(({ info }) => info.id) : [];
    throw unknownModel(request.model, directory, modelNotFound(request.model, known));
  }
  if (client?.limits) await takeTurn(reply, service, 0);
  reply.send(200, "application/json", counter.write(await tokensOf(model, request, reply)));
}

/**
 * The number of tokens of a request's prompt. If the model's engine or its server cannot count them, the number is an estimate, which
 * the header `x-truewire-estimate: tokens` of the reply marks. Rejects with `FailureError`.
 */
export async function tokensOf(
  { engineModel, from: { engine } }: ServedModel,
  request: GenerationRequest,
  reply: Reply,
): Promise<number> {
  const { departure } = reply.exchange;
  try {
    const tokens = await engine.countTokens?.({ ...request, model: engineModel }, departure.signal);
    if (tokens !== undefined) return tokens;
  } catch (error) {
    if (departure.happened) throw new ClientGone({ cause: error });
    if (!(error instanceof FailureError && withoutPath.has(error.failure.status))) throw error;
  }
  reply.addHeaders({ "x-truewire-estimate": "tokens" });
  return estimateTokens(request);
}

/** How servers answer at a path that they do not have: many that speak the Messages API have no `count_tokens`. */
const withoutPath: ReadonlySet<number> = new Set([404, 405, 501]);
