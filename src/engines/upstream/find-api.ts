import { sourceApis } from "../../apis/source-port.ts";
import type { SourceApi } from "../../apis/source-port.ts";
import { sourcePorts } from "../../apis/ports.ts";
import type { UpstreamOptions } from "./options.ts";
import { UpstreamTarget } from "./targets.ts";
import type { OpenTransport } from "./transport.ts";

/** A server refuses an empty request at once. */
const timeoutMs = 3000;

/**
 * Detects the API of a server whose configuration does not name it: the first of chat, Responses and Messages whose path takes POST
 * requests; chat if none does, or if the server does not answer within 3 seconds.
 *
 * Sends a POST without a body to each path, which every server refuses before it generates anything. A GET would not do: llama.cpp's
 * server and others answer 404 to a GET at paths that take POST only, and web servers answer 200 to a GET at every path. Sources: FastAPI
 * (vLLM, SGLang, LiteLLM) answers 422 or 400, gin (Ollama) 400, cpp-httplib (llama.cpp) 400 or 500.
 */
export async function findApi(options: UpstreamOptions, open: OpenTransport): Promise<SourceApi> {
  const [url = ""] = options.urls;
  const target = new UpstreamTarget(url, options, open);
  try {
    for (const api of sourceApis) {
      const status = await statusOf(target, api, options);
      // Without an answer at one path there is none at the others.
      if (status === null) return "chat";
      if (api === "chat" ? !absent.has(status) : takesPosts(status)) return api;
    }
    return "chat";
  } finally {
    await target.transport.destroy();
  }
}

/** Statuses of a POST at a path that does not take it. */
const absent: ReadonlySet<number> = new Set([404, 405, 501]);

/**
 * Whether a path takes POST requests, by the status of an empty one. A success is no sign: LM Studio answers 200 at unknown paths
 * (lmstudio-ai/lmstudio-bug-tracker#618). Neither are 502, 503 and 504, which proxies send.
 */
function takesPosts(status: number): boolean {
  return status >= 400 && status <= 500 && !absent.has(status);
}

/** The status of the answer to an empty POST; null: no answer. */
async function statusOf(
  target: UpstreamTarget,
  api: SourceApi,
  { key, headers: own = {} }: UpstreamOptions,
): Promise<number | null> {
  const { path, headers } = sourcePorts[api];
  const lowerCased = Object.entries(own).map(([name, value]) => [name.toLowerCase(), value]);
  try {
    const { statusCode, body } = await target.transport.request({
      method: "POST",
      path: target.path(path),
      headers: {
        "user-agent": "truewire",
        "content-type": "application/json",
        ...headers(key),
        ...(Object.fromEntries(lowerCased) as Record<string, string>),
      },
      body: "",
      signal: AbortSignal.timeout(timeoutMs),
    });
    await body.dump();
    return statusCode;
  } catch {
    return null;
  }
}
