import { withoutPlatform } from "../../wire/apis/messages/platforms.ts";
import { turnSeal } from "../../wire/apis/turn-seal.ts";
import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import { isObject } from "../../wire/core/json.ts";
import { methodNotAllowed, noWebSocket, unknownPath, unknownUrl } from "../../wire/apis/failures.ts";
import type { Client } from "./keys/key-ring.ts";
import { strangersOf, takeOwnKey } from "./keys/own-key.ts";
import { hostedToolsOf } from "./keys/hosted-tools-of.ts";
import { costToReserve, noPrice } from "./keys/prices.ts";
import { runsHosted } from "./hosted/hosted-calls.ts";
import type { ApiErrorFormat } from "../../wire/apis/api-error-format.ts";
import { pathMembers, plainPath, requestedProfile } from "./exchange.ts";
import type { HttpExchange } from "./exchange.ts";
import { takeLimits as takeFromLimits } from "./keys/take-limits.ts";
import { modelNotServed, modelsOf, nameIn } from "./model-directory.ts";
import type { ModelView, ServedModel } from "./model-directory.ts";
import { routeOfConversation } from "./model-routes.ts";
import type { NamedRoute } from "./model-routes.ts";
import { WatchedRequest } from "./inspect/watched-request.ts";
import { passedRoute } from "./pass-path.ts";
import { preflightHeaders } from "./origins.ts";
import { readFormBody } from "./read-form.ts";
import { resolveFiles } from "./files/resolve-files.ts";
import { readJsonBody } from "./read-json.ts";
import { EventStreamSink } from "./event-stream-sink.ts";
import { release } from "./caller.ts";
import { Reply } from "./reply.ts";
import type { EndpointHandler, ModelEndpoint, NamedRequest, ServerRoute } from "./reply.ts";
import { RequestRecord } from "./request-record.ts";
import { noteReasoning } from "./thinking-models.ts";
import { conventionsOfUnknown, knownPaths, pathAsNamed, routeOf } from "./routes.ts";
import type { Service } from "./service.ts";
import { random } from "../../wire/random/random.ts";

/** What the stages have found out about a request so far. Only they use it. */
interface Found {
  readonly reply: Reply;
  route?: ServerRoute;
  /** The decoded value of `{id}` or `{rest}` in the path; "" if the path has none. */
  parameter: string;
  endpoint?: EndpointHandler | ModelEndpoint | undefined;
  /** The body. */
  received?: unknown;
  /** Headers of the API that the client sends in its body. */
  headers?: Readonly<Record<string, string>>;
  read?: NamedRequest;
  model?: ServedModel;
}

type Stage = (found: Found, service: Service) => Promise<void> | void;

/**
 * The life of a request: its stages, in order. A stage ends the request by sending an answer, or by throwing the `FailureError` to answer
 * with. `account` follows in every case.
 */
const stages: readonly Stage[] = [
  checkOrigin,
  chooseProfile,
  findEndpoint,
  authenticate,
  requireReady,
  receiveBody,
  findModel,
  takeLimits,
  // Asks the engine and writes its answer: generate.ts, run-generation.ts, write-answer.ts.
  answer,
];

/** The stages before a client may open a WebSocket. Each message on it is then a request of its own. */
const admission: readonly Stage[] = [checkOrigin, chooseProfile, requireRoute, authenticate, requireReady];

/** Answers one exchange; never rejects. */
export async function handle(exchange: HttpExchange, service: Service): Promise<void> {
  const { settings, log, requests, watchers } = service;
  const found = routed(exchange, service);
  const { reply } = found;
  const { requestId: req, record } = reply;
  const listed = watchers.inspector?.watch(exchange, req, record, settings.mask);
  record.watchers.listed = listed;
  if (listed instanceof WatchedRequest) record.watchers.inspection = listed;
  requests.begin();
  log.debug({ req, method: exchange.method, path: exchange.path }, "received");
  try {
    for (const stage of stages) {
      const wait = stage(found, service);
      if (wait) await wait;
      if (reply.sent) break;
    }
  } catch (error) {
    reply.fail(error);
  } finally {
    account(reply, service);
  }
}

