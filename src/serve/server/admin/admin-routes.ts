import { internalError } from "../../../wire/apis/failures.ts";
import { openaiErrorFormat } from "../../../wire/apis/api-error-format.ts";
import type { ServerProfileReport } from "../../../wire/core/engine.ts";
import type { GenerationFailure } from "../../../wire/core/events.ts";
import { FailureError, invalidRequest } from "../../../wire/core/failure.ts";
import { sourceApis, type SourceApi } from "../../../wire/apis/source-port.ts";
import { isObject, type JsonObject } from "../../../wire/core/json.ts";
import { modelEvents } from "./model-watch.ts";
import type { BetweenRequest, Checker, CheckRequest, ModelControl, Progress, ControlTask } from "./model-control.ts";
import type { Mask } from "../mask.ts";
import type { ServedEngine } from "../model-directory.ts";
import { readJsonBody } from "../read-json.ts";
import type { EndpointHandler, Reply, ServerRoute } from "../reply.ts";
import type { Service } from "../service.ts";
import { sendEvents } from "../write-answer.ts";

const admin = { conventions: openaiErrorFormat, admin: true } as const;

/** The paths of the admin API. */
export const adminRoutes: readonly (readonly [path: string, route: ServerRoute])[] = [
  [
    "/admin/models",
    {
      ...admin,
      methods: {
        async GET(reply, service) {
          const { engines } = service.directory;
          const listed = await controlOf(service).list();
          const models = listed.models.map((model, at) => ({ ...model, ...profilesOf(engines[at]) }));
          reply.send(200, "application/json", JSON.stringify({ ...listed, models }));
        },
      },
    },
  ],
  ["/admin/models/live", { ...admin, methods: { GET: sendStates } }],
  ["/admin/models/load", { ...admin, methods: { POST: modelTask((control, name, task) => control.load(name, task)) } }],
  [
    "/admin/models/unload",
    { ...admin, methods: { POST: modelTask((control, name, task) => control.unload(name, task)) } },
  ],
  ["/admin/models/forget", { ...admin, methods: { POST: forgetLessons } }],
  ["/admin/models/keep", { ...admin, methods: { POST: modelTask(keepModel) } }],
  ["/admin/models/pull", { ...admin, methods: { POST: modelTask((control, name, task) => control.pull(name, task)) } }],
  [
    "/admin/check",
    { ...admin, methods: { POST: tries((checker, body, signal) => checker.check(readCheck(body), signal)) } },
  ],
  [
    "/admin/between",
    { ...admin, methods: { POST: tries((checker, body, signal) => checker.between(readBetween(body), signal)) } },
  ],
  [
    "/admin/reload",
    {
      ...admin,
      methods: { POST: (reply, service) => sendTask(reply, service, () => controlOf(service).reload()) },
    },
  ],
];

/** The control of the server's models. Throws `FailureError` 503. */
export function controlOf({ admin: { control } }: Service): ModelControl {
  if (control) return control;
  throw new FailureError({ message: "There is nothing to control yet.", status: 503, kind: "unavailable" });
}

/** What the servers of an upstream accept, for the models that have answered; no member for other models, and before the first answer. */
function profilesOf(served: ServedEngine | undefined): { readonly profiles?: readonly ServerProfileReport[] } {
  const profiles = served?.engine.profiles?.() ?? [];
  return profiles.length > 0 ? { profiles } : {};
}

/** `GET /admin/models/live`: a snapshot of all models, and then changes. */
async function sendStates(reply: Reply, service: Service): Promise<void> {
  const { exchange } = reply;
  // An answer to HEAD has no body that could end.
  if (exchange.method === "HEAD") return reply.send(200, eventHeaders["content-type"], "", eventHeaders);
  const events = modelEvents(service, controlOf(service), exchange.departure.signal);
  await sendEvents(reply, textsOf(events, reply, service.settings.mask), eventHeaders, service.settings.keepAliveMs);
}

