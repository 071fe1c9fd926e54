import { FailureError, invalidRequest } from "../../../wire/core/failure.ts";
import { harEnd, harEntryOf, harStart } from "../../../judge/inspect/har.ts";
import { inspectedOutcomes, recordingOf } from "../../../judge/inspect/inspected-request.ts";
import type { InspectedRequest, RequestSummary } from "../../../judge/inspect/inspected-request.ts";
import { openaiErrorFormat } from "../../../wire/apis/api-error-format.ts";
import type { HeaderFields } from "../exchange.ts";
import type { Reply, EndpointHandler, ServerRoute } from "../reply.ts";
import type { Service } from "../service.ts";
import { sendEvents } from "../write-answer.ts";
import type { Inspector, Matches } from "./inspector.ts";
import { wordsOf } from "./search.ts";

/** The paths that show the last requests. */
export const inspectRoutes: readonly (readonly [path: string, route: ServerRoute])[] = [
  ["/admin/requests", routeOf(list, clear)],
  ["/admin/requests/live", routeOf(sendChanges)],
  ["/admin/requests/search", routeOf(sendResults)],
  ["/admin/requests/export", routeOf(sendExport)],
  [
    "/admin/requests/{id}",
    routeOf(async (reply, service, id) =>
      sendPrivately(reply, "application/json", JSON.stringify(await found(service, id))),
    ),
  ],
  ["/admin/requests/{id}/capture", routeOf(sendCapture)],
];

function routeOf(get: EndpointHandler, remove?: EndpointHandler): ServerRoute {
  const ownPageOnly =
    (answer: EndpointHandler): EndpointHandler =>
    (reply, service, parameter) => {
      refuseOtherPages(reply);
      return answer(reply, service, parameter);
    };
  return {
    conventions: openaiErrorFormat,
    admin: true,
    // The admin key would not help: nothing is kept.
    requireEnabled: inspectedIn,
    methods: { GET: ownPageOnly(get), ...(remove && { DELETE: ownPageOnly(remove) }) },
  };
}

function equal(member: keyof RequestSummary): (value: string) => Matches {
  return (value) => (summary) => summary[member] === value;
}

function number(
  name: string,
  matches: (summary: RequestSummary, number: number) => boolean,
): (value: string) => Matches {
  return (value) => {
    if (!/^\d{1,16}$/.test(value))
      throw invalidRequest(`Invalid '${name}': expected a number, but got '${value}'.`, name);
    return (summary) => matches(summary, Number(value));
  };
}

function flag(name: string, matches: Matches): (value: string) => Matches {
  return (value) => {
    if (value !== "true" && value !== "false")
      throw invalidRequest(`Invalid '${name}': expected true or false, but got '${value}'.`, name);
    return (summary) => matches(summary) === (value === "true");
  };
}

/** Query parameters of the list. Each returns whether it lists a request, and throws for a value that no request can have. */
const filters: ReadonlyMap<string, (value: string) => Matches> = new Map([
  ["model", equal("model")],
  ["engine", equal("engine")],
  ["engine_model", equal("engine_model")],
  ["api", equal("api")],
  ["key", equal("key")],
  ["thread", equal("thread")],
  [
    "repair",
    (value) =>
      ({ repairs }) =>
        repairs !== undefined && Object.hasOwn(repairs, value),
  ],
  ["repaired", flag("repaired", ({ repairs }) => repairs !== undefined)],
  [
    "cache_missed",
    flag("cache_missed", ({ cache_miss: miss }) => miss !== undefined && miss.cause !== "nothing-known"),
  ],
  ["status", number("status", ({ status }, number) => status === number)],
  ["since", number("since", (summary, number) => summary.number > number)],
  ["after", number("after", ({ at }, time) => at >= time)],
  ["before", number("before", ({ at }, time) => at < time)],
  ["min_ms", number("min_ms", ({ ms }, least) => ms >= least)],
  [
    "outcome",
    (value) => {
      if (!inspectedOutcomes.some((name) => name === value))
        throw invalidRequest(
          `Unknown outcome '${value}'. The outcomes are ${inspectedOutcomes.join(", ")}.`,
          "outcome",
        );
      return ({ outcome }) => outcome === value;
    },
  ],
]);

/** The requests that the filters in the query choose. Throws `FailureError` 400 for parameters that are neither filters nor in `others`. */
function chosenBy({ exchange }: Reply, others: readonly string[] = []): Matches {
  const names = exchange.queryNames();
  const unknown = names.filter((name) => !filters.has(name) && !others.includes(name));
  if (unknown.length > 0) {
    const listed = unknown.map((name) => `'${name}'`).join(", ");
    throw invalidRequest(
      `Unknown filter${unknown.length === 1 ? "" : "s"}: ${listed}. The filters are ${[...filters.keys()].join(", ")}.`,
      unknown[0] ?? null,
      "unknown_parameter",
    );
  }
  const chosen = [...filters].flatMap(([name, filter]) => {
    const value = exchange.query(name);
    return value === undefined ? [] : [filter(value)];
  });
  return (summary) => chosen.every((filter) => filter(summary));
}

async function list(reply: Reply, service: Service): Promise<void> {
  const requests = inspectedIn(service);
  sendPrivately(reply, "application/json", JSON.stringify(await requests.list(chosenBy(reply))));
}

async function clear(reply: Reply, service: Service): Promise<void> {
  sendPrivately(reply, "application/json", JSON.stringify({ cleared: await inspectedIn(service).clear() }));
}

