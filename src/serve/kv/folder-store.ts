import { createHash, randomUUID } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { mkdir, open, readdir, rm, stat } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { BoundedIndex } from "./memory-store.ts";
import { replaceFile } from "./replace-file.ts";
import { ownerOf } from "./store.ts";
import type { Store, StoreLimits, TextEnd } from "./store.ts";

const unfinished = ".tmp";
/** An unfinished file that is older than this was left by a crash, in milliseconds. */
const maxWriteMs = 60_000;

/** Opens a store in a folder, which is created if it does not exist. Rejects with the system's error. */
export async function openFolderStore(folder: string, limits: StoreLimits): Promise<Store> {
  await makeFolder(folder);
  const store = new FolderStore(folder, limits);
  await store.readFolder();
  return store;
}

/**
 * A store in a folder: a file for each text, named by the hashes of its owner and key. A text is written to a temporary file, synced, and
 * then renamed, so that a reader finds all of it or nothing, even after a crash. Several processes may use one folder; each applies the
 * limits to the files that it knows.
 */
class FolderStore implements Store {
  readonly #folder: string;
  readonly #index: BoundedIndex<true>;

  constructor(folder: string, limits: StoreLimits) {
    this.#folder = folder;
    // A file that cannot be removed is found again after a restart.
    this.#index = new BoundedIndex(limits, shareOf, (name) => void this.#remove(name).catch(() => {}));
  }

  async get(key: string): Promise<string | undefined> {
    const name = this.#nameOf(key);
    const known = this.#index.get(name) === true;
    const file = await this.#open(name, "r");
    if (!file) return undefined;
    try {
      // Another process may have written it.
      const isExpired = !known && this.#index.isExpired((await file.stat()).mtimeMs);
      return isExpired ? undefined : await file.readFile("utf8");
    } finally {
      await file.close();
    }
  }

  async readFrom(key: string, from: number): Promise<TextEnd | undefined> {
    const name = this.#nameOf(key);
    const known = this.#index.get(name) === true;
    const file = await this.#open(name, "r");
    if (!file) return undefined;
    try {
      const { mtimeMs, size } = await file.stat();
      if (!known && this.#index.isExpired(mtimeMs)) return undefined;
      const bytes = new Uint8Array(Math.max(0, size - from));
      let read = 0;
      while (read < bytes.length) {
        const { bytesRead } = await file.read(bytes, read, bytes.length - read, from + read);
        if (bytesRead === 0) break;
        read += bytesRead;
      }
      return { text: new TextDecoder().decode(bytes.subarray(0, read)), size: from + read };
    } finally {
      await file.close();
    }
  }

  /** A text that is torn by a crash or a full disk has a torn end; what is appended later follows it. */
  async append(key: string, text: string, creates = false): Promise<boolean> {
    const name = this.#nameOf(key);
    const existing = await this.#open(name, constants.O_WRONLY | constants.O_APPEND);
    if (!existing && !creates) return false;
    const file = existing ?? (await this.#create(join(this.#folder, name), "a"));
    try {
      await file.appendFile(text);
      await file.sync();
      this.#index.set(name, true, (await file.stat()).size);
    } finally {
      await file.close();
    }
    return existing !== undefined;
  }

  async #open(name: string, flags: string | number): Promise<FileHandle | undefined> {
    try {
      return await open(join(this.#folder, name), flags);
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
      const file = await this.#create(path, "wx");
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      await replaceFile(path, join(this.#folder, name));
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
    this.#index.set(name, true, bytes.length);
  }

  /** Creates the folder again if it was deleted. */
  async #create(path: string, flags: "wx" | "a"): Promise<FileHandle> {
    try {
      return await open(path, flags, 0o600);
    } catch (error) {
      if (!isMissing(error)) throw error;
      await makeFolder(this.#folder);
      return open(path, flags, 0o600);
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
    // A file of an older version, whose names had no owner.
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

  /** Reads the existing files in the order in which they were written, and removes unfinished ones. */
  async readFolder(): Promise<void> {
    const found: { readonly name: string; readonly bytes: number; readonly at: number }[] = [];
    const names = await readdir(this.#folder);
    // In groups that are large enough to keep the disk busy, and small enough for any limit of open files.
    for (let at = 0; at < names.length; at += 64) {
      await Promise.all(
        names.slice(at, at + 64).map(async (name) => {
          const file = await this.#stat(name);
          if (file?.isFile() !== true) return;
          const { mtimeMs, size } = file;
          if (ours.test(name)) found.push({ name, bytes: size, at: mtimeMs });
          else if (name.endsWith(unfinished) && Date.now() - mtimeMs > maxWriteMs) await this.#remove(name);
        }),
      );
    }
    found.sort((one, other) => one.at - other.at);
    for (const { name, bytes, at } of found) this.#index.set(name, true, bytes, at);
  }

  async #stat(name: string): Promise<Stats | undefined> {
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
