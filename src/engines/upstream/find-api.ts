import { sourceApis } from "../../wire/source-api.ts";
import type { SourceApi } from "../../wire/source-api.ts";
import { sourcePorts } from "../../wire/source-ports.ts";
import type { UpstreamOptions } from "./options.ts";
import { Target } from "./target.ts";
import type { OpenTransport } from "./transport.ts";
import { openTransport } from "./undici-transport.ts";

/** A path that is not served is told of at once; a server that takes longer is asked in chat. */
const patienceMs = 3000;

/**
 * The API that a server speaks, where nobody has said: chat, unless that path is not there and the path of another API is. The paths are
 * asked with GET, which costs nothing: where a path takes only POST, the answer says so (405), or asks for a key.
 */
export async function findApi(options: UpstreamOptions, open: OpenTransport = openTransport): Promise<SourceApi> {
  const [url = ""] = options.urls;
  const target = new Target(url, options, open);
  try {
    for (const api of sourceApis) {
      const status = await statusOf(target, api, options.key);
      if (api === "chat" ? status !== 404 : isThere.has(status)) return api;
    }
    return "chat";
  } finally {
    await target.transport.destroy();
  }
}

/** What a path answers that is there, but not for a GET. */
const isThere: ReadonlySet<number> = new Set([400, 401, 403, 405, 422, 426]);

/** 0: no answer. */
async function statusOf(target: Target, api: SourceApi, key: string | undefined): Promise<number> {
  const { path, headers } = sourcePorts[api];
  try {
    const { statusCode, body } = await target.transport.request({
      method: "GET",
      path: target.path(path),
      headers: { "user-agent": "truewire", ...headers(key) },
      signal: AbortSignal.timeout(patienceMs),
    });
    await body.dump();
    return statusCode;
  } catch {
    return 0;
  }
}
