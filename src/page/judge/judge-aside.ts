import type { Capture } from "./capture.ts";
import type { Judged } from "./judging.ts";

/** Judges a capture in a worker, which brings the rules with it and is gone when it has answered. */
export function judgeAside(captures: readonly Capture[]): AsyncIterable<Judged> {
  return {
    async *[Symbol.asyncIterator]() {
      const worker = new Worker(new URL("judging-worker.js", import.meta.url), { type: "module" });
      try {
        for (const capture of captures)
          yield await new Promise<Judged>((resolve, reject) => {
            worker.addEventListener("message", ({ data }: MessageEvent<Judged>) => resolve(data), { once: true });
            worker.addEventListener("error", ({ message }) => reject(new Error(message)), { once: true });
            worker.postMessage(capture);
          });
      } finally {
        worker.terminate();
      }
    },
  };
}
