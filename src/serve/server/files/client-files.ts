import type { FileFacts } from "../../../wire/apis/files/write.ts";
import type { Keyspace } from "../../../wire/apis/port-state.ts";
import { bytesOfBase64 } from "../../../wire/apis/base64-json.ts";
import type { Steps } from "../../../wire/core/steps.ts";
import { keyspace } from "../client-stores.ts";
import type { FileStore } from "../client-stores.ts";
import { base64InSteps } from "../read-form.ts";
import { inTurns } from "../turns.ts";
import { addToList, readList } from "./stored-list.ts";

/** What is stored of a file beside its content. */
interface StoredFile extends FileFacts {
  /** How the content is stored: as text, or in base64. */
  readonly encoding: "utf-8" | "base64";
}

/** The content of a file as it is stored. */
export interface FileContent extends Pick<StoredFile, "encoding"> {
  readonly file: FileFacts;
  readonly text: string;
}

/** The files of one client: three texts for each (its facts, its content, its line in the list). No other client can name them. */
export class ClientFiles {
  readonly #space: Keyspace;
  readonly #maxAgeMs: number;

  /** `owner`: see `storeOwnerOf`. */
  constructor({ store, maxAgeMs }: Pick<FileStore, "store" | "maxAgeMs">, owner: string) {
    this.#space = keyspace(store, owner);
    this.#maxAgeMs = maxAgeMs;
  }

  /** Stores a file. Rejects if the store cannot be reached. */
  async add(file: Omit<FileFacts, "bytes">, bytes: Uint8Array): Promise<FileFacts> {
    const { encoding, text } = await inTurns(stored(bytes));
    await this.#space.set(contentKey(file.id), text);
    const facts: StoredFile = { ...file, bytes: bytes.length, encoding };
    await this.describe(facts);
    return facts;
  }

  /** Stores the facts of a file whose content is stored under `contentKey`, as text. */
  async describe(file: FileFacts): Promise<void> {
    await this.#space.set(factsKey(file.id), JSON.stringify({ encoding: "utf-8", ...file } satisfies StoredFile));
    await addToList(this.#space, "files", file.id, file.purpose);
  }

  async find(id: string): Promise<FileFacts | undefined> {
    return this.#find(id);
  }

  async #find(id: string): Promise<StoredFile | undefined> {
    const text = await this.#space.get(factsKey(id));
    if (text === undefined) return undefined;
    const file = JSON.parse(text) as StoredFile;
    if (file.expires === undefined || file.expires * 1000 > Date.now()) return file;
    await this.#delete(id);
    return undefined;
  }

  async content(id: string): Promise<FileContent | undefined> {
    const file = await this.#find(id);
    const text = file && (await this.#space.get(contentKey(id)));
    return text === undefined || !file ? undefined : { file, encoding: file.encoding, text };
  }

  /** Resolves to whether the file existed. */
  async delete(id: string): Promise<boolean> {
    const existed = (await this.#find(id)) !== undefined;
    if (existed) await this.#delete(id);
    return existed;
  }

  async #delete(id: string): Promise<void> {
    await this.#space.delete(factsKey(id));
    await this.#space.delete(contentKey(id));
    await addToList(this.#space, "files", `-${id}`);
  }

  /** The ids of all files, the newest first. Some of them may have expired. `purpose`: only files with this purpose. */
  list(purpose?: string): Promise<readonly string[]> {
    return readList(this.#space, "files", this.#maxAgeMs, purpose);
  }
}

function factsKey(id: string): string {
  return `file ${id}`;
}

/** Where the content of a file is stored. */
export function contentKey(id: string): string {
  return `content ${id}`;
}

/** The bytes of one step. */
const stepBytes = 256 * 1024;

/** The bytes as text if they are UTF-8, else in base64. */
function* stored(bytes: Uint8Array): Steps<{ readonly encoding: StoredFile["encoding"]; readonly text: string }> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  try {
    for (let at = 0; at < bytes.length; at += stepBytes) {
      text += decoder.decode(bytes.subarray(at, at + stepBytes), { stream: true });
      yield;
    }
    return { encoding: "utf-8", text: text + decoder.decode() };
  } catch {
    return { encoding: "base64", text: yield* base64InSteps(bytes) };
  }
}

/** The content in base64. */
export function* contentInBase64({ encoding, text }: FileContent): Steps<string> {
  return encoding === "base64" ? text : yield* base64InSteps(new TextEncoder().encode(text));
}

/** The bytes of a content, in chunks. */
export function* contentBytes({ encoding, text }: Omit<FileContent, "file">): Generator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  for (let at = 0, next = 0; at < text.length; at = next) {
    next = at + stepBytes;
    // A pair of surrogates is one character.
    if (/[\ud800-\udbff]/.test(text.charAt(next - 1))) next++;
    const chunk = text.slice(at, next);
    yield encoding === "base64" ? bytesOfBase64(chunk) : encoder.encode(chunk);
  }
}
