import { mediaTypeOf } from "../../../wire/apis/files/media-types.ts";
import { pageOf, readPageQuery } from "../../../wire/apis/files/page.ts";
import { anthropicFiles, missingFile, openaiFiles } from "../../../wire/apis/files/write.ts";
import type { FileFacts, FileForm } from "../../../wire/apis/files/write.ts";
import { bodyTooLarge, notFound } from "../../../wire/apis/failures.ts";
import { messagesPort } from "../../../wire/apis/messages/port.ts";
import { random } from "../../../wire/random/random.ts";
import { storeFailure, storeOwnerOf } from "../client-stores.ts";
import type { FileStore } from "../client-stores.ts";
import { readUpload } from "../read-form.ts";
import type { FormFile } from "../read-form.ts";
import type { EndpointHandler, Reply } from "../reply.ts";
import type { Service } from "../service.ts";
import { ClientFiles, contentBytes } from "./client-files.ts";
import { takeLimits } from "../keys/take-limits.ts";

/** Where the server keeps files. Throws `FailureError` 404 if it keeps none. */
export function requireFiles({ stores: { files } }: Service): FileStore {
  if (files) return files;
  const message = "This server keeps no files and runs no batches. Set files.maxCount in its configuration.";
  throw notFound(message, null, "files_off");
}

/** Calls a handler with the form of the client's API and the client's files. A failure of the store becomes 503. */
function withFiles(
  answer: (call: FilesCall, reply: Reply, service: Service, id: string) => Promise<void>,
): EndpointHandler {
  return async (reply, service, id) => {
    const store = requireFiles(service);
    const form = reply.conventions === messagesPort.errorFormat ? anthropicFiles : openaiFiles;
    try {
      await answer({ form, store, files: new ClientFiles(store, await storeOwnerOf(reply)) }, reply, service, id);
    } catch (error) {
      throw storeFailure(error);
    }
  };
}

interface FilesCall {
  readonly form: FileForm;
  readonly store: FileStore;
  readonly files: ClientFiles;
}

/** `POST /files` */
export const uploadFile: EndpointHandler = withFiles(async ({ form, store, files }, reply, service) => {
  await takeLimits(reply, service);
  const members = await readUpload(reply, service);
  const { file } = members as { readonly file?: FormFile | string };
  if (typeof file !== "object") throw missingFile();
  const { expiresIn, purpose } = form.readUpload(members);
  if (file.bytes.length > store.maxBytes) throw bodyTooLarge(store.maxBytes);
  const created = Math.floor(Date.now() / 1000);
  const added = await files.add(
    {
      id: form.newId(random),
      name: baseName(file.name),
      type: mediaTypeOf(file.name, file.type, file.bytes),
      purpose,
      created,
      ...(expiresIn !== undefined && { expires: created + expiresIn }),
    },
    file.bytes,
  );
  reply.send(200, "application/json", form.one(added, reply.profile));
});

/** `GET /files` */
export const listFiles: EndpointHandler = withFiles(async ({ form, files }, reply) => {
  const { exchange } = reply;
  const query = readPageQuery((name) => exchange.query(name), form.cursors);
  const ids = [...exchange.queries("ids[]"), ...exchange.queries("ids")].slice(0, 100);
  const all = ids.length > 0 ? ids : await files.list(exchange.query("purpose"));
  const listed = exchange.query("order") === "asc" ? all.toReversed() : all;
  const { from, until } = pageOf(listed, query);
  const data: FileFacts[] = [];
  let at = from;
  for (; at < until && data.length <= query.limit; at++) {
    const file = await files.find(listed[at] ?? "");
    if (file) data.push(file);
  }
  const page = {
    data: data.slice(0, query.limit),
    hasMore: data.length > query.limit || (query.before !== undefined && from > 0),
  };
  reply.send(200, "application/json", form.page(page, reply.profile));
});

/** `GET /files/{id}` */
export const showFile: EndpointHandler = withFiles(async ({ form, files }, reply, _service, id) => {
  const file = await files.find(id);
  if (!file) throw form.missing(id);
  reply.send(200, "application/json", form.one(file, reply.profile));
});

/** `DELETE /files/{id}` */
export const deleteFile: EndpointHandler = withFiles(async ({ form, files }, reply, _service, id) => {
  if (!(await files.delete(id))) throw form.missing(id);
  reply.send(200, "application/json", form.deletion(id, reply.profile));
});

/** `GET /files/{id}/content`: never as a type that a browser would run. */
export const showContent: EndpointHandler = withFiles(async ({ form, files }, reply, _service, id) => {
  const content = await files.content(id);
  if (!content) throw form.missing(id);
  const { exchange } = reply;
  reply.open({
    "content-type": "application/octet-stream",
    "content-length": String(content.file.bytes),
    "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(content.file.name.replace(/[\ud800-\udfff]/gu, "_"))}`,
  });
  for (const chunk of exchange.method === "HEAD" ? [] : contentBytes(content)) {
    const wait = exchange.bytes?.write(chunk);
    if (wait) await wait;
    if (exchange.departure.happened) return;
  }
  reply.end("");
});

/** The last part of a path. */
function baseName(name: string): string {
  return name.slice(Math.max(name.lastIndexOf("/"), name.lastIndexOf("\\")) + 1).slice(0, 500) || "unnamed";
}
