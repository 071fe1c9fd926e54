import { createHash, randomUUID } from "node:crypto";
import type { Stats } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { BoundedIndex } from "./memory-store.ts";
import { ownerOf } from "./store.ts";
import type { Store, StoreLimits } from "./store.ts";

const unfinished = ".tmp";
/** A file that is still being written is younger than this, in milliseconds. */
const longestWrite = 60_000;

/** Opens a store in a folder, which is made where there is none. Rejects with the system's error. */
export async function openFolderStore(folder: string, limits: StoreLimits): Promise<Store> {
  await makeFolder(folder);
  const store = new FolderStore(folder, limits);
  await store.readFolder();
  return store;
}

/**
 * A store in a folder: a file for each text, under the hashes of its owner and its key. A text is written under another name, made durable, and then
 * renamed, so that a reader finds all of it or nothing, also after a crash. Several processes may use one folder; each keeps to the
 * limits by what it knows of.
 */
class FolderStore implements Store {
  readonly #folder: string;
  readonly #index: BoundedIndex<true>;

  constructor(folder: string, limits: StoreLimits) {
    this.#folder = folder;
    // A file that is gone already is as it should be; one that cannot be removed is found again after a restart.
    this.#index = new BoundedIndex(limits, shareOf, (name) => void this.#remove(name).catch(() => {}));
  }

  async get(key: string): Promise<string | undefined> {
    const name = this.#nameOf(key);
    const known = this.#index.get(name) === true;
    try {
      const file = await open(join(this.#folder, name));
      try {
        // Another process may have written it.
        const isTooOld = !known && this.#index.isTooOld((await file.stat()).mtimeMs);
        return isTooOld ? undefined : await file.readFile("utf8");
      } finally {
        await file.close();
      }
    } catch (error) {
      if (!isMissing(error)) throw error;
      this.#index.delete(name);
      return undefined;
    }
  }

  async set(key: string, text: string): Promise<void> {
    const name = this.#nameOf(key);
    const bytes = new TextEncoder().encode(text);
    const path = join(this.#folder, `${name}.${randomUUID()}${unfinished}`);
    try {
      const file = await this.#create(path);
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(path, join(this.#folder, name));
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
    this.#index.set(name, true, bytes.length);
  }

  /** Makes the folder again where somebody has deleted it. */
  async #create(path: string): Promise<FileHandle> {
    try {
      return await open(path, "wx", 0o600);
    } catch (error) {
      if (!isMissing(error)) throw error;
      await makeFolder(this.#folder);
      return open(path, "wx", 0o600);
    }
  }

  async delete(key: string): Promise<boolean> {
    const name = this.#nameOf(key);
    this.#index.delete(name);
    return this.#remove(name);
  }

  async close(): Promise<void> {}

  #nameOf(key: string): string {
    const hash = hashOf(key);
    // Written by a version whose names had no owner.
    if (this.#index.has(hash)) return hash;
    return `${hashOf(ownerOf(key)).slice(0, 16)}-${hash}`;
  }

  async #remove(name: string): Promise<boolean> {
    try {
      await rm(join(this.#folder, name));
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  /** What was kept before, in the order in which it was written; what a crash left unfinished is removed. */
  async readFolder(): Promise<void> {
    const found: { readonly name: string; readonly bytes: number; readonly at: number }[] = [];
    const names = await readdir(this.#folder);
    // So many at once: enough to keep the disk busy, few enough for any limit of open files.
    for (let at = 0; at < names.length; at += 64) {
      await Promise.all(
        names.slice(at, at + 64).map(async (name) => {
          const file = await this.#look(name);
          if (file?.isFile() !== true) return;
          const { mtimeMs, size } = file;
          if (ours.test(name)) found.push({ name, bytes: size, at: mtimeMs });
          else if (name.endsWith(unfinished) && Date.now() - mtimeMs > longestWrite) await this.#remove(name);
        }),
      );
    }
    found.sort((one, other) => one.at - other.at);
    for (const { name, bytes, at } of found) this.#index.set(name, true, bytes, at);
  }

  async #look(name: string): Promise<Stats | undefined> {
    try {
      return await stat(join(this.#folder, name));
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }
}

const ours = /^(?:[0-9a-f]{16}-)?[0-9a-f]{64}$/;

/** Returns the part of a file's name that identifies the owner; "" for a name without one. */
function shareOf(name: string): string {
  return name.slice(0, Math.max(0, name.indexOf("-")));
}

async function makeFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
