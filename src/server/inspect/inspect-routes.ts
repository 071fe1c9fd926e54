import { FailureError } from "../../core/failure.ts";
import { captureOf } from "../../inspect/capture-of.ts";
import type { InspectedRequest, RequestSummary } from "../../inspect/inspected-request.ts";
import { openaiVoice } from "../../apis/openai-voice.ts";
import type { HeaderFields } from "../exchange.ts";
import type { Reply, Answer, Route } from "../reply.ts";
import type { Service } from "../service.ts";
import { tellEvents } from "../write-answer.ts";
import type { Changes, Inspector } from "./inspector.ts";

/** Where the last requests are shown to whoever runs the server. */
export const inspectRoutes: readonly (readonly [path: string, route: Route])[] = [
  ["/admin/requests", routeOf(list)],
  ["/admin/requests/live", routeOf(tellChanges)],
  [
    "/admin/requests/{id}",
    routeOf((reply, service, id) => sendPrivately(reply, "application/json", JSON.stringify(found(service, id)))),
  ],
  ["/admin/requests/{id}/capture", routeOf(sendCapture)],
];

function routeOf(answer: Answer): Route {
  return {
    voice: openaiVoice,
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
  const wanted = (summary: RequestSummary): boolean =>
    summary.number > since &&
    (model === undefined || summary.model === model) &&
    (outcome === undefined || summary.outcome === outcome) &&
    (repair === undefined || summary.repairs?.[repair] !== undefined);
  sendPrivately(reply, "application/json", JSON.stringify(inspectorOf(service).list(wanted)));
}

async function tellChanges(reply: Reply, service: Service): Promise<void> {
  const headers = { ...ofThisOrigin, "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" };
  await tellEvents(reply, eventsOf(inspectorOf(service).changes()), headers, service.settings.keepAliveMs);
}

async function* eventsOf(changes: Changes): AsyncGenerator<string> {
  // So that the reader knows that it listens.
  yield ": listening\n\n";
  for await (const requests of changes) for (const request of requests) yield `data: ${JSON.stringify(request)}\n\n`;
}

function sendCapture(reply: Reply, service: Service, id: string): void {
  const capture = captureOf(found(service, id));
  if (capture === null) throw notWhole(id);
  sendPrivately(reply, "application/x-ndjson", `${capture}\n`, {
    "content-disposition": `attachment; filename="${id.replace(/[^\w-]/g, "")}.jsonl"`,
  });
}

function found(service: Service, id: string): InspectedRequest {
  const watched = inspectorOf(service).find(id);
  if (watched) return watched.shown();
  throw new FailureError({
    message: `There is no request '${id}', or it had to make room for others.`,
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
      "No requests are kept. They are on a server of one process that listens on 127.0.0.1 and needs no key of its clients; others keep them with --inspect and an admin key (--admin-key). With several workers, none are.",
    status: 404,
    kind: "not-found",
    param: null,
    code: "inspect_off",
  });
}

/** No page of another origin may ask, in whatever way: a browser says where a request comes from (Fetch Metadata). */
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

/** What a conversation says is for nobody else's eyes, and for no cache. */
const ofThisOrigin: HeaderFields = {
  "cross-origin-resource-policy": "same-origin",
  "x-content-type-options": "nosniff",
};

function sendPrivately(reply: Reply, contentType: string, body: string, more: HeaderFields = {}): void {
  reply.send(200, contentType, body, { ...ofThisOrigin, "cache-control": "no-store", ...more });
}

function notWhole(id: string): FailureError {
  return new FailureError({
    message: `The request '${id}' is not over, was never answered, or was too long to be kept whole.`,
    status: 409,
    kind: "invalid-request",
    param: null,
    code: "not_whole",
  });
}
