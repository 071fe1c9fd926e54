import { createHash } from "node:crypto";
import { appendFileSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { listen } from "./listen.ts";

/** A hub with one model, `hf:somebody/tiny:Q4_K_M`. */
export interface HubDouble {
  /** For `HF_ENDPOINT`. */
  readonly endpoint: string;
  /** The model's file, 24 MiB: long enough for a download with a middle. */
  readonly bytes: Buffer;
  /** What it does with the file: sends it; breaks each connection after 8 MiB; sends slowly; sends nothing; sends zeros. */
  manner: "whole" | "breaks" | "slow" | "silent" | "zeros";
  /** Bytes of the file that it has sent. */
  sent: number;
  close(): Promise<void>;
}

/** `folder` is for the file while it is written. */
export async function startHub(folder: string): Promise<HubDouble> {
  const file = join(folder, "hub.gguf");
  writeProgrammedModel(file);
  // llama.cpp reads no further than the tensors.
  appendFileSync(file, Buffer.alloc(24 * 2 ** 20, "x"));
  const bytes = readFileSync(file);
  rmSync(file);
  const etag = `"${createHash("sha256").update(bytes).digest("hex")}"`;
  const { url, close } = await listen((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://hub");
    if (pathname.includes("/somebody/tiny/manifests/")) {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ggufFile: { rfilename: "tiny-Q4_K_M.gguf" } }));
      return;
    }
    if (!/\/somebody\/tiny\/.*\/tiny-Q4_K_M\.gguf$/.test(pathname)) {
      response.statusCode = 404;
      response.end("no");
      return;
    }
    const [, from, to] = /bytes=(\d+)-(\d*)/.exec(request.headers.range ?? "") ?? [];
    const start = Number(from ?? 0);
    const part = bytes.subarray(start, to ? Number(to) + 1 : bytes.length);
    response.writeHead(from === undefined ? 200 : 206, {
      etag,
      "content-length": part.length,
      "accept-ranges": "bytes",
      ...(from !== undefined && { "content-range": `bytes ${start}-${start + part.length - 1}/${bytes.length}` }),
    });
    if (request.method === "HEAD") response.end();
    else void send(part);

    async function send(part: Buffer): Promise<void> {
      const end = hub.manner === "breaks" ? Math.min(part.length, 8 * 2 ** 20) : part.length;
      for (let at = 0; at < end && !response.destroyed;) {
        if (hub.manner === "silent") return;
        const chunk = part.subarray(at, Math.min(end, at + 2 ** 18));
        response.write(hub.manner === "zeros" ? Buffer.alloc(chunk.length) : chunk);
        at += chunk.length;
        hub.sent += chunk.length;
        await new Promise((resolve) => setTimeout(resolve, hub.manner === "slow" ? 200 : 1));
      }
      if (end === part.length) response.end();
      else response.destroy();
    }
  });
  const hub: HubDouble = { endpoint: `${url}/`, bytes, manner: "whole", sent: 0, close };
  return hub;
}
