import {
  objectBody,
  readDetokenizeRequest,
  readPromptRequest,
  readTokenizeRequest,
  writeAdapters,
  writeSlots,
  writeText,
  writeTokens,
} from "../../wire/apis/tokens/tokens.ts";
import type { CountedRequest, TokenCounter } from "../../wire/apis/port.ts";
import { canAnswer } from "../../wire/core/engine.ts";
import type { EngineAnswer, EngineQuestion } from "../../wire/core/engine.ts";
import { estimateTokens } from "../../wire/core/estimate-tokens.ts";
import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { ClientGone } from "./exchange.ts";
import { seenByHook } from "./hook/with-hook.ts";
import { modelNamed, modelsOf, type ServedModel } from "./model-directory.ts";
import type { ModelEndpoint, NamedRequest, Reply } from "./reply.ts";
import { readJsonBody } from "./read-json.ts";
import type { ReasoningEnd } from "./running-answers.ts";
import type { Service } from "./service.ts";
import { inTurns } from "./turns.ts";
import { takeLimits } from "./keys/take-limits.ts";

/** The body of an endpoint of llama.cpp's server, in which `model` is optional. The endpoint reads the rest once it has the model. */
interface BodyOfModel extends NamedRequest {
  readonly body: Readonly<Record<string, unknown>>;
}

function readBodyOfModel(value: unknown): BodyOfModel {
  const body = objectBody(value);
  const name = body["model"] ?? undefined;
  if (name === undefined || typeof name === "string") return { name, body };
  throw invalidRequest("Invalid type for 'model': expected a string.", "model", "invalid_type");
}

/** `POST /tokenize`, as in llama.cpp's server and vLLM. */
export const tokenizeEndpoint: ModelEndpoint<BodyOfModel> = {
  read: readBodyOfModel,
  async answer({ body, name: named }, model, reply) {
    const name = named ?? model.info.id;
    const { engine, forwards } = model.from;
    const options = { profile: reply.profile, forwards: forwards?.includes("chat") ?? false };
    const { request, form, withTexts } = await inTurns(readTokenizeRequest(body, name, reply.requestId, options));
    if (!canAnswer(engine, "tokenize")) throw hasNoTokenizer(name);
    const question = { kind: "tokenize", request: { ...request, model: model.engineModel } } as const;
    const tokens = await untilGone(reply, engine.ask(question, reply.exchange.departure.signal));
    const written = await inTurns(writeTokens(tokens, form, withTexts, model.info.contextLength));
    reply.send(200, "application/json", written);
  },
};

/** `POST /detokenize`, as in llama.cpp's server and vLLM. */
export const detokenizeEndpoint: ModelEndpoint<BodyOfModel> = {
  read: readBodyOfModel,
  async answer({ body, name }, model, reply) {
    const { engine } = model.from;
    const request = readDetokenizeRequest(body, model.engineModel, reply.requestId);
    if (!canAnswer(engine, "detokenize")) throw hasNoTokenizer(name ?? model.info.id);
    const question = { kind: "detokenize", request } as const;
    const text = await untilGone(reply, engine.ask(question, reply.exchange.departure.signal));
    reply.send(200, "application/json", writeText(text));
  },
};

/** `POST /apply-template`, as in llama.cpp's server: the prompt that the chat template makes of a conversation. */
export const applyTemplateEndpoint: ModelEndpoint<BodyOfModel> = {
  read: readBodyOfModel,
  async answer({ body, name: named }, model, reply) {
    const name = named ?? model.info.id;
    const { engine } = model.from;
    const options = { profile: reply.profile, forwards: false };
    const request = await inTurns(readPromptRequest(body, name, reply.requestId, options));
    if (!canAnswer(engine, "apply-template"))
      throw new FailureError({
        kind: "internal",
        message: `The template of '${name}' is not known: only local models report it.`,
        status: 501,
      });
    const owner = reply.caller.client && { owner: reply.caller.client.owner };
    const question = { kind: "apply-template", request: { ...request, model: model.engineModel, ...owner } } as const;
    const prompt = await untilGone(reply, engine.ask(question, reply.exchange.departure.signal));
    reply.send(200, "application/json", JSON.stringify({ prompt }));
  },
};

/** The endpoint that counts the tokens of a prompt, as an API has it. `api`: the name of the port. */
export function tokenCountEndpoint(api: string, counter: TokenCounter): ModelEndpoint<NamedRequest & CountedRequest> {
  return {
    api,
    async read(body, options, { requestId }) {
      const read = await inTurns(counter.readRequest(body, requestId, options));
      return { ...read, name: read.request.model };
    },
    conversation: ({ request }) => request,
    async answer({ request, editPrompt }, model, reply, service) {
      const count = (edited: GenerationRequest): Promise<number> => countPromptTokens(model, edited, reply, service);
      const original = await count(request);
      const edited = (await editPrompt?.(count)) ?? request;
      const tokens = edited === request ? original : await count(edited);
      reply.send(200, "application/json", counter.write(tokens, ...(editPrompt ? [original] : [])));
    },
  };
}

/**
 * Counts the tokens of a request's prompt. If the engine, or its server, cannot count them, the number is an estimate, and the answer has
 * the header `x-truewire-estimate: tokens`. Rejects with `FailureError`.
 */
