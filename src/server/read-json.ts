import { FailureError, invalidRequest } from "../core/failure.ts";
import { malformedJson } from "../apis/failures.ts";
import { BodyCounter, bodyLimits } from "../apis/body-counter.ts";
import type { BodyLease } from "./body-budget.ts";
import { PiecewiseJson } from "./piecewise-json.ts";
import { joined, readAll } from "./body-budget.ts";
import type { ReceivedJson } from "./request-record.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { inTurns } from "./turns.ts";

/**
 * The JSON value in a request's body. Accepts `application/json` (and `…+json`), any charset that the platform knows, and bodies packed
 * with gzip or deflate; no content type at all counts as JSON. `bodyLimit` bounds the bytes before and after unpacking, and the service's
 * budget those of all requests: the reply holds its part until it is answered.
 * Throws `FailureError`: 400 malformed, or more of something than `bodyLimits` allows; 408 too slow while others wait, 413 too large, 415
 * another type, charset or packing, 503 budget used up.
 */
export async function readJson(reply: Reply, { settings, bodies }: Service): Promise<ReceivedJson> {
  const { exchange } = reply;
  const { bodyLimit } = settings;
  const decoder = decoderFor(exchange.header("content-type"));
  if (exchange.parsedBody !== undefined) return { value: exchange.parsedBody, bytes: undefined };
  const lease = (reply.bodyLease ??= bodies.lease());
  const received = await exchange.readBody(bodyLimit, lease);
  const encoding = exchange.header("content-encoding")?.trim().toLowerCase() ?? "";
  const isPlain = encoding === "" || encoding === "identity";
  if (isPlain) reply.record.inspection?.body(received);
  const bytes = isPlain ? received : await decompressed(received, encoding, bodyLimit, lease);
  return { value: await parsed(bytes, decoder), bytes: bytes.length };
}

/** A body of so many bytes is read at once, which takes a few milliseconds. A larger one is read in turns with others. */
const atOnce = 256 * 1024;
/** So many bytes are one step of it: less than a millisecond. */
const stepSize = 64 * 1024;

/** The value in a body that `BodyCounter` does not object to. */
async function parsed(bytes: Uint8Array, decoder: Decoder): Promise<unknown> {
  if (bytes.length > atOnce) return inTurns(readInSteps(bytes, decoder));
  const text = decoded(bytes, decoder);
  // No limit is lower than that of the depth, so a shorter body cannot be over any. The counter knows the bytes of UTF-8; in other
  // charsets they may mean something else.
  if (bytes.length > bodyLimits.depth) new BodyCounter().add(decoder === utf8 ? bytes : new TextEncoder().encode(text));
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw malformedJson();
  }
}

function* readInSteps(bytes: Uint8Array, decoder: Decoder): Generator<undefined, unknown, undefined> {
  const text = decoder === utf8 ? withoutMark(bytes) : yield* transcoded(bytes, decoder);
  const counter = new BodyCounter();
  for (let at = 0; at < text.length; at += stepSize) {
    counter.add(text.subarray(at, at + stepSize));
    yield;
  }
  return yield* new PiecewiseJson(text, stepSize).read();
}

/** Without the byte order mark of UTF-8, which any other decoder drops, too. */
function withoutMark(bytes: Uint8Array): Uint8Array {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

/** A text of another charset as UTF-8. */
function* transcoded(bytes: Uint8Array, decoder: Decoder): Generator<undefined, Uint8Array, undefined> {
  const encoder = new TextEncoder();
  const pieces: Uint8Array[] = [];
  let size = 0;
  for (let at = 0; at < bytes.length; at += stepSize) {
    const stream = at + stepSize < bytes.length;
    const piece = encoder.encode(decoded(bytes.subarray(at, at + stepSize), decoder, stream));
    pieces.push(piece);
    size += piece.length;
    yield;
  }
  return joined(pieces, size);
}

function decoded(bytes: Uint8Array, decoder: Decoder, stream = false): string {
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
    const decoder = new TextDecoder(charset?.replaceAll('"', "") ?? "utf-8", { fatal: true });
    return decoder.encoding === "utf-8" ? utf8 : decoder;
  } catch (cause) {
    throw unsupportedType(contentType, cause);
  }
}

async function decompressed(bytes: Uint8Array, encoding: string, limit: number, lease: BodyLease): Promise<Uint8Array> {
  const format = ({ gzip: "gzip", "x-gzip": "gzip", deflate: "deflate" } as const)[encoding];
  if (!format) {
    throw unsupported(
      `Unsupported content encoding: '${encoding}'. Send the body as it is, or packed with gzip or deflate.`,
    );
  }
  const stream = new Response(bytes.slice()).body?.pipeThrough(new DecompressionStream(format));
  if (!stream) return bytes;
  return readAll(stream, limit, lease, (cause) => {
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
