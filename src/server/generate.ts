import { answerId } from "../wire/ids.ts";
import type { AnswerContext, Endpoint } from "../wire/endpoint.ts";
import { modelNotFound } from "../wire/failures.ts";
import { readJson } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { streamAnswer } from "./stream-answer.ts";
import { streamHeaders } from "./stream-headers.ts";
import { wholeAnswer } from "./whole-answer.ts";

/** Answers a request of one of the generating endpoints: read, find the model, generate, write. */
export async function generate(endpoint: Endpoint, reply: Reply, service: Service): Promise<void> {
  const { settings, directory, log } = service;
  const { exchange, record, requestId } = reply;
  const body = await readJson(exchange, settings.bodyLimit);
  // How a request is judged depends on who will answer it; a request without a model's name is judged all the same.
  const model = directory.namedIn(body);
  const profile = reply.useProfile(model?.from.profile);
  const forwards = model?.from.forwards ?? false;
  const { request, asked, warnings } = endpoint.readRequest(body, requestId, { profile, forwards });
  record.model = request.model;
  record.stream = asked.stream;
  if (warnings.length > 0) log.warn({ req: requestId, warnings }, "the request was accepted with reservations");

  if (!model) {
    // OpenAI does not say what there is.
    const known = profile.name === "lean" ? directory.list() : [];
    throw modelNotFound(
      request.model,
      known.map(({ info }) => info.id),
    );
  }
  const { engine, settings: answerSettings } = model.from;
  const created = Math.floor(Date.now() / 1000);
  const context: AnswerContext = {
    profile,
    asked,
    id: answerId(endpoint.name === "chat" ? "chatcmpl-" : "cmpl-", created, Math.random),
    created,
    model: (profile.name === "openai" && model.info.resolvedId) || request.model,
    settings: answerSettings,
    random: Math.random,
  };
  const forEngine = request.model === model.engineModel ? request : { ...request, model: model.engineModel };

  if (!asked.stream) {
    await wholeAnswer(reply, engine, forEngine, (generation) => endpoint.writeResponse(generation, context));
    return;
  }
  await streamAnswer(reply, {
    engine,
    request: forEngine,
    writer: endpoint.streamWriter(context),
    headers: streamHeaders(endpoint.name, profile),
    holdMs: settings.holdMs,
    keepAliveMs: settings.keepAliveMs,
    ...(service.streamLog && { streamLog: service.streamLog }),
  });
}
