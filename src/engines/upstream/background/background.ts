import type { JsonSchema } from "../../../wire/core/message.ts";
import type { JsonJudgment } from "../../../text/formats/check-json.ts";
import { download } from "./download.ts";
import { type JobOrigin, LimitedJobs } from "../../lifecycle/limited-jobs.ts";

/**
 * Work on what strangers send: in processes of its own, with limits on time and memory, in turns between owners. Each method rejects with an
 * Error whose message is the reason, such as "it has no text", or with `FailureError` if too much work waits.
 */
export interface Background {
  /** Judges a JSON text by a client's schema. Rejects if the schema cannot be compiled, or that takes too long. */
  judge(json: string, schema: JsonSchema, origin?: JobOrigin): Promise<JsonJudgment>;
  /** Reads the text of a document. */
  documentText(data: string | Uint8Array, origin?: JobOrigin): Promise<DocumentText>;
  /** Reads the text of a page or a document. `contentType`: the header of its answer; `url`: where it is. */
  pageText(data: Uint8Array, contentType: string, url: string, origin?: JobOrigin): Promise<PageText>;
  /** Converts an image for a server. */
  convertImage(data: string | Uint8Array, limits: ImageLimits, origin?: JobOrigin): Promise<ConvertedImage>;
  /** Downloads from the public internet. `accept`: the header. */
  download(url: string, accept: string, origin?: JobOrigin): Promise<Uint8Array>;
  /** Ends what is in progress. */
  close(): void;
}

export interface DocumentText {
  readonly text: string;
  /** The rest of a long document is left out. */
  readonly isCut: boolean;
}

export interface PageText extends DocumentText {
  readonly title?: string;
  /** `text/plain` for text that was made of HTML; `application/pdf` for a PDF. */
  readonly mediaType: string;
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

/** The work of one message to a process. `data`: bytes, base64, or a data URL. */
export type BackgroundJob =
  | { readonly type: "judge"; readonly json: string; readonly schema: JsonSchema }
  | { readonly type: "document"; readonly data: string | Uint8Array }
  | { readonly type: "page"; readonly data: Uint8Array; readonly contentType: string; readonly url: string }
  | { readonly type: "image"; readonly data: string | Uint8Array; readonly limits: ImageLimits };

const limitMs: Readonly<Record<BackgroundJob["type"], number>> = {
  judge: 2000,
  document: 30_000,
  page: 30_000,
  image: 10_000,
};
const maxDownload = 32 * 1024 * 1024;
const downloadMs = 20_000;

const module = new URL("./job-process.js", import.meta.url);
/** For all upstreams and models of this process. Judging has a process of its own, so that it does not wait for files. */
const files = new LimitedJobs({ module, limits: { heapMiB: 512, memoryMiB: 1024 }, processes: 2 });
const judging = new LimitedJobs({ module, limits: { heapMiB: 256, memoryMiB: 512 }, processes: 1 });

/** Starts no process before the first job. */
export function openBackground(): Background {
  const open = new Set<AbortController>();
  /** Runs work that ends when the client leaves, or with `close`. */
  const endable = async (
    origin: JobOrigin | undefined,
    work: (signal: AbortSignal) => Promise<unknown>,
  ): Promise<unknown> => {
    const { signal } = origin ?? {};
    const controller = new AbortController();
    const leave = (): void => controller.abort(signal?.reason);
    if (signal?.aborted === true) leave();
    signal?.addEventListener("abort", leave);
    open.add(controller);
    try {
      return await work(controller.signal);
    } finally {
      open.delete(controller);
      signal?.removeEventListener("abort", leave);
    }
  };
  const run = (jobs: LimitedJobs, job: BackgroundJob, origin: JobOrigin | undefined): Promise<unknown> =>
    endable(origin, (signal) => jobs.run(job, limitMs[job.type], { owner: origin?.owner, signal }));
  return {
    judge: (json, schema, origin) => run(judging, { type: "judge", json, schema }, origin) as Promise<JsonJudgment>,
    documentText: (data, origin) => run(files, { type: "document", data }, origin) as Promise<DocumentText>,
    pageText: (data, contentType, url, origin) =>
      run(files, { type: "page", data, contentType, url }, origin) as Promise<PageText>,
    convertImage: (data, limits, origin) =>
      run(files, { type: "image", data, limits }, origin) as Promise<ConvertedImage>,
    download: (url, accept, origin) =>
      endable(
        origin,
        async (signal) => (await download(url, { accept, maxBytes: maxDownload, timeoutMs: downloadMs, signal })).bytes,
      ) as Promise<Uint8Array>,
    close: () => {
      for (const controller of open) controller.abort(new Error("the server is stopping"));
    },
  };
}
