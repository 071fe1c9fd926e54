import { freemem } from "node:os";
import { largestDefaultContext } from "../defaults.ts";
import { memoryNeed } from "../file/memory-need.ts";
import type { ModelFile } from "../file/read-model-file.ts";
import { ModelOpenError } from "../model-open-error.ts";
import type { OpenMessage } from "../protocol.ts";

/** The smallest context size that is chosen without being asked for. */
const smallestDefault = 1024;

/** How many tokens one answer has, with its prompt, and how many all of them have together. */
export interface ContextRoom {
  readonly contextSize: number;
  readonly room: number;
  /** What may be kept beside them, in bytes. */
  readonly cacheMemory: number;
}

/**
 * The context to open with. Each answer may have as many tokens as were asked for, else as many as the model was trained for, at most
 * 8192. All slots together have so many times their number; where there is no memory for that, slots with one memory share what there
 * is, which is enough for one answer at least. Throws ModelOpenError when there is not enough memory. With a GPU it is
 * llama.cpp that finds out. `reserved`: bytes that are for something else.
 */
export function fittingContext(
  file: ModelFile,
  options: OpenMessage,
  { gpu, oneMemory, reserved }: { readonly gpu: boolean; readonly oneMemory: boolean; readonly reserved: number },
): ContextRoom {
  const { slots } = options;
  const trained = file.trainedContext ?? largestDefaultContext;
  let contextSize = options.contextSize ?? Math.min(trained, largestDefaultContext);
  const free = availableMemory() - reserved;
  const roomOf = (each: number, used: number): ContextRoom => {
    const { kept } = memoryNeed(file, { ...options, contextSize: each });
    return { contextSize, room: each * slots, cacheMemory: Math.min(kept, Math.max(0, free - used)) };
  };
  if (gpu) return roomOf(contextSize, 0);
  for (;;) {
    const least = oneMemory ? contextSize / slots : contextSize;
    for (let each = contextSize; each >= least; each = Math.floor(each * 0.75)) {
      const used = bytesOf(file, options, each);
      if (used <= free) return roomOf(each, used);
    }
    if (options.contextSize !== null || contextSize / 2 < smallestDefault) {
      const all = bytesOf(file, options, contextSize);
      const { weights } = memoryNeed(file, { ...options, contextSize });
      throw new ModelOpenError(
        "not-enough-memory",
        `${options.model} needs about ${gibibytes(all)} of memory (${gibibytes(weights)} of weights, ${gibibytes(all - weights)} for ` +
          `${slots} × ${contextSize} tokens of context), but only ${gibibytes(free)} are free: use fewer slots, a smaller context, or ` +
          "a smaller quantization.",
      );
    }
    contextSize = Math.floor(contextSize / 2);
  }
}

function bytesOf(file: ModelFile, options: OpenMessage, contextSize: number): number {
  const { weights, cache } = memoryNeed(file, { ...options, contextSize });
  return weights + cache;
}

/** What this process may still use: the system's free memory with what caches give back, within the limits of its control group. */
export function availableMemory(): number {
  return process.availableMemory?.() ?? freemem();
}

export function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
