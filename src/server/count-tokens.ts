import { FailureError } from "../generation/failure.ts";
import { modelNotFound } from "../wire/failures.ts";
import type { TokenCounter } from "../wire/port.ts";
import type { GenerationRequest } from "../generation/request.ts";
import { ClientGone } from "./exchange.ts";
import { modelsOf } from "./keys/models-of-client.ts";
import { takeTurn } from "./keys/take-turn.ts";
import type { ServedModel } from "./model-directory.ts";
import { readJson } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { takeSteps } from "./turns.ts";
import { unknownModel } from "./unknown-model.ts";

/** Answers how many tokens a request's prompt has, where its engine can tell. `api`: the port's name. */
export async function countTokens(api: string, counter: TokenCounter, reply: Reply, service: Service): Promise<void> {
  const { exchange, record, requestId, client } = reply;
  const directory = modelsOf(client, service.directory);
  const received = await readJson(exchange, service.settings.bodyLimit);
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

/** How many tokens a request's prompt has. Rejects with `FailureError` where the model's engine cannot tell. */
export async function tokensOf(
  { engineModel, from: { engine } }: ServedModel,
  request: GenerationRequest,
  { exchange }: Reply,
): Promise<number> {
  if (!engine.countTokens) throw cannotCount(request.model);
  return engine.countTokens({ ...request, model: engineModel }, exchange.departure.signal).catch((error: unknown) => {
    throw exchange.departure.happened ? new ClientGone({ cause: error }) : error;
  });
}

function cannotCount(model: string): FailureError {
  return new FailureError({
    message: `The tokens of a prompt for '${model}' cannot be counted: its server has no way to tell them.`,
    status: 501,
    kind: "internal",
  });
}
