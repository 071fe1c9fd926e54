import { canAnswer } from "../core/engine.ts";
import { estimateTokens } from "../core/estimate-tokens.ts";
import { FailureError } from "../core/failure.ts";
import { modelNotFound } from "../apis/failures.ts";
import type { TokenCounter } from "../apis/port.ts";
import type { GenerationRequest } from "../core/request.ts";
import { ClientGone } from "./exchange.ts";
import { modelsOf } from "./keys/models-of-client.ts";
import { takeTurn } from "./keys/take-turn.ts";
import type { ServedModel } from "./model-directory.ts";
import { readJson } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { takeSteps } from "./turns.ts";
import { unknownModel } from "./unknown-model.ts";

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
    const question = { kind: "count-tokens", request: { ...request, model: engineModel } } as const;
    if (canAnswer(engine, question.kind)) return await engine.ask(question, departure.signal);
  } catch (error) {
    if (departure.happened) throw new ClientGone({ cause: error });
    if (!(error instanceof FailureError && withoutPath.has(error.failure.status))) throw error;
  }
  reply.addHeaders({ "x-truewire-estimate": "tokens" });
  return estimateTokens(request);
}

/** How servers answer at a path that they do not have: many that speak the Messages API have no `count_tokens`. */
const withoutPath: ReadonlySet<number> = new Set([404, 405, 501]);
