import { openDB } from "idb";
import type { DBSchema, IDBPDatabase } from "idb";
import { announcement } from "../parts/changing.ts";
import { storeName } from "./conversation-store.ts";
import type { ConversationRecord } from "./conversation-store.ts";
import type { ImportReply, ImportRequest } from "./import-worker.ts";
import type { StoredTurn } from "./stored-turn.ts";
import { newId } from "./turn.ts";

/** A file whose conversations are being added. */
interface PendingImport {
  readonly id: string;
  readonly name: string;
  readonly file: Blob;
}

interface Schema extends DBSchema {
  files: { key: string; value: PendingImport };
}

/** What an import adds to, and reports to. */
interface Target {
  /** Whether the page is being closed. */
  isLeaving(): boolean;
  /** The conversation that is shown. */
  shown(): { readonly draft: string };
  has(id: string): boolean;
  /** Stores a conversation. Rejects if that fails. */
  add(record: ConversationRecord, turns: readonly StoredTurn[]): Promise<void>;
  /** Lists conversations that were added. */
  list(records: readonly ConversationRecord[]): void;
  show(id: string): Promise<void>;
  changed(): void;
}

/** How often an import says how far it is, in milliseconds. */
const reportMs = 200;

/** Adds the conversations of files, one file after the other, under new ids. */
export class Imports {
  /** The file whose conversations are being added, and how far; `total` is 0 while it is read. */
  current: { readonly name: string; readonly done: number; readonly total: number } | undefined;
  /** Why the last file was not imported, as a sentence; "" if it was. */
  problem = "";
  readonly #target: Target;
  readonly #pending = new PendingImports(`${storeName}imports`);
  #queue: Promise<unknown> = Promise.resolve();

  constructor(target: Target) {
    this.#target = target;
  }

  /**
   * Adds the conversations of a file, and shows the first one. Continues while another view is shown, and after the page was closed and opened
   * again. Returns false if the file has a mistake; `problem` is the reason.
   */
  async add(name: string, file: Blob): Promise<boolean> {
    const pending: PendingImport = { id: newId(), name, file };
    this.problem = "";
    // Where the browser stores nothing, or no more, the import lasts as long as the page.
    await this.#pending.add(pending).catch(() => {});
    return this.#enqueue(pending);
  }

  /** Goes on with the files that were being imported when the page was closed. */
  async goOn(): Promise<void> {
    for (const pending of await this.#pending.all().catch(() => [])) void this.#enqueue(pending);
  }

  #enqueue(pending: PendingImport): Promise<boolean> {
    const done = this.#queue.then(() => this.#import(pending));
    this.#queue = done;
    return done;
  }

  dismissProblem(): void {
    this.problem = "";
    this.#target.changed();
  }

  async #import(pending: PendingImport): Promise<boolean> {
    // Another tab may be at it.
    if (!navigator.locks) return this.#importAll(pending);
    const name = `${storeName}import/${pending.id}`;
    const isDone: unknown = await navigator.locks.request(name, { ifAvailable: true }, (lock) =>
      lock === null ? false : this.#importAll(pending),
    );
    return isDone === true;
  }

  async #importAll({ id, name, file }: PendingImport): Promise<boolean> {
    const target = this.#target;
    const before = target.shown();
    let added: ConversationRecord[] = [];
    let count = 0;
    const report = (done: number, total: number): void => {
      this.current = { name, done, total };
      if (added.length > 0) target.list(added);
      added = [];
      target.changed();
    };
    report(0, 0);
    announcement.say(`Importing ${name}.`);
    let reportedAt = performance.now();
    // The same ids when the import continues after the page was closed: what was added already is not added again.
    const idAt = (at: number): string => `${id}${at.toString(16)}`;
    try {
      for await (const { record, turns, at, total } of conversationsIn(file)) {
        const own = { ...record, id: idAt(at) };
        count = at + 1;
        if (!target.has(own.id)) {
          await target.add(own, turns);
          added.push(own);
        }
        if (performance.now() - reportedAt < reportMs && count < total) continue;
        report(count, total);
        reportedAt = performance.now();
      }
    } catch (error) {
      if (target.isLeaving()) return false;
      this.problem = `${name} was not imported${count === 0 ? "" : " completely"}. ${messageOf(error)}.`;
      announcement.say(this.problem);
    }
    this.current = undefined;
    target.changed();
    await this.#pending.remove(id).catch(() => {});
    if (this.problem !== "") return false;
    announcement.say(count === 1 ? "1 conversation imported." : `${count} conversations imported.`);
    // Unless the user is elsewhere by now.
    if (count > 0 && target.shown() === before && before.draft === "") await target.show(idAt(0));
    return true;
  }
}

function messageOf(error: unknown): string {
  if (error instanceof DOMException && error.name === "QuotaExceededError") return "The browser's storage is full";
  return error instanceof Error ? error.message : String(error);
}

/** Keeps files until all of their conversations are added: an import continues when the page is opened again. Methods reject as IndexedDB does. */
class PendingImports {
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
async function* conversationsIn(file: Blob): AsyncGenerator<Imported, void> {
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
