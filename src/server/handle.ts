import { FailureError } from "../core/failure.ts";
import { methodNotAllowed, noWebSocket, unknownPath, unknownUrl } from "../apis/failures.ts";
import { requestId } from "../apis/ids.ts";
import type { HeaderReader, Voice } from "../apis/voice.ts";
import { askedProfile, plainPath } from "./exchange.ts";
import type { Exchange } from "./exchange.ts";
import { preflightHeaders } from "./origins.ts";
import { Reply } from "./reply.ts";
import { RequestRecord } from "./request-record.ts";
import type { ObservedApi } from "./request-record.ts";
import { knownPaths, pathAsNamed, routeOf, voiceOfUnknown } from "./routes.ts";
import type { Route } from "./reply.ts";
import type { Service, Settings } from "./service.ts";

/** Answers one exchange, whatever happens; never rejects. */
export async function handle(exchange: Exchange, service: Service): Promise<void> {
  const record = new RequestRecord();
  const { settings, log, requests, inspector } = service;
  const id = requestId(Math.random);
  const inspected = inspector?.watch(exchange, id, record, settings.mask);
  record.inspection = inspected?.watched;
  const reply = new Reply(inspected?.exchange ?? exchange, id, record, settings);
  requests.begin();
  log.debug({ req: id, method: exchange.method, path: exchange.path }, "received");
  try {
    await answer(reply, service);
  } catch (error) {
    reply.fail(error);
  } finally {
    reply.bodyLease?.release();
    reply.turn?.answered();
    tell(reply, service);
  }
}

/**
 * Whether a client may open a connection for further requests at the exchange's path: the same checks as for one request. Where it may
 * not, the exchange is answered.
 */
export async function admit(exchange: Exchange, service: Service): Promise<boolean> {
  const reply = new Reply(exchange, requestId(Math.random), new RequestRecord(), service.settings);
  try {
    const { route } = placeOf(reply, service.settings);
    await checkClient(reply, route, service);
    return true;
  } catch (error) {
    service.requests.begin();
    reply.fail(error);
    tell(reply, service);
    return false;
  }
}

async function answer(reply: Reply, service: Service): Promise<void> {
  const { exchange } = reply;
  const { method, path } = exchange;
  const { route, parameter } = placeOf(reply, service.settings);
  if (route.api && method === "POST") observe(reply, route.api, service);
  if (method === "OPTIONS") return reply.send(204, null, "", preflightHeaders(exchange, methodsOf(route)));
  const answering = route.methods[(method === "HEAD" ? "GET" : method) as keyof typeof route.methods];
  if (!answering && exchange.header("upgrade")?.toLowerCase() === "websocket") throw noWebSocket();
  if (!answering) throw methodNotAllowed(method, path, [...methodsOf(route), "OPTIONS"]);
  await checkClient(reply, route, service);
  await answering(reply, service, parameter);
}

/** From here on the request is one of an API that generates: it is traced, and counted at its end. */
function observe({ exchange, record, requestId }: Reply, api: ObservedApi, { tracing, settings }: Service): void {
  record.api = api;
  record.trace = tracing?.begin({
    requestId,
    method: exchange.method,
    route: pathAsNamed(exchange.path),
    header: (name) => exchange.header(name),
    masked: (text) => settings.mask.text(text),
  });
}

function methodsOf({ methods }: Route): string[] {
  return Object.keys(methods).flatMap((name) => (name === "GET" ? ["GET", "HEAD"] : [name]));
}

/** The route of a request, and what its headers say of the answer. Throws `FailureError` for a page that may not call. */
function placeOf(reply: Reply, settings: Settings): { readonly route: Route; readonly parameter: string } {
  const { exchange } = reply;
  const { method, path } = exchange;
  const found = routeOf(path);
  const voice = found?.route.voice ?? ((header: HeaderReader): Voice => voiceOfUnknown(path, header));
  reply.voice = typeof voice === "function" ? voice((name) => exchange.header(name)) : voice;
  reply.headers = settings.origins.headersFor(exchange);
  reply.askedProfile = askedProfile(exchange);
  if (!found) throw reply.profile.judgesAsVendor ? unknownUrl(method, path) : unknownPath(method, path, knownPaths());
  return found;
}

/** Throws `FailureError` for a wrong key, and while there is nobody to answer. */
async function checkClient(reply: Reply, route: Route, service: Service): Promise<void> {
  const { exchange, voice } = reply;
  const { keys, admin } = service.settings;
  if (route.admin === true)
    await admin.check(
      voice.keyIn((name) => exchange.header(name)),
      exchange,
    );
  else if (keys.required) {
    const key = voice.keyIn((name) => exchange.header(name));
    const client = await (route.open === true ? keys.find(key) : keys.check(key, reply.profile));
    reply.client = client;
    reply.record.keyName = client?.name;
    reply.isStranger = client === undefined || client.models !== undefined;
  }
  if (route.open !== true && service.state !== "ready") throw notReady(service.state);
}

/** The one line that each request has in the log, and what numbers and traces keep of it. */
function tell({ exchange, record, requestId: req }: Reply, { log, requests, metrics }: Service): void {
  const outcome = record.outcome(exchange.departure.happened);
  requests.finish(outcome);
  metrics?.observe(record, outcome);
  const client = exchange.header("x-client-request-id");
  const fields = { req, method: exchange.method, path: exchange.path, ...record.fields() };
  if (client !== undefined) Object.assign(fields, { clientRequestId: client });
  record.endTrace(outcome);
  // An answer that goes on without its client has its end later.
  if (!record.detached) record.inspection?.ended(outcome, record);
  // Probes, and whoever looks at requests, come every few seconds and are of interest to nobody while all is well.
  if (/^\/(?:health|metrics|admin\/requests)/.test(plainPath(exchange.path))) log.debug(fields, outcome);
  else if (outcome === "failed") log.error(fields, outcome);
  else log.info(fields, outcome === "cancelled" ? "cancelled by client" : outcome);
}

function notReady(state: "loading" | "closing"): FailureError {
  return new FailureError({
    message: state === "loading" ? "The models are still being loaded." : "The server is stopping.",
    status: 503,
    kind: "unavailable",
    param: null,
    code: state === "loading" ? "model_loading" : "shutting_down",
    retryAfterSeconds: 1,
  });
}
