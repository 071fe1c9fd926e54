import type { PathPassing } from "../../wire/core/path-passing.ts";
import { unknownPath } from "../../wire/apis/failures.ts";
import { takeOwnKey } from "./keys/own-key.ts";
import { noPrice } from "./keys/prices.ts";
import { decodedSegment, plainPath } from "./exchange.ts";
import { matchesAlias, type ModelDirectory, modelsOf, type ServedEngine } from "./model-directory.ts";
import type { EndpointHandler, Reply, ServerRoute } from "./reply.ts";
import type { ObservedApi } from "./request-facts.ts";
import { conventionsOfUnknown, knownPaths } from "./routes.ts";
import type { Service } from "./service.ts";
import { takeLimits } from "./keys/take-limits.ts";

const api: ObservedApi = { name: "passed", operation: "passed" };

/** The route of a path that an upstream has and Truewire has not: the first upstream whose `passPaths` match it answers. */
export function passedRoute(path: string, { engines }: ModelDirectory): { readonly route: ServerRoute } | undefined {
  const plain = plainPath(path);
  if (engines.every(({ passing }) => !passing) || !staysBelow(plain)) return undefined;
  for (const from of engines) {
    const { passing } = from;
    if (!passing?.paths.some((pattern) => matchesAlias(pattern, plain))) continue;
    const handler: EndpointHandler = (reply, service) => passOn(reply, service, from, passing);
    const methods = { GET: handler, POST: handler, PUT: handler, PATCH: handler, DELETE: handler };
    return { route: { conventions: (header, query) => conventionsOfUnknown(path, header, query), api, methods } };
  }
  return undefined;
}

/** Whether no segment leads out of the path that was matched, however the upstream decodes it. */
function staysBelow(path: string): boolean {
  return path.split("/").every((segment) => {
    const decoded = decodedSegment(segment);
    return decoded !== "." && decoded !== ".." && !/[/\\]/.test(decoded);
  });
}

/** Sends the request to the upstream and its answer to the client, both as they arrive. Throws `FailureError`. */
async function passOn(reply: Reply, service: Service, from: ServedEngine, passing: PathPassing): Promise<void> {
  const { exchange, record } = reply;
  const { bytes, method, path, departure } = exchange;
  const { signal } = departure;
  const mayUse = modelsOf(reply.caller.client, service.directory)
    .list()
    .some((model) => model.from === from);
  // A client of some models has only the upstreams of these.
  if (!bytes || (reply.caller.client?.models && !mayUse)) throw unknownPath(method, path, knownPaths());
  if (reply.caller.client?.limits?.budget) throw noPrice(from.name, "what it does here is not counted");
  record.asked.api = api;
  record.asked.passedTo = from.name;
  takeOwnKey(reply, from);
  await takeLimits(reply, service);
  const answer = await passing.pass({
    method,
    path: plainPath(path) + bytes.search,
    headers: exchange.headers(),
    body: bytes.read(service.settings.bodyLimit),
    signal,
  });
  reply.open(answer.headers, answer.status);
  const decoder = isText(answer.headers) ? new TextDecoder() : undefined;
  try {
    for await (const chunk of answer.body) {
      if (decoder) record.watchers.inspection?.responseText(decoder.decode(chunk, { stream: true }));
      const wait = bytes.write(chunk);
      if (wait) await wait;
      if (departure.happened) return;
    }
  } catch (error) {
    if (departure.happened) return;
    // The client sees a broken connection: an end would make a part look like the whole.
    record.sent.cause = error;
    record.sent.isBroken = true;
    return exchange.cut();
  }
  reply.end("");
}

/** Whether Inspect shows the text of an answer. */
function isText({
  "content-type": type = "",
  "content-encoding": encoding,
}: Readonly<Record<string, string>>): boolean {
  return encoding === undefined && /^(?:text\/|application\/(?:json|x-ndjson|[\w.-]+\+json))/.test(type);
}
