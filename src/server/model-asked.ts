import { invalidRequest } from "../core/failure.ts";
import { modelNotFound } from "../apis/failures.ts";
import { objectBody } from "../apis/tokens/read-request.ts";
import { ClientGone } from "./exchange.ts";
import { modelsOf, type ModelView } from "./model-directory.ts";
import { takeTurn } from "./keys/take-turn.ts";
import type { ServedModel } from "./model-directory.ts";
import { readJson } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { unknownModel } from "./unknown-model.ts";

/** The body, and the model that it means: where it names none, the only one that there is. `name`: as the client calls it. */
export async function modelAsked(
  reply: Reply,
  service: Service,
): Promise<{ body: Readonly<Record<string, unknown>>; model: ServedModel; name: string }> {
  const directory = modelsOf(reply.client, service.directory);
  const body = objectBody((await readJson(reply, service)).value);
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

/** The model of a name. Throws `FailureError` where there is none. */
export function found(directory: ModelView, name: string, { profile }: Reply): ServedModel {
  const model = directory.find(name);
  if (model) return model;
  const known = profile.listsModels ? directory.list().map(({ info }) => info.id) : [];
  throw unknownModel(name, directory, modelNotFound(name, known));
}

/** The engine's answer; rejects with `ClientGone` where nobody waits for it any more. */
export async function untilGone<T>({ exchange }: Reply, answer: Promise<T>): Promise<T> {
  return answer.catch((error: unknown) => {
    throw exchange.departure.happened ? new ClientGone({ cause: error }) : error;
  });
}
