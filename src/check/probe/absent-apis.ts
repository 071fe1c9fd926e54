import { request as httpRequest } from "undici";
import type { Exchange } from "../rules/exchange.ts";
import { requestHeaders } from "./request-headers.ts";
import type { ProbeTarget } from "./send.ts";

/** APIs that a server need not have, and how it answers without them. Anthropic's API rejects the key of another vendor. */
const optional: readonly { readonly endpoint: Exchange["endpoint"]; readonly lacking: readonly number[] }[] = [
  { endpoint: "responses", lacking: [404, 405, 501] },
  { endpoint: "messages", lacking: [401, 403, 404, 405, 501] },
];

/** Those of them that a server has not. Nothing is generated: the requests are empty. */
export async function absentApis(target: ProbeTarget): Promise<ReadonlySet<string | undefined>> {
  const asked = await Promise.all(
    optional.map(async ({ endpoint, lacking }) => {
      const status = await statusOf(endpoint, target);
      return status === undefined || lacking.includes(status) ? [endpoint] : [];
    }),
  );
  return new Set(asked.flat());
}

/** undefined: there is no answer. */
async function statusOf(
  endpoint: Exchange["endpoint"],
  { url, key, timeout }: ProbeTarget,
): Promise<number | undefined> {
  try {
    const { statusCode, body } = await httpRequest(`${url}/${endpoint}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...requestHeaders({ endpoint }, key) },
      body: "{}",
      signal: AbortSignal.timeout(timeout),
    });
    await body.dump();
    return statusCode;
  } catch {
    return undefined;
  }
}