/** `POST /admin/models/forget`: forgets what was learned about a model of an upstream, all of it or one lesson. */
async function forgetLessons(reply: Reply, service: Service): Promise<void> {
  const body = await readJsonBody(reply, service);
  const { model, url, lesson } = isObject(body) ? body : {};
  if (typeof model !== "string" || model === "")
    throw invalidRequest('Expected a body such as {"model": "NAME"}.', "model", "missing_required_parameter");
  if (url !== undefined && typeof url !== "string") throw refused("url", "the URL of a server of the upstream");
  if (lesson !== undefined && typeof lesson !== "string") throw refused("lesson", "the id of a lesson, such as tools");
  reply.record.asked.model = model;
  const which = { ...(url !== undefined && { url }), ...(lesson !== undefined && { lesson }) };
  const found = service.directory.engines.flatMap(({ engine }) => engine.forget?.(model, which) ?? []);
  if (found.length === 0)
    throw new FailureError({
      message: `Nothing${lesson === undefined ? "" : ` named '${lesson}'`} was learned about the model '${model}'. GET /admin/models lists what was, in \`profiles\`.`,
      status: 404,
      kind: "not-found",
    });
  const forgotten = [...new Set(found)];
  service.log.info({ req: reply.requestId, model, ...which, forgotten }, "forgot what was learned about an upstream");
  await sendTask(reply, service, () => Promise.resolve({ model, forgotten }));
}

function keepModel(control: ModelControl, name: string, _: ControlTask, body: object): Promise<object> {
  const keep = "keep" in body ? body.keep : true;
  if (typeof keep !== "boolean") throw refused("keep", "true or false");
  return control.keep(name, keep);
}

/** A handler that acts on the model in the body: `{"model": "…"}`. */
function modelTask(
  act: (control: ModelControl, name: string, task: ControlTask, body: object) => Promise<object>,
): EndpointHandler {
  return async (reply, service) => {
    const body = await readJsonBody(reply, service);
    const name = isObject(body) ? body["model"] : undefined;
    if (!isObject(body) || typeof name !== "string" || name === "")
      throw invalidRequest('Expected a body such as {"model": "NAME"}.', "model", "missing_required_parameter");
    reply.record.asked.model = name;
    await sendTask(reply, service, async (task) => act(controlOf(service), name, task, body));
  };
}

/**
 * Streams the progress of a task: `progress` events, and finally `done` or `error`. A task that fails immediately is answered with its
 * status.
 */
async function sendTask(reply: Reply, service: Service, run: (task: ControlTask) => Promise<object>): Promise<void> {
  await sendEvents(reply, taskEvents(reply, service.settings.mask, run), eventHeaders, service.settings.keepAliveMs);
}

async function* taskEvents(
  reply: Reply,
  mask: Mask,
  run: (task: ControlTask) => Promise<object>,
): AsyncGenerator<string> {
  try {
    for await (const step of taskSteps(reply, run))
      yield eventText("progress" in step ? { type: "progress", ...step.progress } : { type: "done", ...step.result });
  } catch (error) {
    if (!reply.sent) throw error;
    yield eventText(failureEvent(reply, mask, error));
  }
}

/** Runs a task until it ends or the client leaves. Yields its latest progress, and finally its result. Throws the error of the task. */
export async function* taskSteps<Result>(
  { exchange }: Reply,
  run: (task: ControlTask) => Promise<Result>,
): AsyncGenerator<{ readonly progress: Progress } | { readonly result: Result }> {
  const seen: { progress?: Progress | undefined; outcome?: { result: Result } | { error: unknown } } = {};
  let wake = (): void => {};
  const task: ControlTask = {
    signal: exchange.departure.signal,
    report(progress) {
      seen.progress = progress;
      wake();
    },
  };
  run(task)
    .then(
      (result) => (seen.outcome = { result }),
      (error: unknown) => (seen.outcome = { error }),
    )
    .finally(() => wake());
  while (!seen.outcome || seen.progress) {
    if (seen.progress) {
      const { progress } = seen;
      seen.progress = undefined;
      yield { progress };
    } else await new Promise<void>((resolve) => (wake = resolve));
  }
  const { outcome } = seen;
  if ("error" in outcome) throw outcome.error;
  yield outcome;
}

/** `POST /admin/check` and `/admin/between`: tries another server and streams each result. Ends when the client leaves. */
function tries(
  begin: (checker: Checker, body: unknown, signal: AbortSignal) => AsyncIterable<object>,
): (reply: Reply, service: Service) => Promise<void> {
  return async (reply, service) => {
    const { admin, settings } = service;
    const { checker } = admin;
    if (!checker)
      throw new FailureError({
        message: "Only a server of `truewire serve` or `createServer` checks others.",
        status: 404,
        kind: "not-found",
      });
    const events = begin(checker, await readJsonBody(reply, service), reply.exchange.departure.signal);
    await sendEvents(reply, textsOf(events, reply, settings.mask), eventHeaders, settings.keepAliveMs);
  };
}

