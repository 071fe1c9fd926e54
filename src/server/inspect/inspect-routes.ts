import { FailureError, invalidRequest } from "../../core/failure.ts";
import { inspectedOutcomes, recordingOf } from "../../inspect/inspected-request.ts";
import type { InspectedRequest, RequestSummary } from "../../inspect/inspected-request.ts";
import { openaiErrorFormat } from "../../apis/api-error-format.ts";
import type { HeaderFields } from "../exchange.ts";
import type { Reply, EndpointHandler, ServerRoute } from "../reply.ts";
import type { Service } from "../service.ts";
import { sendEvents } from "../write-answer.ts";
import type { Changes, Inspector } from "./inspector.ts";

/** The paths that show the last requests. */
export const inspectRoutes: readonly (readonly [path: string, route: ServerRoute])[] = [
  ["/admin/requests", routeOf(list)],
  ["/admin/requests/live", routeOf(sendChanges)],
  [
    "/admin/requests/{id}",
    routeOf((reply, service, id) => sendPrivately(reply, "application/json", JSON.stringify(found(service, id)))),
  ],
  ["/admin/requests/{id}/capture", routeOf(sendCapture)],
];

function routeOf(answer: EndpointHandler): ServerRoute {
  return {
    conventions: openaiErrorFormat,
    admin: true,
    methods: {
      GET(reply, service, parameter) {
        refuseOtherPages(reply);
        return answer(reply, service, parameter);
      },
    },
  };
}

/** Query parameters of the list. Each returns whether it lists a request, and throws for a value that no request can have. */
const filters: ReadonlyMap<string, (value: string) => (summary: RequestSummary) => boolean> = new Map([
  [
    "model",
    (value) =>
      ({ model }) =>
        model === value,
  ],
  [
    "api",
    (value) =>
      ({ api }) =>
        api === value,
  ],
  [
    "key",
    (value) =>
      ({ key }) =>
        key === value,
  ],
  [
    "thread",
    (value) =>
      ({ thread }) =>
        thread === value,
  ],
  [
    "repair",
    (value) =>
      ({ repairs }) =>
        repairs !== undefined && Object.hasOwn(repairs, value),
  ],
  ["status", (value) => numberFilter("status", value, ({ status }, number) => status === number)],
  ["since", (value) => numberFilter("since", value, (summary, number) => summary.number > number)],
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

function numberFilter(
  name: string,
  value: string,
  matches: (summary: RequestSummary, number: number) => boolean,
): (summary: RequestSummary) => boolean {
  if (!/^\d{1,15}$/.test(value))
    throw invalidRequest(`Invalid '${name}': expected a number, but got '${value}'.`, name);
  return (summary) => matches(summary, Number(value));
}

function list(reply: Reply, service: Service): void {
  const { exchange } = reply;
  const inspector = inspectorOf(service);
  const names = exchange.queryNames();
  const unknown = names.filter((name) => !filters.has(name));
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
  const matches = (summary: RequestSummary): boolean => chosen.every((filter) => filter(summary));
  sendPrivately(reply, "application/json", JSON.stringify(inspector.list(matches)));
}

async function sendChanges(reply: Reply, service: Service): Promise<void> {
  const headers = { ...ofThisOrigin, "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" };
  await sendEvents(reply, eventsOf(inspectorOf(service).changes()), headers, service.settings.keepAliveMs);
}

async function* eventsOf(changes: Changes): AsyncGenerator<string> {
  // Tells the reader that it receives changes from now on.
  yield ": listening\n\n";
  for await (const requests of changes) for (const request of requests) yield `data: ${JSON.stringify(request)}\n\n`;
}

function sendCapture(reply: Reply, service: Service, id: string): void {
  const capture = recordingOf(found(service, id));
  if (capture === null) throw notComplete(id);
  sendPrivately(reply, "application/x-ndjson", `${capture}\n`, {
    "content-disposition": `attachment; filename="${id.replace(/[^\w-]/g, "")}.jsonl"`,
  });
}

function found(service: Service, id: string): InspectedRequest {
  const watched = inspectorOf(service).find(id);
  if (watched) return watched.shown();
  throw new FailureError({
    message: `There is no request '${id}', or it has been dropped for newer ones.`,
    status: 404,
    kind: "not-found",
    param: null,
    code: "request_not_found",
  });
}

function inspectorOf({ inspector }: Service): Inspector {
  if (inspector) return inspector;
  throw new FailureError({
    message:
      "Requests are not recorded. A server of one process records them if it listens on 127.0.0.1 and requires no client keys, or if it is started with --inspect and an admin key (--admin-key). With several workers, requests are never recorded.",
    status: 404,
    kind: "not-found",
    param: null,
    code: "inspect_off",
  });
}

/** Refuses pages of other origins: a browser sends the site of a request (Fetch Metadata). */
function refuseOtherPages({ exchange }: Reply): void {
  const site = exchange.header("sec-fetch-site");
  if (site === undefined || site === "same-origin" || site === "none") return;
  throw new FailureError({
    message: "Only this server's own page may look at its requests.",
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

function sendPrivately(reply: Reply, contentType: string, body: string, more: HeaderFields = {}): void {
  reply.send(200, contentType, body, { ...ofThisOrigin, "cache-control": "no-store", ...more });
}

function notComplete(id: string): FailureError {
  return new FailureError({
    message: `The request '${id}' has not ended, was never answered, or was too long to be kept completely.`,
    status: 409,
    kind: "invalid-request",
    param: null,
    code: "not_whole",
  });
}
