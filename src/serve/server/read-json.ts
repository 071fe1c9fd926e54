import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import { findJsonMistake, type JsonMistake } from "../../wire/core/json-mistake.ts";
import type { Steps } from "../../wire/core/steps.ts";
import { malformedJson, ownMalformedJson } from "../../wire/apis/failures.ts";
import type { Profile } from "../../wire/apis/profile.ts";
import { exact } from "../../wire/apis/profile.ts";
import { BodyCounter, bodyLimits } from "../../wire/apis/body-counter.ts";
import { IncrementalJson } from "./incremental-json.ts";
import { joined } from "./body-budget.ts";
import { codingsIn, decoded } from "./content-encoding.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { inTurns } from "./turns.ts";

/**
 * Reads the JSON body of a request. Accepts `application/json` (and `…+json`), any charset that the platform supports, and the codings
 * zstd, br, gzip and deflate; a missing content type counts as JSON. `bodyLimit` limits the bytes before and after decompression, and the budget of
 * the service those of all requests: the reply holds its lease until it is answered.
 * `ifEmpty`: the value of an empty body. Rejects with `FailureError`: 400 malformed, or beyond `bodyLimits`; 408 too slow while other bodies
 * wait; 413 too large; 415 for another type, charset or encoding; 503 budget used up.
 */
export async function readJsonBody(reply: Reply, { settings, bodies }: Service, ifEmpty?: unknown): Promise<unknown> {
  const { exchange } = reply;
  const { missingBody } = reply.conventions;
  const decoder = missingBody === undefined ? decoderFor(exchange.header("content-type")) : utf8;
  const { parsedBody, parsedBytes } = exchange;
  if (parsedBody !== undefined) {
    if (parsedBytes) reply.record.watchers.inspection?.body(parsedBytes);
    return parsedBody;
  }
  const { bytes, isPlain } = await receiveBytes(reply, { settings, bodies });
  if (bytes.length === 0 && ifEmpty !== undefined) return ifEmpty;
  if (bytes.length === 0 && missingBody !== undefined) throw invalidRequest(missingBody);
  if (isPlain) reply.record.watchers.inspection?.body(bytes);
  return parsed(bytes, decoder, reply.profile);
}

/** Receives the body of a request, and decompresses it. `isPlain`: it was not compressed. Rejects as `readJsonBody` does. */
export async function receiveBytes(
  reply: Reply,
  { settings: { bodyLimit }, bodies }: Pick<Service, "settings" | "bodies">,
): Promise<{ readonly bytes: Uint8Array; readonly isPlain: boolean }> {
  const lease = reply.held.body ?? bodies.lease();
  reply.hold({ body: lease });
  const bytes = await reply.exchange.readBody(bodyLimit, lease);
  const codings = codingsIn(reply.exchange.header("content-encoding"));
  const isPlain = codings.length === 0 || bytes.length === 0;
  return { bytes: isPlain ? bytes : await decoded(bytes, codings, bodyLimit, lease), isPlain };
}

/** Parses a message of a WebSocket, which is UTF-8. Rejects with `FailureError`, as `readJsonBody` does. */
export async function readJsonMessage(bytes: Uint8Array): Promise<unknown> {
  return parsed(bytes, utf8, exact);
}

/** A body up to this size is parsed in one step, which takes a few milliseconds. In bytes. */
const maxUnchunked = 256 * 1024;
/** The bytes of one step, which takes less than a millisecond. */
const stepSize = 64 * 1024;

/**
 * Parses a body; a long one in steps, for which it returns a promise. Rejects if `BodyCounter` refuses it, or it is not JSON: in the vendor's
 * words, or with the place of the mistake.
 */
function parsed(bytes: Uint8Array, decoder: Decoder, profile: Profile): unknown {
  const explain = (error: unknown): Promise<never> => explained(error, bytes, decoder, profile);
  if (bytes.length > maxUnchunked) return inTurns(readInSteps(bytes, decoder)).catch(explain);
  try {
    return readAtOnce(bytes, decoder);
  } catch (error) {
    return explain(error);
  }
}

/** Rejects with an error of `parsed`. */
async function explained(error: unknown, bytes: Uint8Array, decoder: Decoder, profile: Profile): Promise<never> {
  if (!(error instanceof FailureError) || error.message !== malformed) throw error;
  const mistake = await inTurns(findMistake(bytes, decoder));
  if (profile.judgesAsVendor) throw malformedJson(mistake);
  throw ownMalformedJson(mistake?.text ?? `expected text in ${decoder.encoding.toUpperCase()}`);
}

const malformed = malformedJson().message;

/** Returns `undefined` for bytes that are no text in the charset. */
function* findMistake(bytes: Uint8Array, decoder: Decoder): Steps<JsonMistake | undefined> {
  try {
    return yield* findJsonMistake(decoder === utf8 ? withoutMark(bytes) : yield* transcoded(bytes, decoder));
  } catch {
    return undefined;
  }
}

function readAtOnce(bytes: Uint8Array, decoder: Decoder): unknown {
  const text = textOf(bytes, decoder);
  // The limit of the depth is the lowest one, so a shorter body cannot exceed any. The counter reads UTF-8.
  if (bytes.length > bodyLimits.depth) new BodyCounter().add(decoder === utf8 ? bytes : new TextEncoder().encode(text));
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw malformedJson();
  }
}

function* readInSteps(bytes: Uint8Array, decoder: Decoder): Steps<unknown> {
  const text = decoder === utf8 ? withoutMark(bytes) : yield* transcoded(bytes, decoder);
  const counter = new BodyCounter();
  for (let at = 0; at < text.length; at += stepSize) {
    counter.add(text.subarray(at, at + stepSize));
    yield;
  }
  return yield* new IncrementalJson(text, stepSize).read();
}

/** Removes the byte order mark of UTF-8, as a decoder does. */
function withoutMark(bytes: Uint8Array): Uint8Array {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

/** Converts a text of another charset to UTF-8. */
function* transcoded(bytes: Uint8Array, decoder: Decoder): Steps<Uint8Array> {
  const encoder = new TextEncoder();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (let at = 0; at < bytes.length; at += stepSize) {
    const stream = at + stepSize < bytes.length;
    const chunk = encoder.encode(textOf(bytes.subarray(at, at + stepSize), decoder, stream));
    chunks.push(chunk);
    size += chunk.length;
    yield;
  }
  return yield* joined(chunks, size);
}

function textOf(bytes: Uint8Array, decoder: Decoder, stream = false): string {
  try {
    return decoder.decode(bytes, { stream });
  } catch {
    throw malformedJson();
  }
}

type Decoder = InstanceType<typeof TextDecoder>;

/** Has no state between complete bodies, so one decoder is shared. */
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

/** The failure for a content type other than `accepted`, in OpenAI's words. */
export function unsupportedType(contentType: string, cause?: unknown, accepted = "application/json"): FailureError {
  const [type = ""] = contentType.split(";");
  return unsupported(
    `Unsupported content type: '${type.trim()}'. This API method only accepts '${accepted}' requests, but you specified the ` +
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
