import type { LookupFunction } from "node:net";
import type { Dispatcher } from "undici";
import { imageTypeOf } from "./conversions/image-parts.ts";
import type { ImageBytes } from "./conversions/image-parts.ts";
import { invalidRequest } from "./generation/failure.ts";
import type { FailureError } from "./generation/failure.ts";

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

/** Addresses that are not the public internet. Source: IANA's registries of special-purpose addresses, and multicast. */
const privateNetworks: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];
/** Only 2000::/3 is given out as public; of it, these lead elsewhere: Teredo and documentation, 6to4, documentation. */
const publicNetwork = ["2000::", 3] as const;
const otherNetworks: readonly (readonly [string, number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

/**
 * Fetches an image, guarded for URLs that come from strangers: http and https only, a limit on size and time, no private address (checked
 * on the very address that is connected to, on every redirect), no credentials in the URL, and only what its first bytes show to be
 * PNG, JPEG, GIF or WebP. Rejects with `FailureError` (400, `invalid_image_url`). Node only. Requirement C7.
 *
 * @example
 * import { downloadImage } from "truewire";
 *
 * await downloadImage("http://127.0.0.1:9/secret.png").catch((error) => console.log(error.message));
 * // → The image http://127.0.0.1:9/secret.png cannot be fetched: 127.0.0.1 is not a public address.
 */
export async function downloadImage(url: string | URL, options: DownloadImageOptions = {}): Promise<ImageBytes> {
  const { maxBytes = defaultMaxBytes, timeoutMs = 10_000, allowPrivateAddresses = false } = options;
  const limit = AbortSignal.timeout(timeoutMs);
  const signal = options.signal ? AbortSignal.any([options.signal, limit]) : limit;
  const { Agent, request } = await import("undici");
  const isPublic = allowPrivateAddresses ? () => true : await publicAddresses();
  const lookup = allowPrivateAddresses ? undefined : await guardedLookup(isPublic);
  const agent = new Agent({ connect: { timeout: timeoutMs, ...(lookup && { lookup }) } });
  try {
    const get = (from: URL): Promise<Dispatcher.ResponseData> =>
      request(from, { dispatcher: agent, signal, headers: { accept: "image/*", "accept-encoding": "identity" } });
    const { body } = await followed(checkedUrl(String(url), undefined, isPublic), get, isPublic);
    const bytes = await readImage(body, maxBytes);
    const mediaType = imageTypeOf(bytes);
    if (mediaType === undefined) throw new Error("it is no PNG, JPEG, GIF or WebP");
    return { bytes, mediaType };
  } catch (cause) {
    options.signal?.throwIfAborted();
    throw refusal(String(url), limit.aborted ? new Error(`it took longer than ${timeoutMs} ms`, { cause }) : cause);
  } finally {
    await agent.destroy();
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

async function readImage(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body) {
    size += piece.length;
    if (size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
    pieces.push(piece);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

async function publicAddresses(): Promise<(address: string) => boolean> {
  const { BlockList, isIPv6 } = await import("node:net");
  const blocked = new BlockList();
  for (const [network, bits] of privateNetworks) blocked.addSubnet(network, bits, "ipv4");
  for (const [network, bits] of otherNetworks) blocked.addSubnet(network, bits, "ipv6");
  const given = new BlockList();
  given.addSubnet(...publicNetwork, "ipv6");
  return (address) => {
    if (!isIPv6(address)) return !blocked.check(address, "ipv4");
    return given.check(address, "ipv6") && !blocked.check(address, "ipv6");
  };
}

/** Looks names up as Node does, and fails where any address is private: between a check and the connection nothing can change. */
async function guardedLookup(isPublic: (address: string) => boolean): Promise<LookupFunction> {
  const { lookup } = await import("node:dns");
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, []);
      const hidden = addresses.find(({ address }) => !isPublic(address));
      const [first] = addresses;
      if (hidden || !first) return callback(new Error(`${hostname} is not a public address`), []);
      if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
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
