import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { requestsSchema } from "../config/model-schema.ts";
import type { ServerProfile } from "../apis/adapt/server-profile.ts";
import { isObject } from "../core/json.ts";
import type { LearnedProfile, ProfileStore } from "../engines/upstream/learned-profiles.ts";
import type { Log } from "../server/log.ts";

/** Changes within this time are written together. */
const writeAfterMs = 200;
/** A larger file is not one of ours. */
const maxLength = 16 * 1024 * 1024;
const version = 1;

type Upstreams = Map<string, Map<string, LearnedProfile>>;

/**
 * Keeps what was learned about servers in a JSON file: `{ version: 1, upstreams: { URL: { MODEL: { profile, server, probed } } } }`. Entries
 * may be changed or deleted by hand while no server runs.
 *
 * Several processes may share the file: each write reads it again, adds what this process has learned, and replaces it by renaming. A file
 * that cannot be read or written is reported once, and what was learned is kept in memory.
 */
export class ProfileFile implements ProfileStore {
  readonly #path: string;
  readonly #log: Log;
  readonly #known: Upstreams;
  /** What this process has learned. */
  readonly #learned: Upstreams = new Map();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isReported = false;

  constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
    this.#known = this.#read();
  }

  get(url: string, model: string): LearnedProfile | undefined {
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

  async #write(): Promise<void> {
    const unfinished = `${this.#path}.${randomUUID()}.tmp`;
    try {
      const kept = upstreamsIn(await readFile(this.#path, "utf8").catch(() => ""));
      for (const [url, models] of this.#learned) for (const [model, one] of models) put(kept, url, model, one);
      await writeFile(unfinished, `${textOf(kept)}\n`, { mode: 0o600 });
      await rename(unfinished, this.#path);
      // What other processes have learned in the meantime.
      for (const [url, models] of kept) for (const [model, one] of models) put(this.#known, url, model, one);
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {});
      this.#report(error, "what was learned about upstreams cannot be written; it is kept in memory");
    }
  }

  #read(): Upstreams {
    try {
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

function put(upstreams: Upstreams, url: string, model: string, learned: LearnedProfile): void {
  const models = upstreams.get(url) ?? new Map<string, LearnedProfile>();
  upstreams.set(url, models.set(model, learned));
}

/** The entries of a file's text; none for another kind of file. Entries of another shape are left out. */
function upstreamsIn(text: string): Upstreams {
  const upstreams: Upstreams = new Map();
  if (text.trim() === "" || text.length > maxLength) return upstreams;
  const file: unknown = JSON.parse(text);
  if (!isObject(file) || file["version"] !== version || !isObject(file["upstreams"])) return upstreams;
  for (const [url, models] of Object.entries(file["upstreams"])) {
    if (!isObject(models)) continue;
    for (const [model, entry] of Object.entries(models)) {
      const read = isObject(entry) ? learnedOf(entry) : undefined;
      if (read) put(upstreams, url, model, read);
    }
  }
  return upstreams;
}

function learnedOf({ profile, server, probed }: Readonly<Record<string, unknown>>): LearnedProfile | undefined {
  const read = requestsSchema.safeParse(profile);
  if (!read.success) return undefined;
  return {
    profile: read.data as ServerProfile,
    ...(typeof server === "string" && { server }),
    ...(typeof probed === "boolean" && { probed }),
  };
}

function textOf(upstreams: Upstreams): string {
  const sorted = [...upstreams].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const written = Object.fromEntries(sorted.map(([url, models]) => [url, Object.fromEntries(models)]));
  return JSON.stringify({ version, upstreams: written }, null, 2);
}