/** Whether a client may open a WebSocket at the path of the exchange. If not, the exchange is answered with the reason. */
export async function admit(exchange: HttpExchange, service: Service): Promise<boolean> {
  const found = routed(exchange, service);
  const { reply } = found;
  try {
    for (const stage of admission) await stage(found, service);
    return true;
  } catch (error) {
    service.requests.begin();
    reply.fail(error);
    account(reply, service);
    return false;
  }
}

/** A request with the route of its path, and the reply in the form of the path's API. */
function routed(exchange: HttpExchange, { directory, settings }: Service): Found {
  const own = routeOf(exchange.path);
  const passed = !own || own.route.upstreamFirst ? passedRoute(exchange.path, directory) : undefined;
  const known = passed ?? own;
  const conventions = conventionsOf(exchange, known?.route);
  const id = conventions.newRequestId(Date.now(), random);
  return { parameter: "", ...known, reply: new Reply(exchange, id, conventions, new RequestRecord(), settings) };
}

function conventionsOf(exchange: HttpExchange, route: ServerRoute | undefined): ApiErrorFormat {
  const header = (name: string): string | undefined => exchange.header(name);
  const query = (name: string): string | undefined => exchange.query(name);
  const conventions = route?.conventions ?? conventionsOfUnknown(exchange.path, header, query);
  return typeof conventions === "function" ? conventions(header, query) : conventions;
}

/** Throws `FailureError` 403 for a page that may not use the server. */
function checkOrigin({ reply }: Found, { settings }: Service): void {
  reply.replaceHeaders(settings.origins.headersFor(reply.exchange));
}

function chooseProfile({ reply }: Found): void {
  reply.requestProfile(requestedProfile(reply.exchange));
}

/** Throws `FailureError` 404. */
function requireRoute(found: Found, service: Service): void {
  routeIn(found, service);
}

function routeIn({ route, reply }: Found, { directory }: Service): ServerRoute {
  if (route) return route;
  const { exchange, profile } = reply;
  const { method, path } = exchange;
  const isOfUpstream = directory.engines.some(({ kind }) => kind === "upstream");
  throw profile.judgesAsVendor ? unknownUrl(method, path) : unknownPath(method, path, knownPaths(), isOfUpstream);
}

/** Finds the endpoint of the method. Answers OPTIONS; throws `FailureError` 404, 405 or 426. */
function findEndpoint(found: Found, service: Service): void {
  const { reply } = found;
  const { exchange, record } = reply;
  const { method, path } = exchange;
  const route = routeIn(found, service);
  if (route.api && method === "POST") {
    record.asked.api = route.api;
    record.watchers.trace = service.watchers.tracing?.begin({
      requestId: reply.requestId,
      method,
      route: pathAsNamed(path),
      header: (name) => exchange.header(name),
      masked: (text) => service.settings.mask.text(text),
    });
  }
  if (method === "OPTIONS") return reply.send(204, null, "", preflightHeaders(exchange, methodsOf(route)));
  found.endpoint = route.methods[(method === "HEAD" ? "GET" : method) as keyof typeof route.methods];
  if (found.endpoint) return;
  if (exchange.header("upgrade")?.toLowerCase() === "websocket") throw noWebSocket();
  throw methodNotAllowed(method, path, [...methodsOf(route), "OPTIONS"]);
}

function methodsOf({ methods }: ServerRoute): string[] {
  return Object.keys(methods).flatMap((name) => (name === "GET" ? ["GET", "HEAD"] : [name]));
}

/** Finds the client of the key. Throws `FailureError` 401 or 403, and 404 for a path that has nothing on this server. */
function authenticate(found: Found, service: Service): Promise<void> | void {
  const { reply } = found;
  const { keys, admin } = service.settings;
  const { open, admin: isAdmin, requireEnabled } = routeIn(found, service);
  requireEnabled?.(service);
  if (isAdmin === true) return admin.check(reply.key, reply.exchange);
  const { ofBatch } = reply.exchange;
  if (ofBatch) return ofBatch.client && useClient(reply, ofBatch.client);
  if (keys.required) return findClient(reply, keys, open === true);
  if (service.settings.passesKeys && reply.key !== "")
    return strangersOf(reply.key).then((client) => useClient(reply, client));
}

async function findClient(reply: Reply, keys: Service["settings"]["keys"], isOpen: boolean): Promise<void> {
  useClient(reply, await (isOpen ? keys.find(reply.key) : keys.check(reply.key, reply.profile)));
}

