import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { BrotliDecompress, Gunzip, Inflate } from "node:zlib";
import type { Unpacker, UnpackerSink } from "./transport.ts";

/** Unpacks an answer while it comes, each piece at once. Throws an Error for a packing that is not known. */
export function openUnpacker(encoding: string, sink: UnpackerSink): Unpacker {
  const stream = unpackingStream(encoding);
  stream.on("data", (bytes: Uint8Array) => sink.data(bytes));
  stream.on("end", () => sink.end());
  stream.on("error", (error) => sink.error(error));
  stream.on("drain", () => sink.drain());
  return {
    write: (bytes) => stream.write(bytes),
    end: () => void stream.end(),
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    destroy: () => void stream.destroy(),
  };
}

/** Throws an Error for a packing that is not known. */
export function unpackingStream(encoding: string): BrotliDecompress | Gunzip | Inflate {
  switch (encoding.trim().toLowerCase()) {
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "br":
      return createBrotliDecompress();
    case "deflate":
      return createInflate();
    default:
      throw new Error(`it is packed with '${encoding}', which nobody asked for and nobody here can unpack`);
  }
}

/** Whether a header `content-encoding` says that there is something to unpack. */
export function isPacked(encoding: unknown): encoding is string {
  return typeof encoding === "string" && encoding.trim() !== "" && encoding.trim().toLowerCase() !== "identity";
}