/** What fails immediately is answered with its status. */
async function* textsOf(events: AsyncIterable<object>, reply: Reply, mask: Mask): AsyncGenerator<string> {
  try {
    for await (const event of events) yield eventText(event);
  } catch (error) {
    if (!reply.sent) throw error;
    yield eventText(failureEvent(reply, mask, error));
  }
}

/** The headers of event streams of the admin API. */
const eventHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
} as const;

function eventText(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** The last event of a task that fails after its 200: `error`, in the form of the API. */
function failureEvent(reply: Reply, mask: Mask, error: unknown): object {
  const { failure } = error instanceof FailureError ? error : internalError(error);
  const { cause, ...rest } = failure;
  const shown: GenerationFailure = mask.value(rest);
  // The status was sent as 200: this logs the request as failed.
  reply.record.answer.see([{ type: "end", end: { kind: "rejected", failure: { ...shown, cause } } }]);
  const { body } = reply.conventions.writeFailure(shown, reply.profile, reply.requestId);
  return { type: "error", ...(JSON.parse(body) as object) };
}

/** Reads the body of `POST /admin/check`. Throws `FailureError`, which never quotes the key. */
function readCheck(body: unknown): CheckRequest {
  if (!isObject(body)) throw invalidRequest('Expected a body such as {"url": "http://127.0.0.1:11434/v1"}.');
  const { only, profile } = body;
  const { url, key, model } = readServer(body);
  if (only !== undefined && !isWords(only)) throw refused("only", "a list of words, such as chat or text");
  if (profile !== undefined && profile !== "lean" && profile !== "exact") throw refused("profile", "lean or exact");
  return {
    url,
    key,
    model,
    only,
    profile,
  };
}

function readServer({ url, key, model }: JsonObject): Pick<CheckRequest, "url" | "key" | "model"> {
  if (typeof url !== "string" || !isBaseUrl(url))
    throw refused("url", "the base URL of an API, such as http://127.0.0.1:11434/v1, without a query");
  // Headers allow no other characters (RFC 9110, section 5.5).
  if (key !== undefined && (typeof key !== "string" || !/^[\x21-\x7e]{1,4096}$/.test(key)))
    throw refused("key", "an API key: ASCII without spaces");
  if (model !== undefined && typeof model !== "string") throw refused("model", "the name of a model");
  return { url, key, model };
}

/** Reads the body of `POST /admin/between`. Throws `FailureError`, which never quotes the key. */
function readBetween(body: unknown): BetweenRequest {
  if (!isObject(body)) throw invalidRequest('Expected a body such as {"url": "http://127.0.0.1:4000", "port": 9001}.');
  const { client, vendor, port, quick = false, confirm, seeds } = body;
  const apiOf = (name: string, value: unknown = "chat"): SourceApi => {
    const api = sourceApis.find((one) => one === value);
    if (!api) throw refused(name, `one of ${sourceApis.join(", ")}`);
    return api;
  };
  if (typeof port !== "number" || !Number.isInteger(port) || port < 1024 || port > 65_535)
    throw refused("port", "a port from 1024 to 65535, at which the gateway expects the vendor");
  if (typeof quick !== "boolean") throw refused("quick", "true or false");
  if (confirm !== undefined && !isWhole(confirm, 20)) throw refused("confirm", "a whole number from 0 to 20");
  if (seeds !== undefined && !isSeeds(seeds)) throw refused("seeds", "1 to 20 different whole numbers, such as [3, 4]");
  const apis = { client: apiOf("client", client), vendor: apiOf("vendor", vendor) };
  return { ...readServer(body), ...apis, port, quick, confirm, seeds };
}

function isWhole(value: unknown, maximum: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= maximum;
}

function isSeeds(value: unknown): value is readonly number[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > 20) return false;
  return value.every((seed) => isWhole(seed, 999_999_999)) && new Set(value).size === value.length;
}

/** Paths are appended to it, so it may have no query. Credentials in it would be shown in the report. */
function isBaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username === "" && password === "" && !/[?#\s]/.test(text);
}

function isWords(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string" && word !== "");
}

function refused(name: string, expected: string): FailureError {
  return invalidRequest(`'${name}': expected ${expected}.`, name);
}