function useClient(reply: Reply, client: Client | undefined): void {
  reply.identify({ client, isStranger: client === undefined || client.models !== undefined });
  reply.record.asked.keyName = client?.name;
}

/** Throws `FailureError` 503 while the models are loaded, and when the server stops. */
function requireReady(found: Found, service: Service): void {
  const { state } = service;
  if (state === "ready" || routeIn(found, service).open === true) return;
  throw new FailureError({
    message: state === "loading" ? "The models are still being loaded." : "The server is stopping.",
    status: 503,
    kind: "unavailable",
    param: null,
    code: state === "loading" ? "model_loading" : "shutting_down",
    retryAfterSeconds: 1,
  });
}

/** Reads the body of a request to a model: JSON, or a form. */
async function receiveBody(found: Found, service: Service): Promise<void> {
  const { endpoint, reply } = found;
  if (typeof endpoint !== "object") return;
  const body = await (endpoint.bodyType === "form" ? readFormBody : readJsonBody)(reply, service);
  const { members, isOfPlatform, isEventStream } = pathMembers(reply.exchange.path);
  // Where the path names the model, the body need not.
  found.received = members === undefined || !isObject(body) ? body : { ...body, ...members };
  if (!isOfPlatform || !isObject(found.received)) return;
  const { body: received, headers } = withoutPlatform(found.received);
  Object.assign(found, { received, headers });
  if (isEventStream) reply.writeTo(new EventStreamSink(reply.exchange));
}

/** Validates the request and finds its model, whose profile decides what is refused. Throws `FailureError` 400, 404 or 503. */
function findModel(found: Found, service: Service): Promise<void> | void {
  const { endpoint, reply, received: value } = found;
  const { exchange } = reply;
  if (typeof endpoint !== "object") return;
  const body = resolveFiles(exchange.readMessage ? exchange.readMessage(value) : value, reply, service);
  if (body instanceof Promise) return body.then((whole) => readRequest(whole, endpoint, found, service));
  return readRequest(body, endpoint, found, service);
}

function readRequest(body: unknown, endpoint: ModelEndpoint, found: Found, service: Service): Promise<void> | void {
  const { reply } = found;
  const { exchange, record } = reply;
  const { client } = reply.caller;
  const directory = modelsOf(client, service.directory);
  const name = nameIn(body);
  const asking = {
    model: name,
    key: record.asked.keyName,
    header: (one: string) => exchange.header(one),
    endpoint: endpoint.lists,
  };
  const rules = service.settings.routes.candidates(asking, directory);
  const routed = (rule: NamedRoute): Promise<void> | void => {
    record.asked.route = { rule: rule.name, model: rule.to };
    reply.addHeaders({ "x-truewire-route": rule.name, "x-truewire-model": rule.to });
    const model = directory.find(rule.to);
    if (!model) throw modelNotServed(rule.to, directory, reply.profile, endpoint.lists);
    const read = readFor(body, model, endpoint, found, service);
    if (read instanceof Promise) return read.then((late) => useModel(model, late, endpoint, directory, found));
    useModel(model, read, endpoint, directory, found);
  };
  const [first] = rules;
  if (first && (first.share === undefined || !endpoint.conversation)) {
    const whole = rules.find(({ share }) => share === undefined);
    if (whole) return routed(whole);
  }
  const named = directory.namedIn(body);
  // OpenAI's gateway looks for the model before the API reads the request.
  const profile = reply.useProfile(named?.from.profile);
  if (!named && !first && endpoint.findsModelFirst && profile.judgesAsVendor && name !== undefined && name !== "")
    throw modelNotServed(name, directory, profile, endpoint.lists);
  const use = (read: NamedRequest): Promise<void> | void => {
    // Which share a conversation belongs to is known when the request is read. Its model may read it in another way.
    const conversation = first && endpoint.conversation?.(read);
    const rule = conversation && routeOfConversation(rules, { ...conversation, owner: client?.owner ?? "" });
    return rule ? routed(rule) : useModel(named, read, endpoint, directory, found);
  };
  const read = readFor(body, named, endpoint, found, service);
  return read instanceof Promise ? read.then(use) : use(read);
}

