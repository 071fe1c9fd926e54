import { FailureError } from "../../wire/core/failure.ts";
import type { PassedAnswer, PassedRequest, PathPassing } from "../../wire/core/path-passing.ts";
import { sourcePortOf } from "../../wire/apis/ports.ts";
import type { SourceApi } from "../../wire/apis/source-port.ts";
import type { UpstreamOptions } from "./options.ts";
import { UpstreamTarget } from "./targets.ts";
import type { OpenTransport, ReceivedHeaders } from "./transport.ts";
import { transportFailure } from "./transport-failure.ts";

/**
 * Passes requests for `paths` on to the servers of an upstream. Bodies are streamed in both directions and not read. The client's
 * credentials and cookies stay here, and the upstream gets its own key and headers; with `passKey`, it gets the client's key. `apiOf`: the API of the upstream, whose form the key has.
 */
export function openPathPassing(
  paths: readonly string[],
  options: UpstreamOptions,
  open: OpenTransport,
  apiOf: () => SourceApi,
): PathPassing {
  const targets = options.urls.map((url) => new UpstreamTarget(url, options, open));
  const own = Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const);

  async function pass({ method, path, headers, body, signal }: PassedRequest): Promise<PassedAnswer> {
    const target = targets.reduce((least, one) => (one.outstanding < least.outstanding ? one : least));
    const sent = Object.fromEntries([
      ...headers.flatMap(([name, value]) => (isPassedOn(name.toLowerCase()) ? [[name.toLowerCase(), value]] : [])),
      ...(options.passKey === true ? headers.filter(([name]) => credentials.has(name.toLowerCase())) : []),
      ...Object.entries(sourcePortOf({ ...options, api: apiOf() }).headers(options.key)).filter(
        ([name]) => name !== "content-type",
      ),
      ...own,
    ]) as Record<string, string>;
    target.outstanding++;
    try {
      const answer = await target.transport.pass({ method, path: target.path(path), headers: sent, body, signal });
      const received = textHeaders(answer.headers);
      return { status: answer.statusCode, headers: received, body: counted(answer.body, target) };
    } catch (error) {
      target.outstanding--;
      if (signal.aborted || error instanceof FailureError) throw error;
      throw new FailureError(transportFailure(error as Error, options.name));
    }
  }

  return { paths, pass };
}

async function* counted(body: AsyncIterable<Uint8Array>, target: UpstreamTarget): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } finally {
    target.outstanding--;
  }
}

const credentials: ReadonlySet<string> = new Set(["authorization", "x-api-key", "api-key", "x-goog-api-key"]);

/** Headers of a connection (RFC 9110, section 7.6.1), and what only Truewire may know: the client's key, cookies and origin. */
const keptBack: ReadonlySet<string> = new Set(
  (
    "connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding upgrade expect host http2-settings " +
    "cookie set-cookie origin referer"
  ).split(" "),
);

function isPassedOn(name: string): boolean {
  return !keptBack.has(name) && !credentials.has(name) && !name.startsWith(":") && !name.startsWith("x-truewire-");
}

/** The headers of an answer for the client. Those of CORS are Truewire's own. */
function textHeaders(headers: ReceivedHeaders): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && isPassedOn(name) && !name.startsWith("access-control-"))
      passed[name] = Array.isArray(value) ? value.join(", ") : value;
  return passed;
}
