import { download } from "./download.ts";
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
    const { maxBytes = defaultMaxBytes } = options;
    const { bytes } = await download(String(url), { ...options, maxBytes, accept: "image/*" });
    const mediaType = commonImageType(bytes);
    if (mediaType === undefined) throw new Error("it is no PNG, JPEG, GIF or WebP");
    return { bytes, mediaType };
  } catch (cause) {
    options.signal?.throwIfAborted();
    throw refusal(String(url), cause);
  }
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