/** Reads the request as its model's server takes it. `model`: undefined if no model has its name. */
function readFor(
  body: unknown,
  model: ServedModel | undefined,
  endpoint: ModelEndpoint,
  { reply, headers }: Found,
  service: Service,
): NamedRequest | Promise<NamedRequest> {
  const { exchange } = reply;
  const executors = hostedToolsOf(reply.caller.client, service.hostedTools);
  const options = {
    profile: reply.useProfile(model?.from.profile),
    forwards: endpoint.api !== undefined && model?.from.forwards?.includes(endpoint.api) === true,
    header: (name: string): string | undefined => headers?.[name] ?? exchange.header(name),
    query: (name: string): string | undefined => exchange.query(name),
    turnSeal: turnSeal(service.stores.turnKey, reply.caller.client?.owner ?? ""),
    standsFor: model?.from.settings.standsFor,
    runs: runsHosted(executors),
    hostedNames: executors?.names ?? [],
    runsHostedTools: model?.from.runsHostedTools,
  };
  return endpoint.read(body, options, reply, service);
}

/** `named`: the model that the request names, or that a rule has chosen. */
function useModel(
  named: ServedModel | undefined,
  read: NamedRequest,
  endpoint: ModelEndpoint,
  directory: ModelView,
  found: Found,
): void {
  const { reply } = found;
  const { asked } = reply.record;
  const model = named ?? (read.name === undefined ? onlyModel(directory) : undefined);
  asked.model = read.name ?? model?.info.id;
  if (!model) throw modelNotServed(asked.model ?? "", directory, reply.profile, endpoint.lists);
  reply.useProfile(model.from.profile);
  takeOwnKey(reply, model.from);
  endpoint.check?.(model, read, () => directory.list().map(({ info }) => info), reply.profile);
  asked.served = model;
  found.read = read;
  found.model = model;
}

/** The model of a request that names none. Throws `FailureError` 400 if there are several. */
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

/** Takes the request from the client's limits. Throws `FailureError` 403 or 429. */
function takeLimits({ endpoint, read, model, reply }: Found, service: Service): Promise<void> | void {
  const { client } = reply.caller;
  const { asked } = reply.record;
  const price = model && service.settings.prices.of(model);
  if (typeof endpoint !== "object" || !read || !(client || price)) return;
  const { limits = {} } = client ?? {};
  const taken = endpoint.cost?.(read, limits) ?? { prompt: 0 };
  const { prompt, reserved = 0, images = 0 } = taken;
  Object.assign(asked, { price, images, estimate: prompt });
  if (limits.budget && prompt > 0 && !price)
    throw noPrice(asked.model ?? "", `the key '${client?.name ?? ""}' has a budget`);
  return takeFromLimits(
    reply,
    service,
    taken,
    limits.budget && price ? costToReserve(price, prompt, reserved, images) : 0,
  );
}

function answer({ endpoint, read, model, parameter, reply }: Found, service: Service): Promise<void> | void {
  if (typeof endpoint === "function") return endpoint(reply, service, parameter);
  if (read && model) return endpoint?.answer(read, model, reply, service);
}

/** Releases what the request held, counts it, and writes its line in the log. A response in the background has its own account. */
function account(reply: Reply, { log, requests, watchers }: Service): void {
  const { exchange, record, requestId: req, sink } = reply;
  const { asked, answer: measured } = record;
  const isDetached = record.sent.detached === true;
  release(reply.held);
  const outcome = record.outcome(sink.departure.happened);
  requests.finish(outcome);
  if (measured.hasReasoning && asked.served && measured.fallback === undefined) noteReasoning(asked.served);
  watchers.metrics?.observe(record, outcome);
  const client = exchange.header("x-client-request-id");
  const fields = record.addFields({ req, method: exchange.method, path: exchange.path });
  if (client !== undefined) fields["clientRequestId"] = client;
  if (exchange.ofBatch) fields["batch"] = exchange.ofBatch.id;
  record.endTrace(outcome);
  if (!isDetached) record.watchers.listed?.ended(outcome, record);
  // Probes, and pages that show requests and models, send these every few seconds.
  if (!asked.api && /^\/(?:health|metrics|admin\/requests|admin\/models\/live)/.test(plainPath(exchange.path)))
    log.debug(fields, outcome);
  else if (outcome === "failed") log.error(fields, outcome);
  else log.info(fields, outcome === "cancelled" ? "cancelled by client" : outcome);
}
