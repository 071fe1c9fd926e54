import type { Engine } from "../core/engine.ts";
import type { GenerationRequest } from "../core/request.ts";
import { shownWarnings } from "../core/shown-warnings.ts";
import type { Limits } from "../kv/limits.ts";
import { modelNotFound } from "../apis/failures.ts";
import type { AnswerContext, ReadOptions } from "../apis/port.ts";
import type { DetachedAnswer, KeptRequest, PortState, ServedPort } from "../apis/port-state.ts";
import type { HeaderReader } from "../apis/voice.ts";
import type { BodyLease } from "./body-budget.ts";
import type { Client } from "./keys/key-ring.ts";
import { estimateTokens } from "../core/estimate-tokens.ts";
import { modelsOf } from "./model-directory.ts";
import { takeTurn } from "./keys/take-turn.ts";
import { tokensToReserve } from "./keys/turn.ts";
import type { Log } from "./log.ts";
import { maskedEngine } from "./masked-engine.ts";
import type { ServedModel } from "./model-directory.ts";
import { explainMisses } from "./explain-misses.ts";
import { recordedEngine, engineOfRun } from "./recorded-engine.ts";
import { readJson } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { storeOwnerOf, shelvesOf, storeFailure } from "./assembled-texts.ts";
import { streamAnswer, tellEvents, wholeAnswer } from "./write-answer.ts";
import { truncatingEngine } from "./truncating-engine.ts";
import { takeSteps } from "./turns.ts";
import { unknownModel } from "./unknown-model.ts";
import { warningHeader } from "./reply.ts";

/** Answers a request of an API that generates: read, find the model, generate, write. */
export async function generate(port: ServedPort, reply: Reply, service: Service): Promise<void> {
  const { settings, log } = service;
  const { exchange, record, requestId, client } = reply;
  const directory = modelsOf(client, service.directory);
  const received = await readJson(reply, service);
  record.received(received);
  const body = exchange.readMessage ? exchange.readMessage(received.value) : received.value;
  // The model's profile decides what is refused; a request without a model name is checked with the server's.
  const model = directory.namedIn(body);
  const profile = reply.useProfile(model?.from.profile);
  const forwards = model?.from.forwards?.includes(port.name) ?? false;
  const header = (name: string): string | undefined => exchange.header(name);
  const options = { profile, forwards, header };
  const kept = port.state && (await readKept(port, port.state, body, reply, service, options));
  const read = kept ?? (await takeSteps(port.readRequest(body, requestId, options)));
  const { request, warnings } = read;
  record.model = request.model;
  record.asks(request.prompt);
  record.stream = request.stream;
  if (warnings.length > 0) {
    log.warn({ req: requestId, warnings: shownWarnings(warnings) }, "the request was accepted with reservations");
    reply.headers = { ...reply.headers, ...warningHeader(warnings) };
  }

  if (!model) {
    const known = profile.listsModels ? directory.list() : [];
    const ids = known.map(({ info }) => info.id);
    throw unknownModel(request.model, directory, modelNotFound(request.model, ids));
  }
  const { settings: answerSettings } = model.from;
  record.servedModel = model.info.id;
  const reserved = (limits: Limits): number => (read.preparesOnly === true ? 0 : tokensToReserve(request, limits));
  // A server of the same API gets the client's own request, and truncates it itself.
  const truncating = forwards
    ? model.from.engine
    : truncatingEngine(model.from.engine, (before, after) =>
        log.warn({ req: requestId, before, after }, "the prompt was too long: its oldest messages were left out"),
      );
  const masked = read.preparesOnly === true ? silence : maskedEngine(truncating, settings.mask);
  const source = kept?.detach ? engineOfRun(masked, reply, service) : recordedEngine(masked, record);
  const turn = client?.limits && (await takeTurn(reply, service, estimateTokens(request), reserved(client.limits)));
  const engine = turn ? turn.engine(source) : source;
  const context: AnswerContext = {
    profile,
    created: now(),
    now,
    model: (profile.resolvesModels && model.info.resolvedId) || request.model,
    settings: answerSettings,
    random: Math.random,
  };
  explainMisses(reply);
  const forEngine = requestFor(model, request, client);

  const keep = kept && (() => keepAnswer(kept, reply, log));
  if (kept?.detach) {
    await detach(port, kept.detach(context, service.processes?.own), { engine, request: forEngine }, reply, service);
    return;
  }
  if (!request.stream) {
    await wholeAnswer(reply, engine, forEngine, (generation) => read.writeResponse(generation, context), keep);
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
    othersWait() {
      const { queued = 0, wanted = false } = model.from.engine.health();
      return queued > 0 || wanted;
    },
    ...(service.streamLog && { streamLog: service.streamLog }),
    ...(keep && { keep }),
  });
}

