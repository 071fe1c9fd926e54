/** Entry point of the processes that `background.ts` starts. Libraries are loaded with the first job that needs them. */
import { Buffer } from "node:buffer";
import type { FromJobProcess } from "../../lifecycle/limited-jobs.ts";
import type { BackgroundJob } from "./background.ts";

/** A process with more resident memory than this, in bytes, is not used again: libraries keep some of what they read. */
const maxKept = 300 * 1024 * 1024;

process.on("message", (job: BackgroundJob) => {
  void run(job).then(
    (value) => send({ type: "done", value, isLarge: process.memoryUsage.rss() > maxKept }),
    (error: unknown) => send({ type: "failed", reason: reasonOf(error) }),
  );
});

function send(message: FromJobProcess): void {
  process.send?.(message);
}

/** The time limit of a job begins when what it needs is loaded. */
async function run(job: BackgroundJob): Promise<unknown> {
  const work = await workOf(job);
  send({ type: "begun" });
  return work();
}

async function workOf(job: BackgroundJob): Promise<() => unknown> {
  switch (job.type) {
    case "judge": {
      const { judgeJson } = await import("../../../text/formats/check-json.ts");
      return () => judgeJson(job.json, job.schema);
    }
    case "document": {
      const { documentText } = await import("./document-text.ts");
      return () => documentText(bytesOf(job.data));
    }
    case "page": {
      const { pageText } = await import("./page-text.ts");
      return () => pageText(job.data, job.contentType, job.url);
    }
    case "image": {
      const { convertImage } = await import("./convert-image.ts");
      return () => convertImage(bytesOf(job.data), job.limits, typeof job.data === "string");
    }
  }
}

/** Base64 may have the head of a data URL. */
function bytesOf(data: string | Uint8Array): Uint8Array {
  if (typeof data !== "string") return data;
  const [, parameters, content] = /^data:([^,]*),(.*)$/is.exec(data) ?? [];
  if (content === undefined || parameters === undefined) return new Uint8Array(Buffer.from(data, "base64"));
  if (!/;\s*base64$/i.test(parameters)) return new TextEncoder().encode(decodeURIComponent(content));
  return new Uint8Array(Buffer.from(content, "base64"));
}

/** An error as the end of a sentence. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof RangeError && /call stack/i.test(error.message)) return "it is nested too deeply";
  const isMemory =
    error instanceof RangeError && /allocation failed|invalid (?:string|array|typed array) length/i.test(error.message);
  return isMemory || /out of memory|cannot allocate/i.test(error.message) ? "it needs too much memory" : error.message;
}
