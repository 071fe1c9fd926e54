import { Worker } from "node:worker_threads";
import type { JsonSchema } from "../../../core/message.ts";
import type { JsonJudgment } from "../../../formats/check-json.ts";
import { downloadBytes } from "../../../library/download-image.ts";

/** Work for requests that must not block the event loop: in a thread, with limits on time and memory. */
export interface Background {
  /** Judges a JSON text by a client's schema. Rejects if the schema cannot be compiled, or that takes too long. */
  judge(json: string, schema: JsonSchema): Promise<JsonJudgment>;
  /** Reads the text of a document. Rejects with a reason, such as "it has no text". */
  documentText(data: string | Uint8Array): Promise<DocumentText>;
  /** Converts an image for a server. Rejects with a reason. */
  convertImage(data: string | Uint8Array, limits: ImageLimits): Promise<ConvertedImage>;
  /** Downloads from the public internet; rejects with a reason. `accept`: the header. */
  download(url: string, accept: string): Promise<Uint8Array>;
  close(): Promise<void>;
}

export interface DocumentText {
  readonly text: string;
  /** The rest of a long document is left out. */
  readonly isCut: boolean;
}

export interface ImageLimits {
  /** The media types that the server takes; absent: any. */
  readonly types?: readonly string[];
  /** The longest side, in pixels. */
  readonly maxSide?: number;
}

export interface ConvertedImage {
  /** A data URL; null: the image is a data URL that fits as it is. */
  readonly url: string | null;
}

/** The work of one message to the thread. `data`: bytes, base64, or a data URL. */
export type BackgroundJob =
  | { readonly type: "judge"; readonly json: string; readonly schema: JsonSchema }
  | { readonly type: "document"; readonly data: string | Uint8Array }
  | { readonly type: "image"; readonly data: string | Uint8Array; readonly limits: ImageLimits };

export type BackgroundAnswer = { readonly value: unknown } | { readonly reason: string };

const limitMs: Readonly<Record<BackgroundJob["type"], number>> = { judge: 2000, document: 30_000, image: 10_000 };
/** Waiting jobs beyond this number are refused. */
const maxQueue = 100;
const maxDownload = 32 * 1024 * 1024;
const downloadMs = 20_000;

interface Queued {
  readonly job: BackgroundJob;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: Error) => void;
}

/** Starts no thread before the first job. Judging has a thread of its own, so that it does not wait for files. */
export function openBackground(): Background {
  const judging = new JobThread();
  const thread = new JobThread();
  return {
    judge: (json, schema) => judging.run({ type: "judge", json, schema }) as Promise<JsonJudgment>,
    documentText: (data) => thread.run({ type: "document", data }) as Promise<DocumentText>,
    convertImage: (data, limits) => thread.run({ type: "image", data, limits }) as Promise<ConvertedImage>,
    download: (url, accept) => downloadBytes(url, { accept, maxBytes: maxDownload, timeoutMs: downloadMs }),
    close: async () => {
      await Promise.all([judging.close(), thread.close()]);
    },
  };
}

/** Runs one job at a time. A job that takes too long, or too much memory, costs the thread; the next one starts another. */
class JobThread {
  #worker: Worker | undefined;
  readonly #queue: Queued[] = [];
  #current: { readonly queued: Queued; readonly timer: NodeJS.Timeout } | undefined;
  #closed = false;

  run(job: BackgroundJob): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new Error("the server is stopping"));
      if (this.#queue.length >= maxQueue) return reject(new Error("too many others wait to be read"));
      this.#queue.push({ job, resolve, reject });
      this.#next();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { reject } of this.#queue.splice(0)) reject(new Error("the server is stopping"));
    await this.#stop("the server is stopping");
  }

  #next(): void {
    if (this.#current) return;
    const queued = this.#queue.shift();
    if (!queued) return void this.#worker?.unref();
    const limit = limitMs[queued.job.type];
    const timer = setTimeout(() => void this.#stop(`it took longer than ${limit / 1000} seconds`), limit);
    this.#current = { queued, timer };
    this.#worker ??= this.#start();
    this.#worker.ref();
    try {
      this.#worker.postMessage(queued.job);
    } catch (error) {
      this.#complete({ reason: String(error) });
    }
  }

  #complete(answer: BackgroundAnswer): void {
    const { queued, timer } = this.#current ?? {};
    this.#current = undefined;
    clearTimeout(timer);
    if ("value" in answer) queued?.resolve(answer.value);
    else queued?.reject(new Error(answer.reason));
    this.#next();
  }

  #start(): Worker {
    const worker = new Worker(new URL("./thread.js", import.meta.url), {
      // Nothing that the server knows concerns a client's files.
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: 512 },
      stdout: true,
      stderr: true,
    });
    worker.stdout.resume();
    worker.stderr.resume();
    worker.on("message", (answer: BackgroundAnswer) => {
      if (worker === this.#worker) this.#complete(answer);
    });
    worker.on("error", (error: NodeJS.ErrnoException) => {
      const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      if (worker === this.#worker) void this.#stop(isMemory ? "it needs too much memory" : error.message);
    });
    return worker;
  }

  /** Ends the thread and its job. */
  async #stop(reason: string): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#complete({ reason });
    await worker?.terminate();
  }
}
