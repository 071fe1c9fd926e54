import { freemem } from "node:os";
import type { GgufInsights } from "node-llama-cpp";
import { ModelOpenError } from "../model-open-error.ts";
import { largestDefaultContext } from "../defaults.ts";
import type { OpenMessage } from "../protocol.ts";

/** The smallest context size that is chosen without being asked for. */
const smallestDefault = 1024;

/**
 * The context size to open with: what was asked for if it fits into memory, else the largest default that does. Throws ModelOpenError
 * when there is not enough memory for the weights and the KV caches. With a GPU the library's own checks decide.
 */
export async function fittingContextSize(insights: GgufInsights, options: OpenMessage, gpu: boolean): Promise<number> {
  const trained = insights.trainContextSize ?? largestDefaultContext;
  let size = options.contextSize ?? Math.min(trained, largestDefaultContext);
  if (gpu) return size;
  const weights = insights.modelSize;
  const free = availableMemory();
  for (;;) {
    const cache = await contextBytes(insights, options, size);
    if (weights + cache <= free) return size;
    if (options.contextSize !== null || size / 2 < smallestDefault) {
      throw new ModelOpenError(
        "not-enough-memory",
        `${options.model} needs about ${gibibytes(weights + cache)} of memory (${gibibytes(weights)} of weights, ${gibibytes(cache)} for ` +
          `${options.slots} × ${size} tokens of context), but only ${gibibytes(free)} are free: use fewer slots, a smaller context, or ` +
          "a smaller quantization.",
      );
    }
    size = Math.floor(size / 2);
  }
}

async function contextBytes(insights: GgufInsights, options: OpenMessage, contextSize: number): Promise<number> {
  const { cpuRam } = insights.estimateContextResourceRequirements({
    contextSize,
    sequences: options.slots,
    batchSize: options.batchSize,
    modelGpuLayers: 0,
  });
  return cpuRam;
}

/** What this process may still use: the system's free memory with what caches give back, within the limits of its control group. */
function availableMemory(): number {
  return process.availableMemory?.() ?? freemem();
}

function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
