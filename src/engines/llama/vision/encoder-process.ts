import type { ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { FailureError, invalidImage } from "../../../wire/core/failure.ts";
import type { LogListener } from "../../../wire/core/generation-observer.ts";
import type { TakenMedia } from "../../../wire/core/unreadable-part.ts";
import { FairQueue } from "../../lifecycle/fair-queue.ts";
import { startLimitedProcess } from "../../lifecycle/limited-process.ts";
import { BoundedCache } from "../preparing/preparer.ts";
import type { EncodedImage, FromEncoder, OpenEncoderMessage, ToEncoder } from "./vision-messages.ts";

/** What is cached of images: facts of this number of files, and rows of this size in bytes. */
const factsLimits = { values: 1024, weight: 64 * 2 ** 20 };
const rowsLimits = { values: 1024, weight: 256 * 2 ** 20 };
/** How long the encoder may take to open, to read a file, and to compute its rows, in milliseconds. */
const openMs = 120_000;
const readMs = 30_000;
const encodeMs = 180_000;
/** How often it is asked whether the image that is being worked on is still wanted, in milliseconds. */
const wantedEveryMs = 250;

type Answer = Pick<FromEncoder & { readonly type: "encoded" }, "image" | "rows">;

/**
 * The environment of the process: variables of graphics drivers and of llama.cpp, and the folders where drivers keep what they compiled. No
 * keys. libmtmd takes a file that it cannot read for a video, and runs ffprobe (mtmd-helper.cpp): a client's file must not get there.
 */
function encoderEnvironment(): Readonly<Record<string, string | undefined>> {
  const isWindows = process.platform === "win32";
  const drivers = /^(?:CUDA|NVIDIA|HIP|ROCR|HSA|AMD|VK|GGML|LLAMA|MTMD|OMP|ONEAPI|SYCL|ZE|MUSA|ASCEND)_/;
  const folders = /^(?:HOME|TMPDIR|TEMP|LOCALAPPDATA|XDG_(?:CACHE_HOME|DATA_DIRS|RUNTIME_DIR))$/;
  const kept = Object.entries(process.env).filter(([name]) => drivers.test(name) || folders.test(name));
  return {
    GGML_NO_BACKTRACE: "1",
    ...Object.fromEntries(kept),
    PATH: isWindows ? process.env.PATH : "/nonexistent",
  };
}

interface Pending {
  readonly message: ToEncoder & { readonly type: "encode" };
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
  readonly isWanted: () => boolean;
}

/** Whose image it is. */
export interface ImageOrigin {
  /** The owner of the client's key. */
  readonly owner?: string | undefined;
  /** False when the client has left. */
  readonly isWanted?: () => boolean;
}

/** An image whose file the encoder has read, with that file. */
export interface KnownImage extends EncodedImage {
  readonly data: Uint8Array;
  /** The place in the client's request. */
  readonly param: string;
  readonly owner: string | undefined;
}

/**
 * Encodes images in a limited process, one at a time, so that a crash of libmtmd costs one image: the next one starts the process again.
 * Owners take turns. What the model gets for an image is cached by the hash of the file, its rows by the hash of its pixels.
 */
export class EncoderProcess {
  readonly #open: OpenEncoderMessage;
  readonly #log: LogListener;
  readonly #facts = new BoundedCache<EncodedImage>(factsLimits, () => {});
  readonly #rows = new BoundedCache<Float32Array>(rowsLimits, () => {});
  /** Images whose rows are being computed, by their hash, and who wants them. */
  readonly #computing = new Map<string, { readonly rows: Promise<Float32Array>; readonly wanted: (() => boolean)[] }>();
  /** Reading has the higher tier: it is fast, and prompts wait for it. */
  readonly #queue = new FairQueue<Pending>();
  #current: { readonly pending: Pending; timers: readonly NodeJS.Timeout[] } | undefined;
  #child: ChildProcess | undefined;
  /** How long the process took to open, in milliseconds. */
  #openedIn = 0;
  /** Why this class has ended the process. */
  #ended: string | undefined;
  #nextId = 1;
  #encoded = 0;
  /** What the projector encodes. */
  takes: TakenMedia;

  /** The process starts with the first image. `takes`: what the projector's file says. */
  constructor(open: OpenEncoderMessage, log: LogListener, takes: TakenMedia = {}) {
    this.#open = open;
    this.#log = log;
    this.takes = takes;
  }

  /** Starts the process. Rejects with an Error of one sentence if libmtmd cannot be used, or the projector does not fit the model. */
  static async open(open: OpenEncoderMessage, log: LogListener): Promise<EncoderProcess> {
    const encoder = new EncoderProcess(open, log);
    encoder.#child = await encoder.#start();
    return encoder;
  }

  /** The process's id, while it runs. */
  get processId(): number | undefined {
    return this.#child?.pid;
  }

  /** Number of images whose rows were computed. */
  get encoded(): number {
    return this.#encoded;
  }

  /** Reads an image file. Rejects with `FailureError`, which names `param`, for one that cannot be read, or is not wanted any more. */
  async read(data: Uint8Array, param: string, { owner, isWanted }: ImageOrigin = {}): Promise<KnownImage> {
    const key = createHash("sha256").update(data).digest("base64");
    let image = this.#facts.get(key);
    if (!image) {
      try {
        ({ image } = await this.#ask(data, false, owner, isWanted));
      } catch (error) {
        throw refusal("read", error, param);
      }
      this.#facts.add(key, image, sizeOf(image));
    }
    return { ...image, data, param, owner };
  }

  /**
   * The rows of an image, in the order of its chunks. Rejects with `FailureError`, also if `isWanted` returns false before the image has its
   * turn.
   */
  async rows({ hash, data, param, owner }: KnownImage, isWanted: () => boolean): Promise<Float32Array> {
    const known = this.#rows.get(hash);
    if (known) return known;
    let computing = this.#computing.get(hash);
    if (computing) computing.wanted.push(isWanted);
    else {
      const wanted = [isWanted];
      const rows = this.#compute(hash, data, owner, () => wanted.some((wants) => wants()));
      computing = { rows: rows.finally(() => this.#computing.delete(hash)), wanted };
      this.#computing.set(hash, computing);
    }
    return computing.rows.catch((error: unknown) => {
      throw refusal("encoded", error, param);
    });
  }

  async #compute(
    hash: string,
    data: Uint8Array,
    owner: string | undefined,
    isWanted: () => boolean,
  ): Promise<Float32Array> {
    const { rows } = await this.#ask(data, true, owner, isWanted);
    if (!rows) throw new Error("The encoder has answered without rows.");
    this.#encoded++;
    this.#rows.add(hash, rows, rows.byteLength);
    return rows;
  }

  #ask(
    data: Uint8Array,
    rows: boolean,
    owner: string | undefined,
    isWanted: () => boolean = () => true,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const message = { type: "encode", id: this.#nextId++, data, rows } as const;
      this.#queue.push({ message, resolve, reject, isWanted }, owner, rows ? "default" : "priority");
      void this.#next();
    });
  }

  async #next(): Promise<void> {
    if (this.#current) return;
    let pending = this.#queue.shift();
    while (pending && !pending.isWanted()) {
      pending.reject(new Error(notWanted));
      pending = this.#queue.shift();
    }
    if (!pending) return;
    const current = { pending, timers: [] as readonly NodeJS.Timeout[] };
    this.#current = current;
    try {
      const child = (this.#child ??= await this.#start());
      const begun = performance.now();
      const limitMs = pending.message.rows ? encodeMs : readMs;
      const { isWanted } = pending;
      current.timers = [
        setTimeout(() => this.#end(child, `it took longer than ${limitMs / 1000} seconds`), limitMs),
        setInterval(() => {
          // A new process takes as long to open.
          if (!isWanted() && performance.now() - begun > this.#openedIn) this.#end(child, notWanted);
        }, wantedEveryMs),
      ];
      child.send(pending.message, () => {});
    } catch (cause) {
      // The reason names files of this machine, so it is for the log alone.
      this.#log(`The process that encodes images could not be started: ${reasonOf(cause)}.`, "warn");
      const message = "The process that encodes images could not be started. The server's log says why.";
      this.#complete((current) => current.reject(new FailureError({ kind: "internal", status: 500, message, cause })));
    }
  }

  #complete(end: (pending: Pending) => void): void {
    const current = this.#current;
    this.#current = undefined;
    if (current) {
      for (const timer of current.timers) clearTimeout(timer);
      end(current.pending);
    }
    void this.#next();
  }

  #end(child: ChildProcess, reason: string): void {
    this.#ended = reason;
    child.kill("SIGKILL");
  }

  #start(): Promise<ChildProcess> {
    const begun = performance.now();
    const child = startLimitedProcess(new URL("./encoder-main.js", import.meta.url), undefined, encoderEnvironment());
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        child.kill("SIGKILL");
        reject(new Error(`its process took longer than ${openMs / 1000} seconds to start`));
      }, openMs);
      child.on("message", (message: FromEncoder) => {
        switch (message.type) {
          case "ready":
            clearTimeout(timer);
            this.#openedIn = performance.now() - begun;
            this.takes = message.takes;
            return resolve(child);
          case "failed":
            clearTimeout(timer);
            child.kill("SIGKILL");
            return reject(new Error(message.message));
          case "log":
            return this.#log(`libmtmd: ${message.line}`, "info");
          case "encoded":
            return this.#complete(({ resolve: done }) => done(message));
          case "refused":
            return this.#complete(({ reject: refuse, message: { rows } }) =>
              refuse(rows ? notEncoded(message.message) : new Error(message.message)),
            );
        }
      });
      const gone = (how: string): void => {
        clearTimeout(timer);
        reject(new Error(`its process ${how}`));
        if (this.#child !== child) return;
        this.#child = undefined;
        this.#log(`The process that encodes images ${how}; it is started again with the next image.`, "warn");
        const reason = this.#ended ?? "it needs too much memory, or breaks its reader";
        this.#ended = undefined;
        this.#complete(({ reject: refuse }) => refuse(new Error(reason)));
      };
      child.once("exit", (code, signal) => gone(signal ? `was ended by ${signal}` : `exited with code ${code}`));
      child.once("error", (error) => gone(`could not be started: ${error.message}`));
      child.send(this.#open, () => {});
    });
  }
}

/** The file was read before, so this is not the client's mistake. */
function notEncoded(reason: string): FailureError {
  const message = `The image or recording cannot be encoded: ${reason}.`;
  return new FailureError({ kind: "internal", status: 500, message, cause: reason });
}

const notWanted = "it is not wanted any more";

/** The failure of an image or a recording. */
function refusal(what: "read" | "encoded", error: unknown, param: string): FailureError {
  if (error instanceof FailureError) return error;
  const failure = invalidImage(
    { why: "damaged" },
    `The image or recording cannot be ${what}: ${reasonOf(error)}.`,
    param,
  );
  failure.cause = error;
  return failure;
}

/** The size in memory, in bytes. */
function sizeOf({ chunks }: EncodedImage): number {
  return chunks.reduce(
    (sum, chunk) => sum + ("tokens" in chunk ? chunk.tokens.byteLength : 100 + 20 * (chunk.mrope ? chunk.count : 0)),
    200,
  );
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
