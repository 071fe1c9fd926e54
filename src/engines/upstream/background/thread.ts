/** Entry point of the thread that `background.ts` starts. Libraries are loaded with the first job that needs them. */
import { Buffer } from "node:buffer";
import { parentPort } from "node:worker_threads";
import type { BackgroundAnswer, BackgroundJob } from "./background.ts";

parentPort?.on("message", (job: BackgroundJob) => {
  void run(job).then(
    (value) => parentPort?.postMessage({ value } satisfies BackgroundAnswer),
    (error: unknown) => parentPort?.postMessage({ reason: reasonOf(error) } satisfies BackgroundAnswer),
  );
});

async function run(job: BackgroundJob): Promise<unknown> {
  switch (job.type) {
    case "judge": {
      const { judgeJson } = await import("../../../formats/check-json.ts");
      return judgeJson(job.json, job.schema);
    }
    case "document": {
      const { documentText } = await import("./document-text.ts");
      return documentText(bytesOf(job.data));
    }
    case "image": {
      const { convertImage } = await import("./convert-image.ts");
      return convertImage(bytesOf(job.data), job.limits, typeof job.data === "string");
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

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
