import type { Capture } from "./capture.ts";
import type { JudgedCapture } from "./judging.ts";

/** Judges captures in a worker, which brings the rules with it and is gone when there are no more. */
export function judgeAside(captures: Iterable<Capture> | AsyncIterable<Capture>): AsyncIterable<JudgedCapture> {
  return {
    async *[Symbol.asyncIterator]() {
      let worker: Worker | undefined;
      try {
        for await (const capture of captures) {
          worker ??= new Worker(new URL("judging-worker.js", import.meta.url), { type: "module" });
          yield await judgedBy(worker, capture);
        }
      } finally {
        worker?.terminate();
      }
    },
  };
}

function judgedBy(worker: Worker, capture: Capture): Promise<JudgedCapture> {
  return new Promise((resolve, reject) => {
    worker.addEventListener("message", ({ data }: MessageEvent<JudgedCapture>) => resolve(data), { once: true });
    worker.addEventListener("error", ({ message }) => reject(new Error(message)), { once: true });
    worker.postMessage(capture);
  });
}
