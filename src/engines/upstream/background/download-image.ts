import type { Dispatcher } from "undici";
import { openDownloads } from "./guarded-downloads.ts";
import { commonImageType } from "../../../wire/apis/adapt/fit-media.ts";
import type { ImageBytes } from "../../../wire/apis/adapt/fit-media.ts";
import { invalidRequest } from "../../../wire/core/failure.ts";
import type { FailureError } from "../../../wire/core/failure.ts";

export interface DownloadImageOptions {
  /** The largest image, in bytes; default 20 MiB. */
  readonly maxBytes?: number;
  /** For everything, redirects included, in milliseconds; default 10,000. */
  readonly timeoutMs?: number;
  /** Let URLs lead to this machine and to private networks; default false. */
  readonly allowPrivateAddresses?: boolean;
  readonly signal?: AbortSignal;
}

const defaultMaxBytes = 20 * 1024 * 1024;
const maxRedirects = 3;

/**
 * Fetches an image, guarded for URLs that come from strangers: http and https only, a limit on size and time, no private address (checked
 * on the very address that is connected to, on every redirect), no credentials in the URL, and only what its first bytes show to be
 * PNG, JPEG, GIF or WebP. Rejects with `FailureError` (400, `invalid_image_url`). Node only.
 *
 * @example
 * import { downloadImage } from "truewire/server";
 *
 * await downloadImage("http://127.0.0.1:9/secret.png").catch((error) => console.log(error.message));
 * // → The image http://127.0.0.1:9/secret.png cannot be fetched: 127.0.0.1 is not a public address.
 */
export async function downloadImage(url: string | URL, options: DownloadImageOptions = {}): Promise<ImageBytes> {
  try {
    const bytes = await downloadBytes(String(url), { ...options, accept: "image/*" });
    const mediaType = commonImageType(bytes);
    if (mediaType === undefined) throw new Error("it is no PNG, JPEG, GIF or WebP");
    return { bytes, mediaType };
  } catch (cause) {
    options.signal?.throwIfAborted();
    throw refusal(String(url), cause);
  }
}

/** Downloads a file, guarded as `downloadImage` is, of any type. `accept`: the header. Rejects with an Error that has the reason. */
export async function downloadBytes(
  url: string,
  options: DownloadImageOptions & { readonly accept: string },
): Promise<Uint8Array> {
  const { accept, maxBytes = defaultMaxBytes, timeoutMs = 10_000, allowPrivateAddresses = false } = options;
  const limit = AbortSignal.timeout(timeoutMs);
  const signal = options.signal ? AbortSignal.any([options.signal, limit]) : limit;
  const downloads = openDownloads({ timeoutMs, allowPrivateAddresses, accept });
  const { isPublic } = downloads;
  try {
    const get = (from: URL): Promise<Dispatcher.ResponseData> => downloads.get(from, signal);
    const { body } = await followed(checkedUrl(url, undefined, isPublic), get, isPublic);
    return await readBytes(body, maxBytes);
  } catch (cause) {
    throw limit.aborted ? new Error(`it took longer than ${timeoutMs} ms`, { cause }) : cause;
  } finally {
    await downloads.close();
  }
}

/** The first answer that is no redirect. */
async function followed(
  start: URL,
  get: (url: URL) => Promise<Dispatcher.ResponseData>,
  isPublic: (address: string) => boolean,
): Promise<Dispatcher.ResponseData> {
  let url = start;
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const response = await get(url);
    const { statusCode, headers, body } = response;
    if (statusCode === 200) return response;
    // Nothing of it is read; an error while it is thrown away says nothing.
    body.on("error", () => {}).destroy();
    const { location } = headers;
    if (statusCode < 300 || statusCode > 399 || typeof location !== "string") {
      throw new Error(`the server answered with status ${statusCode}`);
    }
    url = checkedUrl(location, url.href, isPublic);
  }
  throw new Error(`it is redirected more than ${maxRedirects} times`);
}

function checkedUrl(text: string, base: string | undefined, isPublic: (address: string) => boolean): URL {
  if (!URL.canParse(text, base)) throw new Error("that is no URL");
  const url = new URL(text, base);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new Error(`${url.protocol} is neither http: nor https:`);
  if (url.username !== "" || url.password !== "") throw new Error("its URL holds credentials");
  // A host that is an address is never looked up, so it is judged here. The URL parser has brought it into its one form.
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if ((/^[\d.]+$/.test(host) || host.includes(":")) && !isPublic(host)) {
    throw new Error(`${host} is not a public address`);
  }
  return url;
}

async function readBytes(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

function refusal(url: string, cause: unknown): FailureError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const failure = invalidRequest(`The image ${shown(url)} cannot be fetched: ${reason}.`, null, "invalid_image_url");
  failure.cause = cause;
  return failure;
}

/** Without credentials, and without the query, which may be a signature. */
function shown(url: string): string {
  if (!URL.canParse(url)) return url.slice(0, 100);
  const { protocol, host, pathname } = new URL(url);
  return host === "" ? protocol : `${protocol}//${host}${pathname}`;
}
