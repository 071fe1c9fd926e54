import type { MultipartParser, MultipartPart } from "@remix-run/multipart-parser";
import { bodyAlreadyRead } from "../../wire/apis/failures.ts";
import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import type { Steps } from "../../wire/core/steps.ts";
import { receiveBytes, unsupportedType } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { inTurns } from "./turns.ts";

/** OpenAI's limit of a request with a file, in bytes (buzz #381). */
const maxFormBytes = 26_214_400;
/** Members of a form; the SDKs send each item of a list as one. */
const maxParts = 2048;
const maxHeaderBytes = 4096;
/** A member that is no file. */
const maxTextBytes = 1024 * 1024;
/** The bytes of one step; divisible by 3, so that the base64 of the steps can be joined. */
const stepBytes = 48 * 1024;

/** A file of a form. */
export interface FormFile {
  readonly name: string;
  /** As the client declares it. */
  readonly type: string | undefined;
  readonly bytes: Uint8Array;
}

/** Reads the body of a request for its files, which may be as large as a body. Texts and failures are those of `readFormBody`. */
export function readUpload(reply: Reply, service: Service): Promise<{ readonly [name: string]: unknown }> {
  return readForm(reply, service, service.settings.bodyLimit, withBytes);
}

/**
 * Reads the body of a request as a form (`multipart/form-data`, RFC 7578): texts by their names, lists of texts where a name ends with `[]`
 * (without it), and files as `{ name, data }` with `data` in base64. Rejects with `FailureError`: 400 malformed, 413 too large, 415 for
 * another type, and as `readJsonBody` does.
 */
export function readFormBody(reply: Reply, service: Service): Promise<{ readonly [name: string]: unknown }> {
  return readForm(reply, service, maxFormBytes, inBase64);
}

async function readForm(
  reply: Reply,
  service: Service,
  maxBytes: number,
  toFile: ToFile,
): Promise<{ readonly [name: string]: unknown }> {
  const contentType = reply.exchange.header("content-type") ?? "";
  if (!/^multipart\/form-data\s*(?:;|$)/i.test(contentType))
    throw unsupportedType(contentType, undefined, "multipart/form-data");
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined || !/^[\x20-\x7e]+$/.test(boundary))
    throw malformed("its header Content-Type has no boundary");
  // A framework has read the body.
  if (reply.exchange.parsedBody !== undefined) throw bodyAlreadyRead();
  const { bytes } = await receiveBytes(reply, service);
  if (bytes.length > maxBytes) throw tooLarge(bytes.length);
  const members = new Map<string, unknown>();
  // Imported when it is needed, so that the server starts fast.
  const { MultipartParser } = await import("@remix-run/multipart-parser");
  const parser = new MultipartParser(boundary, {
    maxHeaderSize: maxHeaderBytes,
    maxFileSize: maxBytes,
    maxParts,
    maxTotalSize: maxBytes,
  });
  await inTurns(readParts(bytes, parser, members, stepBytes, toFile));
  const form = Object.fromEntries(members);
  const shown = Object.fromEntries([...members].map(([name, value]) => [name, withoutData(value)]));
  reply.record.watchers.inspection?.body(new TextEncoder().encode(JSON.stringify(shown)));
  return form;
}

/**
 * Reads the parts of a form into `members`, in steps of `size` bytes. What follows the last boundary is ignored (RFC 2046, section 5.1.1), which
 * the parser does only where it comes together with that boundary. Throws `FailureError` 400 for a malformed form.
 */
export function* readParts(
  bytes: Uint8Array,
  parser: MultipartParser,
  members: Map<string, unknown>,
  size: number = stepBytes,
  toFile: ToFile = inBase64,
): Steps<void> {
  try {
    for (let at = 0; at < bytes.length && !isFinished(parser); at += size) {
      for (const part of parser.write(bytes.subarray(at, at + size))) yield* readPart(part, members, toFile);
      yield;
    }
    parser.finish();
  } catch (cause) {
    if (cause instanceof FailureError) throw cause;
    throw malformed(cause instanceof Error ? cause.message : "it has another form", cause);
  }
}

function isFinished(parser: MultipartParser): boolean {
  try {
    parser.finish();
    return true;
  } catch {
    return false;
  }
}

/** Makes the value of a file's member from its part. */
type ToFile = (part: MultipartPart, name: string) => Steps<object>;

function* withBytes({ bytes, mediaType }: MultipartPart, name: string): Steps<FormFile> {
  yield;
  return { name, type: mediaType, bytes };
}

function* inBase64({ bytes }: MultipartPart, name: string): Steps<object> {
  return { name, data: yield* base64InSteps(bytes) };
}

/** Encodes bytes in base64. */
export function* base64InSteps(bytes: Uint8Array): Steps<string> {
  let data = "";
  for (let at = 0; at < bytes.length; at += stepBytes) {
    data += btoa(latin1(bytes.subarray(at, at + stepBytes)));
    yield;
  }
  return data;
}

function* readPart(part: MultipartPart, members: Map<string, unknown>, toFile: ToFile): Steps<void> {
  const { name, filename } = part;
  if (name === undefined) throw malformed("one of its parts has no name");
  if (filename !== undefined || name === "file") return void members.set(name, yield* toFile(part, filename ?? name));
  if (part.size > maxTextBytes) throw malformed(`'${name}' has more than ${maxTextBytes} bytes`);
  if (!name.endsWith("[]")) return void members.set(name, part.text);
  const list = members.get(name.slice(0, -2));
  if (Array.isArray(list)) list.push(part.text);
  else members.set(name.slice(0, -2), [part.text]);
}

/** Each byte as a character. */
function latin1(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}

/** A file as it is inspected: without its bytes. */
function withoutData(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("bytes" in value) return { ...value, bytes: `${(value.bytes as Uint8Array).length} bytes` };
  return "data" in value ? { ...value, data: `${String(value.data).length} characters of base64` } : value;
}

function malformed(reason: string, cause?: unknown): FailureError {
  const failure = invalidRequest(`The request body is not a valid form (multipart/form-data): ${reason}.`);
  return cause === undefined ? failure : new FailureError({ ...failure.failure, cause });
}

/** OpenAI's message. */
function tooLarge(bytes: number): FailureError {
  return new FailureError({
    kind: "invalid-request",
    message: `Maximum content size limit (${maxFormBytes}) exceeded (${bytes} bytes read)`,
    status: 413,
    param: null,
    code: null,
    sourceType: "server_error",
  });
}