async function sendResults(reply: Reply, service: Service): Promise<void> {
  const inspector = inspectedIn(service);
  const matches = chosenBy(reply, ["q"]);
  const results = inspector.search(wordsOf(reply.exchange.query("q") ?? ""), matches);
  await sendEvents(reply, dataOf(results), eventStream, service.settings.keepAliveMs);
}

async function* dataOf(values: AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const value of values) yield `data: ${JSON.stringify(value)}\n\n`;
}

/** The formats of exported requests. */
const formats = {
  har: { type: "application/json", extension: "har", write: writeHar },
  recording: { type: "application/x-ndjson", extension: "jsonl", write: writeRecordings },
} as const;

/** Sends several requests with their answers as one file. Those that are open or were never answered are left out. */
async function sendExport(reply: Reply, service: Service): Promise<void> {
  const inspector = inspectedIn(service);
  const { exchange } = reply;
  const matches = chosenBy(reply, ["format", "id"]);
  const ids = new Set(exchange.queries("id"));
  const name = exchange.query("format") ?? "recording";
  if (name !== "har" && name !== "recording")
    throw invalidRequest(`Unknown format '${name}'. The formats are ${Object.keys(formats).join(", ")}.`, "format");
  const { type, extension, write } = formats[name];
  const texts = write(inspector.shown((summary) => (ids.size === 0 || ids.has(summary.id)) && matches(summary)));
  const first = await texts.next();
  if (first.done === true) throw notComplete("No chosen request can be exported: each");
  const headers = {
    ...ofThisOrigin,
    "content-type": type,
    "cache-control": "no-store",
    "content-disposition": `attachment; filename="requests.${extension}"`,
  };
  await sendEvents(reply, withFirst(first.value, texts), headers, service.settings.keepAliveMs, "");
}

async function* withFirst(first: string, others: AsyncIterable<string>): AsyncGenerator<string> {
  yield first;
  yield* others;
}

async function* writeRecordings(requests: AsyncIterable<InspectedRequest>): AsyncGenerator<string, void> {
  for await (const request of requests) {
    const line = recordingOf(request);
    if (line !== null) yield `${line}\n`;
  }
}

async function* writeHar(requests: AsyncIterable<InspectedRequest>): AsyncGenerator<string, void> {
  let before = harStart;
  for await (const request of requests) {
    const entry = harEntryOf(request);
    if (!entry) continue;
    yield before + JSON.stringify(entry);
    before = ",\n";
  }
  if (before !== harStart) yield harEnd;
}

async function sendChanges(reply: Reply, service: Service): Promise<void> {
  await sendEvents(reply, eventsOf(inspectedIn(service).changes()), eventStream, service.settings.keepAliveMs);
}

async function* eventsOf(changes: AsyncIterable<readonly unknown[]>): AsyncGenerator<string> {
  // Tells the reader that it receives changes from now on.
  yield ": listening\n\n";
  for await (const requests of changes) for (const request of requests) yield `data: ${JSON.stringify(request)}\n\n`;
}

async function sendCapture(reply: Reply, service: Service, id: string): Promise<void> {
  const capture = recordingOf(await found(service, id));
  if (capture === null) throw notComplete(`The request '${id}'`);
  sendPrivately(reply, "application/x-ndjson", `${capture}\n`, {
    "content-disposition": `attachment; filename="${id.replace(/[^\w-]/g, "")}.jsonl"`,
  });
}

async function found(service: Service, id: string): Promise<InspectedRequest> {
  const request = await inspectedIn(service).find(id);
  if (request) return request;
  throw new FailureError({
    message: `There is no request '${id}', or it has been dropped for newer ones.`,
    status: 404,
    kind: "not-found",
    param: null,
    code: "request_not_found",
  });
}

function inspectedIn({ watchers: { inspector } }: Service): Inspector {
  if (inspector) return inspector;
  throw new FailureError({
    message:
      "Requests are not recorded. A server of one process records them if it listens on 127.0.0.1 and requires no client keys, or if it is started with --inspect and an admin key (--admin-key).",
    status: 404,
    kind: "not-found",
    param: null,
    code: "inspect_off",
  });
}

/** Refuses pages of other origins: a browser sends the site of a request (Fetch Metadata). */
/** Throws `FailureError` 403 for a page of another origin. */
export function refuseOtherPages({ exchange }: Reply): void {
  const site = exchange.header("sec-fetch-site");
  if (site === undefined || site === "same-origin" || site === "none") return;
  throw new FailureError({
    message: "Only this server's own page may use this path.",
    status: 403,
    kind: "permission",
    param: null,
    code: "origin_not_allowed",
  });
}

/** Conversations must not be readable by other pages, nor cached. */
const ofThisOrigin: HeaderFields = {
  "cross-origin-resource-policy": "same-origin",
  "x-content-type-options": "nosniff",
};

const eventStream: HeaderFields = {
  ...ofThisOrigin,
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
};

/** Sends what no other page may read, and no cache may keep. */
export function sendPrivately(reply: Reply, contentType: string, body: string, more: HeaderFields = {}): void {
  reply.send(200, contentType, body, { ...ofThisOrigin, "cache-control": "no-store", ...more });
}

function notComplete(subject: string): FailureError {
  return new FailureError({
    message: `${subject} has not ended, was never answered, or was too long to be kept completely.`,
    status: 409,
    kind: "invalid-request",
    param: null,
    code: "not_whole",
  });
}
