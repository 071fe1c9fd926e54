import { sourceApis } from "../../apis/source-port.ts";
import type { SourceApi } from "../../apis/source-port.ts";
import { sourcePorts } from "../../apis/ports.ts";
import type { UpstreamOptions } from "./options.ts";
import { UpstreamTarget } from "./targets.ts";
import { type OpenTransport, readBody } from "./transport.ts";

/** A server refuses an empty request immediately. */
const timeoutMs = 3000;
/** The answers of Ollama that are read here are shorter. */
const maxLength = 4096;

/**
 * Detects the API of a server whose configuration does not name it: Ollama's own for an Ollama, else the first of chat, Responses and
 * Messages whose path takes POST requests; chat if none does, or if the server does not answer within 3 seconds.
 *
 * Sends a POST without a body to each path, which every server refuses before it generates anything. A GET would not do: llama.cpp's
 * server and others answer 404 to a GET at paths that take POST only, and web servers answer 200 to a GET at every path. Sources: FastAPI
 * (vLLM, SGLang, LiteLLM) answers 422 or 400, gin (Ollama) 400, cpp-httplib (llama.cpp) 400 or 500.
 */
export async function findApi(options: UpstreamOptions, open: OpenTransport): Promise<SourceApi> {
  const [url = ""] = options.urls;
  if (await isOllama(url, options, open)) return "ollama";
  const target = new UpstreamTarget(url, options, open);
  try {
    for (const api of postedApis) {
      const status = await statusOf(target, api, options);
      // A server that does not answer at one path does not answer at the others.
      if (status === null) return "chat";
      if (api === "chat" ? !absent.has(status) : takesPosts(status)) return api;
    }
    return "chat";
  } finally {
    await target.transport.destroy();
  }
}

const postedApis = sourceApis.filter((api) => api !== "ollama");

/**
 * Whether a server is Ollama: it says so at `/`, or it has no page there (behind a proxy), and a version and a list of models at Ollama's
 * paths. Other servers with some of Ollama's paths have a page of their own. Source: ollama 0.33.0 server/routes.go, `GenerateRoutes`.
 */
async function isOllama(url: string, options: UpstreamOptions, open: OpenTransport): Promise<boolean> {
  const target = new UpstreamTarget(ollamaRoot(url), options, open);
  /** The answer to a GET; `text`: "" of a long one. */
  const ask = async (path: string): Promise<{ readonly status?: number; readonly text: string }> => {
    try {
      const { statusCode: status, body } = await target.transport.request({
        method: "GET",
        path: target.path(path),
        // Another Truewire says that it is Ollama only to clients that take anything.
        headers: { accept: "text/plain, application/json", ...headersFor("ollama", options) },
        signal: AbortSignal.timeout(timeoutMs),
      });
      const text = await readBody(body, maxLength, () => new Error("too long")).catch(() => "");
      return { status, text };
    } catch {
      return { text: "" };
    }
  };
  try {
    const page = await ask("/");
    if (page.status === 200) return page.text.trim() === "Ollama is running";
    if (page.status !== 404 && page.status !== 403) return false;
    const { text } = await ask("/api/version");
    return /^\s*\{\s*"version"\s*:\s*"[^"]*"\s*\}\s*$/.test(text) && (await ask("/api/tags")).status === 200;
  } finally {
    await target.transport.destroy();
  }
}

/** The URL of an Ollama without `/v1` or `/api`: its OpenAI endpoint and its own API are below the same URL. */
export function ollamaRoot(url: string): string {
  const root = new URL(url);
  root.pathname = root.pathname.replace(/\/(v1|api)\/*$/, "");
  return root.href;
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
async function statusOf(target: UpstreamTarget, api: SourceApi, options: UpstreamOptions): Promise<number | null> {
  const { path } = sourcePorts[api];
  try {
    const { statusCode, body } = await target.transport.request({
      method: "POST",
      path: target.path(path),
      headers: { "content-type": "application/json", ...headersFor(api, options) },
      body: "",
      signal: AbortSignal.timeout(timeoutMs),
    });
    await body.dump();
    return statusCode;
  } catch {
    return null;
  }
}

function headersFor(api: SourceApi, { key, headers: own = {} }: UpstreamOptions): Record<string, string> {
  const lowerCased = Object.entries(own).map(([name, value]) => [name.toLowerCase(), value]);
  return { "user-agent": "truewire", ...sourcePorts[api].headers(key), ...Object.fromEntries(lowerCased) };
}
