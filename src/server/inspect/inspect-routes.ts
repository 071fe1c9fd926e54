import { FailureError } from "../../core/failure.ts";
import { recordingOf } from "../../inspect/inspected-request.ts";
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

function list(reply: Reply, service: Service): void {
  const { exchange } = reply;
  const { model, outcome, repair, since } = {
    model: exchange.query("model"),
    outcome: exchange.query("outcome"),
    repair: exchange.query("repair"),
    since: Number(exchange.query("since") ?? 0),
  };
  const matches = (summary: RequestSummary): boolean =>
    summary.number > since &&
    (model === undefined || summary.model === model) &&
    (outcome === undefined || summary.outcome === outcome) &&
    (repair === undefined || summary.repairs?.[repair] !== undefined);
  sendPrivately(reply, "application/json", JSON.stringify(inspectorOf(service).list(matches)));
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
