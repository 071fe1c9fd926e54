import type { Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { Dispatcher } from "undici";
import { DownloadError, type Downloads, openDownloads, type PrivateAddresses } from "./guarded-downloads.ts";

export interface DownloadOptions {
  /** The header. */
  readonly accept: string;
  /** The largest file, in bytes, also after it is decompressed. */
  readonly maxBytes: number;
  /** For everything, redirects included, in milliseconds; default 10,000. */
  readonly timeoutMs?: number;
  /** Default false. */
  readonly allowPrivateAddresses?: PrivateAddresses;
  /** Throws an Error with the reason if an address must not be asked: the first one, and that of each redirect. */
  readonly checkUrl?: (url: URL) => void;
  readonly signal?: AbortSignal;
}

export interface DownloadedFile {
  readonly bytes: Uint8Array;
  /** After redirects. */
  readonly url: string;
  /** The header; "": the server sent none. */
  readonly contentType: string;
}

const maxRedirects = 3;

/**
 * Downloads a file of any type, guarded for URLs that come from strangers: http and https only, a limit on size and time, no private address
 * (checked on the very address that is connected to, on every redirect), no credentials in the URL. Rejects with `DownloadError`, or another
 * Error whose message is the reason. Node only.
 */
export async function download(url: string, options: DownloadOptions): Promise<DownloadedFile> {
  const { accept, maxBytes, timeoutMs = 10_000, allowPrivateAddresses = false } = options;
  const limit = AbortSignal.timeout(timeoutMs);
  const signal = options.signal ? AbortSignal.any([options.signal, limit]) : limit;
  const downloads = openDownloads({ timeoutMs, allowPrivateAddresses, accept });
  try {
    const { response, url: last } = await followed(url, downloads, options, signal);
    const { headers, body } = response;
    const type = [headers["content-type"] ?? ""].flat()[0] ?? "";
    const bytes = await readBytes(decompressed(body, [headers["content-encoding"] ?? ""].flat().join(",")), maxBytes);
    return { bytes, url: last.href, contentType: type };
  } catch (cause) {
    throw limit.aborted ? new DownloadError("timeout", `it took longer than ${timeoutMs} ms`, { cause }) : cause;
  } finally {
    await downloads.close();
  }
}

/** The first answer that is no redirect. */
async function followed(
  start: string,
  { get, mayConnect }: Downloads,
  { checkUrl }: DownloadOptions,
  signal: AbortSignal,
): Promise<{ readonly response: Dispatcher.ResponseData; readonly url: URL }> {
  const checked = (text: string, base?: string): URL => {
    const url = checkedUrl(text, base, mayConnect);
    checkUrl?.(url);
    return url;
  };
  let url = checked(start);
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const response = await get(url, signal);
    const { statusCode, headers, body } = response;
    if (statusCode === 200) return { response, url };
    // Nothing of it is read; an error while it is thrown away says nothing.
    body.on("error", () => {}).destroy();
    const { location } = headers;
    if (statusCode < 300 || statusCode > 399 || typeof location !== "string")
      throw new DownloadError("failed", `the server answered with status ${statusCode}`, { status: statusCode });
    url = checked(location, url.href);
  }
  throw new DownloadError("failed", `it is redirected more than ${maxRedirects} times`);
}

function checkedUrl(text: string, base: string | undefined, mayConnect: (address: string) => boolean): URL {
  if (!URL.canParse(text, base)) throw new DownloadError("refused", "that is no URL");
  const url = new URL(text, base);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new DownloadError("refused", `${url.protocol} is neither http: nor https:`);
  if (url.username !== "" || url.password !== "") throw new DownloadError("refused", "its URL holds credentials");
  // A host that is an address is never looked up, so it is judged here. The URL parser has brought it into its one form.
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if ((/^[\d.]+$/.test(host) || host.includes(":")) && !mayConnect(host))
    throw new DownloadError("refused", `${host} is not a public address`);
  return url;
}

/** The content of a body that is compressed although the request asks for `identity`. */
function decompressed(body: Readable, encoding: string): AsyncIterable<Uint8Array> {
  const name = encoding.trim().toLowerCase();
  if (name === "" || name === "identity") return body;
  const unpack =
    name === "gzip" || name === "x-gzip"
      ? createGunzip()
      : name === "deflate"
        ? createInflate()
        : name === "br"
          ? createBrotliDecompress()
          : undefined;
  if (!unpack) {
    body.on("error", () => {}).destroy();
    throw new DownloadError("failed", `its content-encoding ${name.slice(0, 50)} is not known`);
  }
  body.on("error", (error) => unpack.destroy(error)).pipe(unpack);
  return unpack;
}

async function readBytes(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes) throw new DownloadError("too-large", `it is larger than ${maxBytes} bytes`);
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
