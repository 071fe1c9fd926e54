import { openDB } from "idb";
import type { DBSchema, IDBPDatabase } from "idb";
import type { ConversationRecord } from "./conversation-store.ts";
import type { ImportReply, ImportRequest } from "./import-worker.ts";
import type { StoredTurn } from "./stored-turn.ts";

/** A file whose conversations are being added. */
export interface PendingImport {
  readonly id: string;
  readonly name: string;
  readonly file: Blob;
}

interface Schema extends DBSchema {
  files: { key: string; value: PendingImport };
}

/** Keeps files until all of their conversations are added: an import continues when the page is opened again. Methods reject as IndexedDB does. */
export class PendingImports {
  readonly #name: string;
  #opening: Promise<IDBPDatabase<Schema>> | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  async all(): Promise<readonly PendingImport[]> {
    return (await this.#database()).getAll("files");
  }

  async add(pending: PendingImport): Promise<void> {
    await (await this.#database()).put("files", pending);
  }

  async remove(id: string): Promise<void> {
    await (await this.#database()).delete("files", id);
  }

  #database(): Promise<IDBPDatabase<Schema>> {
    this.#opening ??= openDB<Schema>(this.#name, 1, {
      upgrade: (database) => void database.createObjectStore("files", { keyPath: "id" }),
    });
    this.#opening.catch(() => (this.#opening = undefined));
    return this.#opening;
  }
}

/** A conversation of a file, and how many it has. */
interface Imported {
  readonly record: Omit<ConversationRecord, "id">;
  readonly turns: readonly StoredTurn[];
  readonly at: number;
  readonly total: number;
}

/** Reads the conversations of a file in a worker, one after the other. Throws an error for people if the file has a mistake, before the first one. */
export async function* conversationsIn(file: Blob): AsyncGenerator<Imported, void> {
  const worker = new Worker(new URL("import-worker.js", import.meta.url), { type: "module" });
  const ask = (request: ImportRequest): Promise<ImportReply> =>
    new Promise((resolve, reject) => {
      worker.addEventListener("message", ({ data }: MessageEvent<ImportReply>) => resolve(data), { once: true });
      worker.addEventListener("error", () => reject(new Error("The file could not be read")), { once: true });
      worker.postMessage(request);
    });
  try {
    const first = await ask({ file });
    if ("problem" in first) throw new Error(first.problem);
    const total = "total" in first ? first.total : 0;
    for (let at = 0; at < total; at++) {
      const reply = await ask({ at });
      if ("problem" in reply) throw new Error(reply.problem);
      if ("record" in reply) yield { ...reply, at, total };
    }
  } finally {
    worker.terminate();
  }
}
