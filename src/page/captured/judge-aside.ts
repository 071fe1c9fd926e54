import type { Capture } from "./capture.ts";
import type { JudgedCapture } from "./judging.ts";
import type { UnparsedRequest } from "../inspect/read-body.ts";
import type { ParsedRequest } from "../inspect/readable-request.ts";

/** Judges captures in a worker, which brings the rules with it and is gone when there are no more. */
export function judgeAside(captures: Iterable<Capture> | AsyncIterable<Capture>): AsyncIterable<JudgedCapture> {
  return {
    async *[Symbol.asyncIterator]() {
      let worker: Worker | undefined;
      try {
        for await (const capture of captures) {
          worker ??= openWorker();
          yield await answerOf<JudgedCapture>(worker, capture);
        }
      } finally {
        worker?.terminate();
      }
    },
  };
}

/** Reads a request in a worker, which brings the readers of all APIs with it. undefined: it cannot be read. */
export async function readAside(request: UnparsedRequest): Promise<ParsedRequest | undefined> {
  const worker = openWorker();
  try {
    return await answerOf(worker, { read: request });
  } finally {
    worker.terminate();
  }
}

function openWorker(): Worker {
  return new Worker(new URL("judging-worker.js", import.meta.url), { type: "module" });
}

function answerOf<Answer>(worker: Worker, message: unknown): Promise<Answer> {
  return new Promise((resolve, reject) => {
    worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => resolve(data), { once: true });
    worker.addEventListener("error", (event) => reject(new Error(event.message)), { once: true });
    worker.postMessage(message);
  });
}
