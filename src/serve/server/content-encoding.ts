import { bodyTooLarge, invalidEncoding, unsupportedEncoding } from "../../wire/apis/failures.ts";
import type { FailureError } from "../../wire/core/failure.ts";
import { readAll, type BodyLease } from "./body-budget.ts";
import { maxZstdSize } from "./zstd-size.ts";

/** A chain of more codings is not compression. Each of them may cost as much work as a body of `bodyLimit`. */
const maxCodings = 4;
/** Windows of up to 8 MiB are all that a sender may use. In bits. Source: RFC 9659, section 3. */
const zstdWindowLog = 23;
/** The memory of WebAssembly ends at 2 GiB, and does not shrink. In bytes. */
const maxAtOnce = 512 * 1024 * 1024;

/** The codings of a body as its header `content-encoding` names them, in the order in which they were applied; none for a plain body. */
export function codingsIn(header: string | undefined): readonly string[] {
  const names = header === undefined ? [] : header.split(",").map((name) => name.trim().toLowerCase());
  return names.filter((name) => name !== "" && name !== "identity");
}

/**
 * Decodes a body. `limit` bounds the bytes of each step, and `lease` counts them while they are inflated. Rejects with `FailureError`: 400
 * for data that is not in its coding, 413 beyond `limit`, 415 for a coding that is not supported, and as `readAll` does.
 */
export async function decoded(
  bytes: Uint8Array,
  codings: readonly string[],
  limit: number,
  lease: BodyLease,
): Promise<Uint8Array> {
  if (codings.length > maxCodings) throw unsupportedEncoding(codings.join(", "));
  let plain = bytes;
  for (const coding of codings.toReversed()) plain = await decodedOnce(plain, coding, limit, lease);
  return plain;
}

async function decodedOnce(bytes: Uint8Array, coding: string, limit: number, lease: BodyLease): Promise<Uint8Array> {
  const failed = (cause: unknown): FailureError => invalidEncoding(coding, cause);
  // Node's decoder takes a text that is cut for a whole one.
  const zstdSize = coding === "zstd" ? maxZstdSize(bytes, 2 ** zstdWindowLog) : 0;
  if (zstdSize === null) throw failed(undefined);
  const stream = inflating(bytes, coding);
  if (stream) return readAll(stream, limit, lease, failed);
  if (coding !== "zstd") throw unsupportedEncoding(coding);
  return inflatedZstd(bytes, zstdSize, limit, lease);
}

/** Returns null if this runtime has no decoder for the coding. */
function inflating(bytes: Uint8Array, coding: string): ReadableStream<Uint8Array> | null {
  switch (coding) {
    case "gzip":
    case "x-gzip":
      return piped(bytes, "gzip");
    case "deflate":
      // Some clients leave out the header of zlib, as some servers do.
      return piped(bytes, hasZlibHeader(bytes) ? "deflate" : "deflate-raw");
    case "br":
    case "zstd":
      return coding === "br" ? fromNode(bytes, "createBrotliDecompress") : fromNode(bytes, "createZstdDecompress");
    default:
      return null;
  }
}

function piped(bytes: Uint8Array, format: "gzip" | "deflate" | "deflate-raw"): ReadableStream<Uint8Array> | null {
  return new Response(bytes.slice()).body?.pipeThrough(new DecompressionStream(format)) ?? null;
}

/** Source: RFC 1950, section 2.2. */
function hasZlibHeader([cmf = 0, flags = 0]: Uint8Array): boolean {
  return (cmf & 0x0f) === 8 && (cmf * 256 + flags) % 31 === 0;
}

/** What is used of `node:zlib`, where the runtime has it. Zstandard since Node 22.15. */
interface Zlib {
  readonly constants: Readonly<Record<string, number>>;
  readonly createBrotliDecompress?: (options: object) => Inflater;
  readonly createZstdDecompress?: (options: object) => Inflater;
}

interface Inflater extends AsyncIterable<Uint8Array> {
  end(bytes: Uint8Array): void;
}

function fromNode(
  bytes: Uint8Array,
  name: "createBrotliDecompress" | "createZstdDecompress",
): ReadableStream<Uint8Array> | null {
  const zlib = globalThis.process?.getBuiltinModule?.("node:zlib") as Zlib | undefined;
  const open = zlib?.[name];
  if (!zlib || !open) return null;
  const { ZSTD_d_windowLogMax: windowLogMax } = zlib.constants;
  const isZstd = name === "createZstdDecompress" && windowLogMax !== undefined;
  const inflater = open({ chunkSize: 64 * 1024, ...(isZstd && { params: { [windowLogMax]: zstdWindowLog } }) });
  inflater.end(bytes);
  return ReadableStream.from(inflater);
}

/**
 * Without a decoder of the runtime: inflates synchronously, into memory whose size is known before. `size`: what the text inflates to at
 * most, in bytes.
 */
async function inflatedZstd(bytes: Uint8Array, size: number, limit: number, lease: BodyLease): Promise<Uint8Array> {
  const capacity = Math.min(size, limit + 1);
  if (capacity > maxAtOnce) throw bodyTooLarge(maxAtOnce);
  const wait = lease.arrived(capacity);
  if (wait) await wait;
  // Imported when it is needed, so that the server starts fast.
  const { ZSTDDecoder } = await import("zstddec");
  const decoder = new ZSTDDecoder();
  await decoder.init();
  // Empty for data that is damaged, and for data that does not fit.
  const plain = capacity === 0 ? new Uint8Array() : decoder.decode(bytes, capacity);
  if (plain.length > limit || (plain.length === 0 && size > limit)) throw bodyTooLarge(limit);
  if (plain.length === 0 && size > 0) throw invalidEncoding("zstd", undefined);
  lease.complete(plain.length);
  return plain;
}
