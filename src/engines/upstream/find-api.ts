import { sourceApis } from "../../apis/source-api.ts";
import type { SourceApi } from "../../apis/source-api.ts";
import { sourcePorts } from "../../apis/source-ports.ts";
import type { UpstreamOptions } from "./options.ts";
import { Target } from "./target.ts";
import type { OpenTransport } from "./transport.ts";
import { openTransport } from "./undici-transport.ts";

/** A server refuses an empty request at once. One that takes longer is asked in chat. */
const patienceMs = 3000;

/**
 * The API that a server speaks, if the configuration does not name it: the first of chat, Responses and Messages whose path takes POST
 * requests; chat, if none does.
 *
 * Each path is asked with a POST without a body, which every server refuses before it generates anything: as no JSON, or for what it lacks.
 * A GET does not tell: llama.cpp's server and others answer 404 to a GET at paths that take POST only, and servers of pages answer 200 to a
 * GET at every path. Sources: FastAPI (vLLM, SGLang, LiteLLM) answers 422 or 400, gin (Ollama) 400, cpp-httplib (llama.cpp) 400 or 500.
 */
export async function findApi(options: UpstreamOptions, open: OpenTransport = openTransport): Promise<SourceApi> {
  const [url = ""] = options.urls;
  const target = new Target(url, options, open);
  try {
    for (const api of sourceApis) {
      const status = await statusOf(target, api, options);
      // No server answers: the other paths would be waited for in vain.
      if (status === null) return "chat";
      if (api === "chat" ? !absent.has(status) : takesPosts(status)) return api;
    }
    return "chat";
  } finally {
    await target.transport.destroy();
  }
}

/** Answers to a POST at a path that does not take it. */
const absent: ReadonlySet<number> = new Set([404, 405, 501]);

/**
 * Whether a path takes POST requests, by its answer to an empty one. A success is no sign: LM Studio answers 200 at paths that it does not have
 * (lmstudio-ai/lmstudio-bug-tracker#618). Neither are 502, 503 and 504, which come from a proxy.
 */
function takesPosts(status: number): boolean {
  return status >= 400 && status <= 500 && !absent.has(status);
}

/** The status of the answer to an empty POST; null: there is no answer. */
async function statusOf(
  target: Target,
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
      signal: AbortSignal.timeout(patienceMs),
    });
    await body.dump();
    return statusCode;
  } catch {
    return null;
  }
}
