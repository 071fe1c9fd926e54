import { fork, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { FailureError, invalidImage } from "../../../core/failure.ts";
import type { LogListener } from "../../../core/generation-observer.ts";
import type { TakenMedia } from "../../../core/unreadable-part.ts";
import { BoundedCache } from "../preparing/preparer.ts";
import type { EncodedImage, FromEncoder, OpenEncoderMessage, ToEncoder } from "./vision-messages.ts";

/** What is cached of images: facts of this number of files, and rows of this size in bytes. */
const factsLimits = { values: 1024, weight: 64 * 2 ** 20 };
const rowsLimits = { values: 1024, weight: 256 * 2 ** 20 };
/** How long the encoder may take to open, and for one image, in milliseconds. */
const openMs = 120_000;
const imageMs = 600_000;

type Answer = Pick<FromEncoder & { readonly type: "encoded" }, "image" | "rows">;

/** libmtmd takes a file that it cannot read for a video, and runs ffprobe (mtmd-helper.cpp). A client's file must not get there. */
const noPrograms = process.platform === "win32" ? {} : { PATH: "/nonexistent" };

interface Pending {
  readonly message: ToEncoder & { readonly type: "encode" };
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
  readonly isWanted: () => boolean;
}

/** An image whose file the encoder has read, with that file. */
export interface KnownImage extends EncodedImage {
  readonly data: Uint8Array;
}

/**
 * Encodes images in a process of its own, one at a time, so that a crash of libmtmd costs one image: the next one starts the process
 * again. What the model gets for an image is cached by the hash of the file, its rows by the hash of its pixels.
 */
export class EncoderProcess {
  readonly #open: OpenEncoderMessage;
  readonly #log: LogListener;
  readonly #facts = new BoundedCache<EncodedImage>(factsLimits, () => {});
  readonly #rows = new BoundedCache<Float32Array>(rowsLimits, () => {});
  /** Images whose rows are being computed, by their hash, and who wants them. */
  readonly #computing = new Map<string, { readonly rows: Promise<Float32Array>; readonly wanted: (() => boolean)[] }>();
  #queue: Pending[] = [];
  #current: { readonly pending: Pending; readonly timer: NodeJS.Timeout } | undefined;
  #child: ChildProcess | undefined;
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

  /** Number of images whose rows were computed. */
  get encoded(): number {
    return this.#encoded;
  }

  /** Reads an image file. Rejects with `FailureError`, which names `param`, for one that cannot be read. */
  async read(data: Uint8Array, param: string): Promise<KnownImage> {
    const key = createHash("sha256").update(data).digest("base64");
    let image = this.#facts.get(key);
    if (!image) {
      try {
        ({ image } = await this.#ask(data, false));
      } catch (error) {
        if (error instanceof FailureError) throw error;
        throw invalidImage({ why: "damaged" }, `The image or recording cannot be read: ${reasonOf(error)}.`, param);
      }
      this.#facts.add(key, image, sizeOf(image));
    }
    return { ...image, data };
  }

  /**
   * The rows of an image, in the order of its chunks. Rejects with `FailureError`, also if `isWanted` returns false before the image has its
   * turn.
   */
  async rows({ hash, data }: KnownImage, isWanted: () => boolean): Promise<Float32Array> {
    const known = this.#rows.get(hash);
    if (known) return known;
    let computing = this.#computing.get(hash);
    if (computing) computing.wanted.push(isWanted);
    else {
      const wanted = [isWanted];
      const rows = this.#compute(hash, data, () => wanted.some((wants) => wants()));
      computing = { rows: rows.finally(() => this.#computing.delete(hash)), wanted };
      this.#computing.set(hash, computing);
    }
    return computing.rows;
  }

  async #compute(hash: string, data: Uint8Array, isWanted: () => boolean): Promise<Float32Array> {
    const { rows } = await this.#ask(data, true, isWanted).catch((cause: unknown) => {
      if (cause instanceof FailureError) throw cause;
      const message = `The image or recording cannot be encoded: ${reasonOf(cause)}.`;
      throw new FailureError({ kind: "internal", status: 500, message, cause });
    });
    if (!rows) throw new Error("The encoder has answered without rows.");
    this.#encoded++;
    this.#rows.add(hash, rows, rows.byteLength);
    return rows;
  }

  #ask(data: Uint8Array, rows: boolean, isWanted: () => boolean = () => true): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ message: { type: "encode", id: this.#nextId++, data, rows }, resolve, reject, isWanted });
      void this.#next();
    });
  }

  async #next(): Promise<void> {
    if (this.#current) return;
    for (const { reject } of this.#queue.filter(({ isWanted }) => !isWanted())) reject(new Error("it is not wanted"));
    this.#queue = this.#queue.filter(({ isWanted }) => isWanted());
    // Reading is fast, and prompts wait for it.
    const at = Math.max(
      0,
      this.#queue.findIndex(({ message }) => !message.rows),
    );
    const [pending] = this.#queue.splice(at, 1);
    if (!pending) return;
    const timer = setTimeout(() => this.#child?.kill("SIGKILL"), imageMs);
    this.#current = { pending, timer };
    try {
      this.#child ??= await this.#start();
      this.#child.send(pending.message, () => {});
    } catch (cause) {
      const message = `The process that encodes images could not be started: ${reasonOf(cause)}.`;
      this.#complete((current) => current.reject(new FailureError({ kind: "internal", status: 500, message, cause })));
    }
  }

  #complete(end: (pending: Pending) => void): void {
    const current = this.#current;
    this.#current = undefined;
    if (current) {
      clearTimeout(current.timer);
      end(current.pending);
    }
    void this.#next();
  }

  #start(): Promise<ChildProcess> {
    // The compiled module. The flags of a debugger or test runner are not passed on.
    const child = fork(new URL("./encoder-main.js", import.meta.url), {
      execArgv: [],
      serialization: "advanced",
      env: { GGML_NO_BACKTRACE: "1", ...process.env, ...noPrograms },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    child.stderr?.resume();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        child.kill("SIGKILL");
        reject(new Error(`its process took longer than ${openMs / 1000} seconds to start`));
      }, openMs);
      child.on("message", (message: FromEncoder) => {
        switch (message.type) {
          case "ready":
            clearTimeout(timer);
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
            return this.#complete(({ reject: refuse }) => refuse(new Error(message.message)));
        }
      });
      const gone = (how: string): void => {
        clearTimeout(timer);
        reject(new Error(`its process ${how}`));
        if (this.#child !== child) return;
        this.#child = undefined;
        this.#log(`The process that encodes images ${how}; it is started again with the next image.`, "warn");
        const message = `The process that encodes images ${how}. It is started again; please retry.`;
        this.#complete(({ reject: refuse }) =>
          refuse(new FailureError({ kind: "unavailable", status: 503, message, retryAfterSeconds: 1 })),
        );
      };
      child.once("exit", (code, signal) => gone(signal ? `was ended by ${signal}` : `exited with code ${code}`));
      child.once("error", (error) => gone(`could not be started: ${error.message}`));
      child.send(this.#open, () => {});
    });
  }
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