export async function countPromptTokens(
  model: ServedModel,
  request: GenerationRequest,
  reply: Reply,
  service: Service,
): Promise<number> {
  const tokens = await askUpstream("count-tokens", model, request, reply, service);
  if (tokens !== undefined) return tokens;
  reply.addHeaders({ "x-truewire-estimate": "tokens" });
  return estimateTokens(request);
}

/** The answer of an engine about a conversation; undefined: it, or its server, has no such question. Rejects with `FailureError`. */
export async function askUpstream<K extends "count-tokens" | "compact">(
  kind: K,
  model: ServedModel,
  request: GenerationRequest,
  reply: Reply,
  service: Service,
): Promise<EngineAnswer<K> | undefined> {
  const { departure } = reply.exchange;
  const {
    engineModel,
    from: { engine },
  } = model;
  if (!canAnswer(engine, kind)) return undefined;
  const { request: seen } = await seenByHook(request, model, reply, service);
  try {
    const own = { model: engineModel, ...(reply.caller.ownKey && { clientKey: reply.caller.ownKey }) };
    const question = { kind, request: { ...seen, ...own } } as EngineQuestion<K>;
    return await engine.ask(question, departure.signal);
  } catch (error) {
    if (departure.happened) throw new ClientGone({ cause: error });
    if (error instanceof FailureError && missingPath.has(error.failure.status)) return undefined;
    throw error;
  }
}

/** The statuses with which servers answer at a path that they do not have: many servers of the Messages API have no `count_tokens`. */
const missingPath: ReadonlySet<number> = new Set([404, 405, 501]);

/**
 * `GET /slots`, as in llama.cpp's server: the slots of all local models, or of one with `?model=NAME`. 503 with `?fail_on_no_slot=1` if
 * none is free; 501 if no served model has slots.
 */
export async function answerSlots(reply: Reply, service: Service): Promise<void> {
  const { exchange } = reply;
  const engines = [...new Set(requestedModels(reply, service).map(({ from }) => from))];
  const slots = await Promise.all(
    engines.map(async ({ engine, name }) => {
      if (!canAnswer(engine, "slots")) return [];
      const model = engine.models()[0]?.id ?? name;
      const answer = engine.ask({ kind: "slots", request: null }, exchange.departure.signal);
      return (await untilGone(reply, answer)).map((slot) => ({ ...slot, model }));
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

/** `GET /lora-adapters`, as in llama.cpp's server: the adapters of all models, or of one with `?model=NAME`. */
export function answerAdapters(reply: Reply, service: Service): void {
  const all = requestedModels(reply, service).flatMap(({ info }) =>
    (info.adapters ?? []).map((adapter) => ({ ...adapter, model: info.id })),
  );
  reply.send(200, "application/json", writeAdapters(all));
}

/** The model in the query, or all models. Throws `FailureError` 404. */
function requestedModels({ caller: { client }, exchange, profile }: Reply, service: Service): readonly ServedModel[] {
  const directory = modelsOf(client, service.directory);
  const name = exchange.query("model");
  return name === undefined ? directory.list() : [modelNamed(name, directory, profile)];
}

/** The answer of an engine. Rejects with `ClientGone` if the client has left. */
async function untilGone<T>({ exchange }: Reply, answer: Promise<T>): Promise<T> {
  return answer.catch((error: unknown) => {
    throw exchange.departure.happened ? new ClientGone({ cause: error }) : error;
  });
}

function hasNoTokenizer(model: string): FailureError {
  const message = `The tokens of '${model}' are not known: only local models, and servers that have /tokenize, report them.`;
  return new FailureError({ kind: "internal", message, status: 501 });
}

/** The value of `action` that llama.cpp's server knows. */
const endReasoning = "reasoning_end";

/**
 * `POST /chat/completions/control`, as in llama.cpp's server (tools/server/README.md of release v0.5.0): ends the reasoning of a running
 * answer, `{ "id": …, "action": "reasoning_end" }`. The id is that of the answer, or of its request (`x-request-id`), in any API. There,
 * the request must have `reasoning_control`; here, every answer can be controlled.
 */
export async function controlAnswer(reply: Reply, service: Service): Promise<void> {
  await takeLimits(reply, service);
  const { id, action } = objectBody(await readJsonBody(reply, service));
  if (typeof id !== "string" || id === "")
    throw invalidRequest("Missing 'id': the id of the running answer, or of its request (x-request-id).", "id");
  if (action !== endReasoning)
    throw invalidRequest(`Invalid value for 'action': expected "${endReasoning}".`, "action", "invalid_value");
  const result = await service.answers.endReasoning(reply.caller.client?.owner ?? "", id);
  if (result !== "ended") throw notEnded(result);
  reply.send(200, "application/json", JSON.stringify({ success: true }));
}

function notEnded(result: Exclude<ReasoningEnd, "ended">): FailureError {
  const [kind, status, message] = {
    "not-running": ["not-found", 404, "No answer with this id is being generated for this key."],
    "not-reasoning": ["invalid-request", 409, "The answer is not reasoning now, so there is no reasoning to end."],
    unsupported: [
      "internal",
      501,
      "Only the reasoning of local models can be ended, and this answer is of another source.",
    ],
  }[result] as ["not-found" | "invalid-request" | "internal", number, string];
  return new FailureError({ kind, status, message, param: result === "not-running" ? "id" : null, code: null });
}
