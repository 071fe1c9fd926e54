import type * as z from "zod";
import { type FailureError, invalidRequest } from "../../core/failure.ts";
import { notFound } from "../failures.ts";
import { randomBase62 } from "../ids.ts";
import { inWireOrder } from "../members.ts";
import { anthropicFileId } from "../messages/ids.ts";
import type { Profile } from "../profile.ts";
import { missingParameter, parameterFailure, unsupportedEnumValue } from "../request/refusals.ts";
import {
  anthropicFile,
  anthropicFileDeletion,
  expiresAfter,
  expiresInSeconds,
  openaiFile,
  openaiFileDeletion,
  uploadPurposes,
} from "./schema.ts";
import type { AnthropicFile, OpenaiFile } from "./schema.ts";
import type { Page, PageCursors } from "./page.ts";

/** What is known of a file, in no API's form. */
export interface FileFacts {
  readonly id: string;
  readonly name: string;
  /** The media type. */
  readonly type: string;
  /** The size in bytes. */
  readonly bytes: number;
  readonly purpose: OpenaiFile["purpose"];
  /** Unix time in seconds. */
  readonly created: number;
  /** Unix time in seconds; absent: as long as the server keeps files. */
  readonly expires?: number | undefined;
}

/** What an upload asks for besides the file. */
export type UploadRequest = Pick<FileFacts, "purpose"> & {
  /** In seconds from the upload; absent: as long as the server keeps files. */
  readonly expiresIn?: number | undefined;
};

/** The form of one API's files. */
export interface FileForm {
  /** Returns an id that cannot be guessed. `random`: uniform in [0, 1). */
  newId(random: () => number): string;
  /** The cursors and limits of the list. */
  readonly cursors: PageCursors;
  /** Reads the members of an upload's form. Throws `FailureError` 400. */
  readUpload(form: Readonly<Record<string, unknown>>): UploadRequest;
  one(file: FileFacts, profile: Profile): string;
  page(page: Page<FileFacts>, profile: Profile): string;
  deletion(id: string, profile: Profile): string;
  /** 404. */
  missing(id: string): FailureError;
}

export const openaiFiles: FileForm = {
  newId: newOpenaiFileId,
  cursors: { standard: 10_000, most: 10_000, after: ["after"] },
  readUpload(form) {
    const { purpose } = form;
    if (purpose === undefined) throw missingParameter("purpose");
    if (!isUploadPurpose(purpose)) throw unsupportedEnumValue("purpose", String(purpose), uploadPurposes);
    const [anchor, seconds] = [form["expires_after[anchor]"], form["expires_after[seconds]"]];
    if (anchor === undefined && seconds === undefined) return { purpose };
    return { purpose, expiresIn: readExpiresAfter("expires_after", { anchor, seconds: numberIn(seconds) }) };
  },
  one: (file, profile) => openaiJson(openaiFile, openaiObject(file), profile),
  page: ({ data, hasMore }, profile) =>
    openaiPage(
      data.map((file) => inWireOrder(openaiFile, openaiObject(file))),
      hasMore,
      profile,
    ),
  deletion: (id, profile) => openaiJson(openaiFileDeletion, { object: "file", deleted: true, id }, profile),
  missing: (id) => notFound(`No such File object: ${shownId(id)}`, "id", null),
};

export const anthropicFiles: FileForm = {
  newId: anthropicFileId,
  // `page` is the cursor of 2026, the others are the older ones.
  cursors: { standard: 20, most: 1000, after: ["page", "after_id"], before: "before_id" },
  readUpload(form) {
    const seconds = form["expires_in_seconds"];
    if (seconds === undefined) return { purpose: "user_data" };
    const read = expiresInSeconds.safeParse(numberIn(seconds));
    if (!read.success) throw parameterFailure("expires_in_seconds", numberIn(seconds), read.error.issues);
    return { purpose: "user_data", expiresIn: read.data };
  },
  one: (file) => JSON.stringify(inWireOrder(anthropicFile, anthropicObject(file))),
  page({ data, hasMore }) {
    const [first, last] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
    // Clients of the first form of the list use the ids as cursors, those of 2026 the next page.
    const cursors = { has_more: hasMore, first_id: first, last_id: last, next_page: hasMore ? last : null };
    return JSON.stringify({ data: data.map((file) => inWireOrder(anthropicFile, anthropicObject(file))), ...cursors });
  },
  deletion: (id) => JSON.stringify(inWireOrder(anthropicFileDeletion, { id, type: "file_deleted" })),
  missing: (id) => notFound(`File not found: ${shownId(id)}`, null, null),
};

/** Returns `file-…`. `random`: uniform in [0, 1). */
export function newOpenaiFileId(random: () => number): string {
  return `file-${randomBase62(22, random)}`;
}

/** Reads when a file expires, in seconds from its creation. `name`: of the parameter. Throws `FailureError` 400. */
export function readExpiresAfter(name: string, value: unknown): number {
  const read = expiresAfter.safeParse(value);
  if (read.success) return read.data.seconds;
  throw parameterFailure(name, value, read.error.issues);
}

/** Writes an object of OpenAI's files or batches. */
export function openaiJson(schema: z.ZodType, value: unknown, profile: Profile): string {
  return printed(inWireOrder(schema, value), profile);
}

/** Writes a page of OpenAI's files or batches, which `data` has in their form. */
export function openaiPage(data: readonly unknown[], hasMore: boolean, profile: Profile): string {
  const idOf = (item: unknown): string | null => (item as { readonly id: string } | undefined)?.id ?? null;
  const ends = { first_id: idOf(data[0]), last_id: idOf(data.at(-1)) };
  return printed({ object: "list", data, ...ends, has_more: hasMore }, profile);
}

/** Quotes an id of a client in an error message. */
export function shownId(id: string): string {
  return id.slice(0, 100);
}

function printed(value: unknown, { name }: Profile): string {
  return JSON.stringify(value, null, name === "exact" ? 2 : 0);
}

function isUploadPurpose(purpose: unknown): purpose is OpenaiFile["purpose"] {
  return (uploadPurposes as readonly unknown[]).includes(purpose);
}

/** A number in a form, which has texts only. */
function numberIn(value: unknown): unknown {
  return typeof value === "string" && value.trim() !== "" && !Number.isNaN(Number(value)) ? Number(value) : value;
}

function openaiObject({ id, purpose, name, bytes, created, expires }: FileFacts): OpenaiFile {
  return {
    object: "file",
    id,
    purpose,
    filename: name,
    bytes,
    created_at: created,
    expires_at: expires ?? null,
    status: "processed",
    status_details: null,
  };
}

function anthropicObject({ id, name, type, bytes, created, expires }: FileFacts): AnthropicFile {
  return {
    type: "file",
    id,
    size_bytes: bytes,
    created_at: isoTime(created),
    filename: name,
    mime_type: type,
    downloadable: true,
    expires_at: expires === undefined ? null : isoTime(expires),
  };
}

/** A time in Unix seconds as RFC 3339. */
export function isoTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
}

/** 400: an upload without a file. */
export function missingFile(): FailureError {
  return invalidRequest(
    "Missing required parameter: 'file', a part of the form with a file name.",
    "file",
    "missing_required_parameter",
  );
}
