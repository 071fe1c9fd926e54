import { FailureError } from "../generation/failure.ts";
import { modelNotFound } from "../wire/failures.ts";
import type { TokenCounter } from "../wire/port.ts";
import { ClientGone } from "./exchange.ts";
import { readJson } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";

/** Answers how many tokens a request's prompt has, where its engine can tell. `api`: the port's name. */
export async function countTokens(
  api: string,
  counter: TokenCounter,
  reply: Reply,
  { settings, directory }: Service,
): Promise<void> {
  const { exchange, record, requestId } = reply;
  const body = await readJson(exchange, settings.bodyLimit);
  const model = directory.namedIn(body);
  const profile = reply.useProfile(model?.from.profile);
  const forwards = model?.from.forwards?.includes(api) ?? false;
  const header = (name: string): string | undefined => exchange.header(name);
  const request = counter.readRequest(body, requestId, { profile, forwards, header });
  record.model = request.model;
  if (!model) {
    const known = profile.listsModels ? directory.list().map(({ info }) => info.id) : [];
    throw modelNotFound(request.model, known);
  }
  const { engine } = model.from;
  if (!engine.countTokens) throw cannotCount(request.model);
  const tokens = await engine
    .countTokens({ ...request, model: model.engineModel }, exchange.departure.signal)
    .catch((error: unknown) => {
      throw exchange.departure.happened ? new ClientGone({ cause: error }) : error;
    });
  reply.send(200, "application/json", counter.write(tokens));
}

function cannotCount(model: string): FailureError {
  return new FailureError({
    message: `The tokens of a prompt for '${model}' cannot be counted: its server has no way to tell them.`,
    status: 501,
    kind: "internal",
  });
}
