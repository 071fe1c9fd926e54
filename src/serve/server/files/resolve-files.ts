import { fileIdsIn, withFiles } from "../../../wire/apis/files/file-references.ts";
import type { FileData } from "../../../wire/apis/files/file-references.ts";
import { bodyTooLarge } from "../../../wire/apis/failures.ts";
import { storeFailure, storeOwnerOf } from "../client-stores.ts";
import type { Reply } from "../reply.ts";
import type { Service } from "../service.ts";
import { inTurns } from "../turns.ts";
import { ClientFiles, contentInBase64 } from "./client-files.ts";

/**
 * Puts the data of the client's files into a request that names them, so that every source gets the data. An id that this server does not
 * have stays. Returns the body itself, without a promise, if it names no file. Rejects with `FailureError`: 413 if the data would make
 * the request larger than a body may be, 503 if the store cannot be reached.
 */
export function resolveFiles(body: unknown, reply: Reply, service: Service): unknown {
  const { files } = service.stores;
  const ids = files ? fileIdsIn(body) : [];
  return files && ids.length > 0 ? resolve(body, ids, reply, service) : body;
}

async function resolve(body: unknown, ids: readonly string[], reply: Reply, service: Service): Promise<unknown> {
  const { stores, settings } = service;
  const files = stores.files && new ClientFiles(stores.files, await storeOwnerOf(reply));
  const found = new Map<string, FileData>();
  // A file counts as often as it is named: the request is written with each copy.
  let size = 0;
  try {
    for (const id of ids) {
      const known = found.get(id);
      const content = known ? undefined : await files?.content(id);
      if (content) {
        const base64 = await inTurns(contentInBase64(content));
        const { name, type } = content.file;
        found.set(id, { name, type, base64, ...(content.encoding === "utf-8" && { text: content.text }) });
      }
      size += (known ?? found.get(id))?.base64.length ?? 0;
      if (size > settings.bodyLimit) throw bodyTooLarge(settings.bodyLimit);
    }
  } catch (error) {
    throw storeFailure(error);
  }
  const { body: lease } = reply.held;
  if (found.size > 0) lease?.complete(lease.size + size);
  return withFiles(body, found);
}
