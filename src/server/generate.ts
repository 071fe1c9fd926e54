import { modelNotFound } from "../wire/failures.ts";
import type { AnswerContext, Port } from "../wire/port.ts";
import { maskedEngine } from "./masked-engine.ts";
import { readJson } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { streamAnswer } from "./stream-answer.ts";
import { warningHeader } from "./warning-header.ts";
import { wholeAnswer } from "./whole-answer.ts";

/** Answers a request of an API that generates: read, find the model, generate, write. */
export async function generate(port: Port, reply: Reply, service: Service): Promise<void> {
  const { settings, directory, log } = service;
  const { exchange, record, requestId } = reply;
  const body = await readJson(exchange, settings.bodyLimit);
  // The model's profile decides what is refused; a request without a model name is checked with the server's.
  const model = directory.namedIn(body);
  const profile = reply.useProfile(model?.from.profile);
  const forwards = model?.from.forwards?.includes(port.name) ?? false;
  const read = port.readRequest(body, requestId, { profile, forwards, header: (name) => exchange.header(name) });
  const { request, warnings } = read;
  record.model = request.model;
  record.stream = request.stream;
  if (warnings.length > 0) {
    log.warn({ req: requestId, warnings }, "the request was accepted with reservations");
    reply.headers = { ...reply.headers, ...warningHeader(warnings) };
  }

  if (!model) {
    const known = profile.listsModels ? directory.list() : [];
    throw modelNotFound(
      request.model,
      known.map(({ info }) => info.id),
    );
  }
  const { settings: answerSettings } = model.from;
  const engine = maskedEngine(model.from.engine, settings.mask);
  const context: AnswerContext = {
    profile,
    created: now(),
    now,
    model: (profile.resolvesModels && model.info.resolvedId) || request.model,
    settings: answerSettings,
    random: Math.random,
  };
  const forEngine = request.model === model.engineModel ? request : { ...request, model: model.engineModel };

  if (!request.stream) {
    await wholeAnswer(reply, engine, forEngine, (generation) => read.writeResponse(generation, context));
    return;
  }
  await streamAnswer(reply, {
    engine,
    request: forEngine,
    writer: read.streamWriter(context),
    headers: port.streamHeaders(profile),
    holdMs: settings.holdMs,
    keepAliveMs: settings.keepAliveMs,
    readerPatienceMs: settings.readerPatienceMs,
    othersWait: () => (model.from.engine.health().queued ?? 0) > 0,
    ...(service.streamLog && { streamLog: service.streamLog }),
  });
}

/** Unix time in seconds. */
function now(): number {
  return Math.floor(Date.now() / 1000);
}
