import { FailureError, invalidRequest } from "../generation/failure.ts";
import { malformedJson } from "../wire/failures.ts";
import { BodyCounter, bodyLimits } from "./body-counter.ts";
import type { Exchange } from "./exchange.ts";
import { readAll } from "./read-all.ts";

/**
 * The JSON value in a request's body. Accepts `application/json` (and `…+json`), any charset that the platform knows, and bodies packed
 * with gzip or deflate; no content type at all counts as JSON. `limit` bounds the bytes before and after unpacking.
 * Throws `FailureError`: 400 malformed, or more of something than `bodyLimits` allows; 413 too large, 415 another type, charset or packing.
 */
export async function readJson(exchange: Exchange, limit: number): Promise<unknown> {
  const decoder = decoderFor(exchange.header("content-type"));
  if (exchange.parsedBody !== undefined) return exchange.parsedBody;
  const bytes = await unpacked(await exchange.readBody(limit), exchange.header("content-encoding"), limit);
  const text = await decoded(bytes, decoder);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw malformedJson();
  }
}

/** So many bytes are counted and decoded at once; then others have their turn. Takes about a millisecond. */
const sliceSize = 512 * 1024;

/** The text of a body that `BodyCounter` does not object to. */
async function decoded(bytes: Uint8Array, decoder: Decoder): Promise<string> {
  const counter = new BodyCounter();
  if (decoder !== utf8 || bytes.length <= sliceSize) {
    const text = decodedAtOnce(bytes, decoder);
    // No limit is lower than that of the depth, so a shorter body cannot be over any.
    if (bytes.length <= bodyLimits.depth) return text;
    // The counter knows the bytes of UTF-8; in other charsets they may mean something else.
    counter.add(decoder === utf8 ? bytes : new TextEncoder().encode(text));
    return text;
  }
  const pieces: string[] = [];
  const inPieces = new TextDecoder("utf-8", { fatal: true });
  for (let at = 0; at < bytes.length; at += sliceSize) {
    const slice = bytes.subarray(at, at + sliceSize);
    counter.add(slice);
    pieces.push(decodedAtOnce(slice, inPieces, at + sliceSize < bytes.length));
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  return pieces.join("");
}

function decodedAtOnce(bytes: Uint8Array, decoder: Decoder, stream = false): string {
  try {
    return decoder.decode(bytes, { stream });
  } catch {
    throw malformedJson();
  }
}

type Decoder = InstanceType<typeof TextDecoder>;

/** Keeps nothing between whole bodies, so one serves all. */
const utf8: Decoder = new TextDecoder("utf-8", { fatal: true });

function decoderFor(contentType: string | undefined): Decoder {
  if (contentType === undefined || contentType === "" || contentType === "application/json") return utf8;
  const [type = "", ...parameters] = contentType.split(";").map((part) => part.trim());
  if (!/^application\/(?:[\w.+-]+\+)?json$/i.test(type)) throw unsupportedType(contentType);
  const charset = parameters.find((parameter) => /^charset=/i.test(parameter))?.slice("charset=".length);
  try {
    return new TextDecoder(charset?.replaceAll('"', "") ?? "utf-8", { fatal: true });
  } catch (cause) {
    throw unsupportedType(contentType, cause);
  }
}

async function unpacked(bytes: Uint8Array, encoding: string | undefined, limit: number): Promise<Uint8Array> {
  const name = encoding?.trim().toLowerCase() ?? "";
  if (name === "" || name === "identity") return bytes;
  const format = ({ gzip: "gzip", "x-gzip": "gzip", deflate: "deflate" } as const)[name];
  if (!format) {
    throw unsupported(
      `Unsupported content encoding: '${name}'. Send the body as it is, or packed with gzip or deflate.`,
    );
  }
  const stream = new Response(bytes.slice()).body?.pipeThrough(new DecompressionStream(format));
  if (!stream) return bytes;
  return readAll(stream, limit, (cause) => {
    const { failure } = invalidRequest(`The request body is not valid ${format} data.`);
    return new FailureError({ ...failure, cause });
  });
}

/** OpenAI's words for a body that is not declared as JSON. */
function unsupportedType(contentType: string, cause?: unknown): FailureError {
  const [type = ""] = contentType.split(";");
  return unsupported(
    `Unsupported content type: '${type.trim()}'. This API method only accepts 'application/json' requests, but you specified the ` +
      `header 'Content-Type: ${contentType}'. Please try again with a supported content type.`,
    cause,
  );
}

function unsupported(message: string, cause?: unknown): FailureError {
  return new FailureError({
    message,
    status: 415,
    kind: "invalid-request",
    param: null,
    code: "unsupported_content_type",
    ...(cause !== undefined && { cause }),
  });
}
