import { randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { requestsSchema } from "../config/requests-schema.ts";
import type { ServerProfile } from "../../wire/apis/adapt/server-profile.ts";
import { isObject } from "../../wire/core/json.ts";
import type { LearnedProfile, ProfileStore } from "../../engines/upstream/learned-profiles.ts";
import { replaceFile } from "../kv/replace-file.ts";
import type { Log } from "../server/log.ts";

/** Changes within this time are written together. */
const writeAfterMs = 200;
/** How often it is looked whether the file has changed. */
const lookEveryMs = 1000;
/** A larger file is not one of ours. In characters. */
const maxLength = 16 * 1024 * 1024;
const version = 1;

type Upstreams = Map<string, Map<string, LearnedProfile>>;

/**
 * Keeps what was learned about servers in a JSON file: `{ version: 1, upstreams: { URL: { MODEL: { profile, dates } } } }`.
 *
 * Several processes may share the file: each write reads it again, adds what this process has learned since its last one, and replaces it by
 * renaming. A file that another process, or a person, has changed is read again within a second. A file that cannot be read or written is
 * reported once and never replaced, and what was learned is kept in memory.
 */
export class ProfileFile implements ProfileStore {
  readonly #path: string;
  readonly #log: Log;
  #known: Upstreams;
  /** What this process has learned since its last write. */
  #learned: Upstreams = new Map();
  /** The state of the file that was read, and when it was looked at (of `performance.now`). */
  #state = "";
  #lookedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isReported = false;

  constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
    this.#known = this.#read();
  }

  get(url: string, model: string): LearnedProfile | undefined {
    const now = performance.now();
    if (now - this.#lookedAt >= lookEveryMs) this.#look(now);
    return this.#known.get(url)?.get(model);
  }

  set(url: string, model: string, learned: LearnedProfile): void {
    put(this.#known, url, model, learned);
    put(this.#learned, url, model, learned);
    this.#timer ??= setTimeout(() => void this.flush(), writeAfterMs).unref();
  }

  /** Writes what was learned; resolves when it is in the file, or could not be written. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#timer === undefined) return this.#writing;
    this.#timer = undefined;
    return (this.#writing = this.#writing.then(() => this.#write()));
  }

  /** Reads the file again if it is another one than before. */
  #look(now: number): void {
    this.#lookedAt = now;
    const state = stateOf(this.#path);
    if (state === this.#state) return;
    const read = this.#read();
    putAll(read, this.#learned);
    this.#known = read;
  }

  async #write(): Promise<void> {
    const unfinished = `${this.#path}.${randomUUID()}.tmp`;
    const learned = this.#learned;
    this.#learned = new Map();
    try {
      const kept = upstreamsIn(await readFile(this.#path, "utf8").catch(withoutFile));
      putAll(kept, learned);
      await writeFile(unfinished, `${textOf(kept)}\n`, { mode: 0o600 });
      await replaceFile(unfinished, this.#path);
      this.#state = stateOf(this.#path);
      // What this process has learned in the meantime, and before this what others have.
      putAll(kept, this.#learned);
      this.#known = kept;
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {});
      putAll(learned, this.#learned);
      this.#learned = learned;
      this.#report(error, "what was learned about upstreams cannot be written; it is kept in memory");
    }
  }

  #read(): Upstreams {
    try {
      this.#state = stateOf(this.#path);
      return upstreamsIn(readFileSync(this.#path, "utf8"));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT")
        this.#report(error, "what was learned about upstreams cannot be read");
      return new Map();
    }
  }

  #report(error: unknown, line: string): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#log.warn({ file: this.#path, error: String(error) }, line);
  }
}

/** What differs between two versions of a file; "" without a file. */
function stateOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats ? `${stats.ino} ${stats.size} ${stats.mtimeMs}` : "";
}

function withoutFile(error: NodeJS.ErrnoException): string {
  if (error.code === "ENOENT") return "";
  throw error;
}

function putAll(upstreams: Upstreams, added: Upstreams): void {
  for (const [url, models] of added) for (const [model, one] of models) put(upstreams, url, model, one);
}

function put(upstreams: Upstreams, url: string, model: string, learned: LearnedProfile): void {
  const models = upstreams.get(url) ?? new Map<string, LearnedProfile>();
  upstreams.set(url, models.set(model, learned));
}

/** The entries of a file's text. Entries of another shape are left out. Throws an Error that says why it is no file of profiles. */
function upstreamsIn(text: string): Upstreams {
  const upstreams: Upstreams = new Map();
  if (text.trim() === "") return upstreams;
  if (text.length > maxLength)
    throw new Error(`It has ${text.length} characters, and a file of profiles has at most ${maxLength}. Move it away.`);
  const file: unknown = JSON.parse(text);
  if (!isObject(file) || file["version"] !== version || !isObject(file["upstreams"]))
    throw new Error(`Expected {"version": ${version}, "upstreams": {...}}. Move it away, and a new one is written.`);
  for (const [url, models] of Object.entries(file["upstreams"])) {
    if (!isObject(models)) continue;
    for (const [model, entry] of Object.entries(models)) {
      const read = isObject(entry) ? learnedOf(entry) : undefined;
      if (read) put(upstreams, url, model, read);
    }
  }
  return upstreams;
}

function learnedOf({ profile, dates }: Readonly<Record<string, unknown>>): LearnedProfile | undefined {
  const read = requestsSchema.safeParse(profile);
  if (!read.success) return undefined;
  return {
    profile: read.data as ServerProfile,
    ...(isObject(dates) && { dates: textsIn(dates) }),
  };
}

function textsIn(values: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

function textOf(upstreams: Upstreams): string {
  const sorted = [...upstreams].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const written = Object.fromEntries(sorted.map(([url, models]) => [url, Object.fromEntries(models)]));
  return JSON.stringify({ version, upstreams: written }, null, 2);
}
