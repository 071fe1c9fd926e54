import type { Platform, SourceApi } from "../../wire/apis/source-port.ts";
import { isObject, type JsonObject } from "../../wire/core/json.ts";
import { sourcePortOf } from "../../wire/apis/ports.ts";
import type { UpstreamOptions } from "./options.ts";
import { UpstreamTarget } from "./targets.ts";
import { type OpenTransport, readBody } from "./transport.ts";

/** A server lists its models immediately. */
const timeoutMs = 3000;
/** The answers that are read are shorter. */
const maxLength = 4096;
const maxListLength = 4 * 1024 * 1024;

/**
 * Detects the API of a server whose configuration does not name it: Messages by the form of its list of models, Ollama's own by what Ollama
 * says it is, else chat; chat, too, if the server does not answer within 3 seconds. A server that speaks Responses alone lists its models as
 * one of chat: the first conversation shows it (`UnnamedApiEngine`).
 *
 * Sends only GET requests of these APIs' clients. A POST would show more, but a whole one makes a server generate, and servers that were
 * written for tests crash at one without a body.
 */
export async function findApi(options: UpstreamOptions, open: OpenTransport): Promise<SourceApi> {
  const [url = ""] = options.urls;
  const target = new UpstreamTarget(url, options, open);
  const list = (api: SourceApi): Promise<Answer | null> =>
    answerTo(target, "/models", headersFor(api, options), maxListLength);
  try {
    const answer = await list("chat");
    // A server that does not answer at one path does not answer at the others.
    if (answer === null) return "chat";
    const models = listed(answer);
    if (isAnthropics(models)) return "messages";
    if (mayBeOllama(url, models) && (await isOllama(url, options, open))) return "ollama";
    if (answer.status === 200) return "chat";
    // Anthropic's API takes its key in a header of its own.
    const own = await list("messages");
    return own && isAnthropics(listed(own)) ? "messages" : "chat";
  } finally {
    await target.transport.destroy();
  }
}

/** Anthropic's list: each entry says that it is a model. Source: https://platform.claude.com/docs/en/api/models-list. */
function isAnthropics(models: readonly JsonObject[]): boolean {
  return (
    models.length > 0 && models.every(({ type, display_name: shown }) => type === "model" && typeof shown === "string")
  );
}

/** The models of a list in the form of OpenAI or Anthropic; none of anything else. */
function listed({ status, text }: Answer): readonly JsonObject[] {
  const value = status === 200 ? parsed(text) : undefined;
  return isObject(value) && Array.isArray(value["data"]) ? value["data"].filter(isObject) : [];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Whether a server may be Ollama: the names of its models have tags (`qwen3:4b`), and at a URL without `/v1` it has no list of this form.
 * Source: ollama 0.33.0, openai/openai.go, `ToListCompletion`.
 */
function mayBeOllama(url: string, models: readonly JsonObject[]): boolean {
  return new URL(url).port === "11434" || models.every(({ id }) => typeof id === "string" && id.includes(":"));
}

/**
 * Whether a server is Ollama: it says so at `/`, or it has no page there (behind a proxy), and a version and a list of models at Ollama's
 * paths. Other servers with some of Ollama's paths have a page of their own. Source: ollama 0.33.0 server/routes.go, `GenerateRoutes`.
 */
async function isOllama(url: string, options: UpstreamOptions, open: OpenTransport): Promise<boolean> {
  const target = new UpstreamTarget(ollamaRoot(url), options, open);
  // Another Truewire says that it is Ollama only to clients that take anything.
  const headers = { accept: "text/plain, application/json", ...headersFor("ollama", options) };
  const ask = (path: string): Promise<Answer | null> => answerTo(target, path, headers, maxLength);
  try {
    const page = await ask("/");
    if (page === null) return false;
    if (page.status === 200) return page.text.trim() === "Ollama is running";
    if (page.status !== 404 && page.status !== 403) return false;
    const version = parsed((await ask("/api/version"))?.text ?? "");
    const isVersion = isObject(version) && typeof version["version"] === "string" && Object.keys(version).length === 1;
    return isVersion && (await ask("/api/tags"))?.status === 200;
  } finally {
    await target.transport.destroy();
  }
}

/**
 * The API of servers whose URLs say it: Gemini's own at Google's host, unless the path is that of its API for OpenAI's clients, and at Vertex AI
 * the models that Google publishes (`…/publishers/google`).
 */
export function apiOfUrls(urls: readonly string[]): SourceApi | undefined {
  const isGemini = (url: string): boolean => {
    const { hostname, pathname } = new URL(url);
    if (/^(?:[\w-]+-)?aiplatform\.googleapis\.com$/.test(hostname)) return /\/publishers\/google\/?$/.test(pathname);
    return hostname === "generativelanguage.googleapis.com" && !/\/openai(?:\/|$)/.test(pathname);
  };
  return urls.length > 0 && urls.every(isGemini) ? "gemini" : undefined;
}

/** The platform of servers whose URLs say it. */
export function platformOfUrls(urls: readonly string[]): Platform | undefined {
  const platformOf = (url: string): Platform | undefined => {
    const { hostname, pathname } = new URL(url);
    if (/^bedrock-runtime[\w.-]*\.amazonaws\.com(?:\.cn)?$/.test(hostname))
      return /^\/openai(?:\/|$)/.test(pathname) ? undefined : "bedrock";
    if (/^(?:[\w-]+-)?aiplatform\.googleapis\.com$/.test(hostname))
      return /\/publishers\/anthropic\/?$/.test(pathname) ? "vertex" : undefined;
    const isAzure = /\.(?:openai|cognitiveservices)\.azure\.com$|\.services\.ai\.azure\.com$/.test(hostname);
    return isAzure && /^\/openai(?:\/|$)/.test(pathname) ? "azure" : undefined;
  };
  const [first, ...others] = urls.map(platformOf);
  return others.every((other) => other === first) ? first : undefined;
}

/** The URL of a server of Gemini's API with its version, which is `v1beta` if the URL has none. */
export function geminiRoot(url: string): string {
  const root = new URL(url);
  if (root.pathname === "/") root.pathname = "/v1beta";
  return root.href;
}

/** The URL of an Ollama without `/v1` or `/api`: its OpenAI endpoint and its own API are below the same URL. */
export function ollamaRoot(url: string): string {
  const root = new URL(url);
  root.pathname = root.pathname.replace(/\/(v1|api)\/*$/, "");
  return root.href;
}

interface Answer {
  readonly status: number;
  /** "" of one that is too long. */
  readonly text: string;
}

/** The answer to a GET; `null` if the server does not answer. */
async function answerTo(
  target: UpstreamTarget,
  path: string,
  headers: Readonly<Record<string, string>>,
  limit: number,
): Promise<Answer | null> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const { statusCode: status, body } = await target.transport.request({
      method: "GET",
      path: target.path(path),
      headers,
      signal,
    });
    return { status, text: await readBody(body, limit, () => new Error("too long")).catch(() => "") };
  } catch {
    return null;
  }
}

function headersFor(api: SourceApi, { key, platform, headers: own = {} }: UpstreamOptions): Record<string, string> {
  const lowerCased = Object.entries(own).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    "user-agent": "truewire",
    ...sourcePortOf({ api, platform }).headers(key),
    ...Object.fromEntries(lowerCased),
  };
}
