import { FailureError, invalidRequest } from "../generation/failure.ts";
import { readEmbeddingsRequest } from "../wire/embeddings/read-request.ts";
import { writeEmbeddings } from "../wire/embeddings/write-embeddings.ts";
import { modelNotFound } from "../wire/failures.ts";
import { ClientGone } from "./exchange.ts";
import { readJson } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";

/** `POST /v1/embeddings`. */
export async function embed(reply: Reply, { settings, directory }: Service): Promise<void> {
  const { exchange, record, requestId } = reply;
  const body = await readJson(exchange, settings.bodyLimit);
  const model = directory.namedIn(body);
  const profile = reply.useProfile(model?.from.profile);
  const { request, encoding } = readEmbeddingsRequest(body, requestId);
  record.model = request.model;
  if (!model) {
    const all = profile.listsModels ? directory.list() : [];
    const known = all.filter(({ info }) => info.endpoints.includes("embeddings"));
    throw modelNotFound(
      request.model,
      known.map(({ info }) => info.id),
    );
  }
  const { engine } = model.from;
  if (!engine.embed) {
    const { failure } = invalidRequest(`The model '${request.model}' does not make embeddings.`, "model");
    throw new FailureError({ ...failure, status: 404 });
  }
  const answer = await engine
    .embed({ ...request, model: model.engineModel }, exchange.departure.signal)
    .catch((error: unknown) => {
      throw exchange.departure.happened ? new ClientGone({ cause: error }) : error;
    });
  const shown = (profile.resolvesModels && (model.info.resolvedId ?? answer.model)) || request.model;
  reply.send(200, "application/json", writeEmbeddings(answer, shown, encoding, profile));
}