/** The request as the model's engine knows it, and whose it is where clients have keys. */
function requestFor({ engineModel }: ServedModel, request: GenerationRequest, client?: Client): GenerationRequest {
  if (client) return { ...request, model: engineModel, owner: client.owner };
  return request.model === engineModel ? request : { ...request, model: engineModel };
}

/** Says nothing. */
const silence: Pick<Engine, "generate"> = {
  async *generate() {
    yield [
      { type: "start", choice: 0 },
      { type: "usage", usage: { promptTokens: 0, completionTokens: 0 } },
      { type: "finish", choice: 0, reason: "stop" },
      { type: "end", end: { kind: "done" } },
    ];
  },
};

/** Reads a request that may refer to what is stored for its client. */
async function readKept(
  { voice }: ServedPort,
  state: PortState,
  body: unknown,
  { exchange, requestId, client }: Reply,
  service: Service,
  options: ReadOptions & { readonly header: HeaderReader },
): Promise<KeptRequest> {
  const owner = await storeOwnerOf(client, voice.keyIn(options.header));
  const shelves = shelvesOf(service, owner, exchange.connectionStore);
  return state.readRequest(body, requestId, options, shelves, takeSteps).catch((error: unknown) => {
    throw storeFailure(error);
  });
}

/** An answer is more than its being kept: where the store fails, the client has it all the same. */
async function keepAnswer(kept: KeptRequest, { requestId }: Reply, log: Log): Promise<void> {
  try {
    await kept.keep();
  } catch (error) {
    log.error({ req: requestId, cause: String(error) }, "the answer could not be kept");
  }
}

/** Generates on without the client, who is answered at once. */
async function detach(
  port: ServedPort,
  answer: DetachedAnswer,
  { engine, request }: { readonly engine: Pick<Engine, "generate">; readonly request: GenerationRequest },
  reply: Reply,
  { runs, log, settings }: Service,
): Promise<void> {
  const { exchange } = reply;
  const owner = await storeOwnerOf(
    reply.client,
    port.voice.keyIn((name) => exchange.header(name)),
  );
  const { bodyLease } = reply;
  reply.bodyLease = undefined;
  const held = withLease(engine, bodyLease);
  const run = await runs
    .start({ engine: held, request: { ...request, stream: true }, answer, owner }, log)
    .catch((error) => {
      bodyLease?.release();
      throw storeFailure(error);
    });
  if (!request.stream) reply.send(200, "application/json", answer.body);
  else await tellEvents(reply, run.pieces(), port.streamHeaders(reply.profile), settings.keepAliveMs);
}

/** The engine of a background run: the request's body stays in memory until it is answered. */
function withLease(engine: Pick<Engine, "generate">, lease: BodyLease | undefined): Pick<Engine, "generate"> {
  if (!lease) return engine;
  return {
    generate: (request, observer) => ({
      [Symbol.asyncIterator]() {
        const source = engine.generate(request, observer)[Symbol.asyncIterator]();
        return {
          async next() {
            const step = await source.next();
            if (step.done === true) lease.release();
            return step;
          },
          async return() {
            lease.release();
            await source.return?.();
            return { done: true, value: undefined };
          },
        };
      },
    }),
  };
}

/** Unix time in seconds. */
function now(): number {
  return Math.floor(Date.now() / 1000);
}
