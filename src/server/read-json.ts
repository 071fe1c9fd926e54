import { FailureError, invalidRequest } from "../generation/failure.ts";
import { malformedJson } from "../wire/failures.ts";
import type { Exchange } from "./exchange.ts";
import { readAll } from "./read-all.ts";

/**
 * The JSON value in a request's body. Accepts `application/json` (and `…+json`), any charset that the platform knows, and bodies packed
 * with gzip or deflate; no content type at all counts as JSON. `limit` bounds the bytes before and after unpacking.
 * Throws `FailureError`: 400 malformed, 413 too large, 415 another type, charset or packing.
 */
export async function readJson(exchange: Exchange, limit: number): Promise<unknown> {
  const decoder = decoderFor(exchange.header("content-type"));
  if (exchange.parsedBody !== undefined) return exchange.parsedBody;
  const bytes = await unpacked(await exchange.readBody(limit), exchange.header("content-encoding"), limit);
  try {
    return JSON.parse(decoder.decode(bytes)) as unknown;
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
