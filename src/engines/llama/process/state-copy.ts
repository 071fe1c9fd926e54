import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LlamaContextSequence } from "node-llama-cpp";

/** From so many tokens on, a copy is cheaper than reading them anew, by far: 480 tokens of a 135M model took 15 ms in place of seconds. */
export const worthACopy = 64;

/** After a copy has failed (a full disk, a folder that cannot be written), none is tried for this long, in milliseconds. */
export const retryCopyMs = 60_000;

/**
 * Gives one sequence what another one knows. The library has no public copy between sequences, but it saves a sequence to a file and
 * loads it into another; the file lives for that moment only. For models in main memory: a GPU reads a prompt faster than that.
 * Rejects when the file cannot be written or read, and then `to` may hold anything.
 */
export async function copyState(from: LlamaContextSequence, to: LlamaContextSequence): Promise<void> {
  const file = join(tmpdir(), `truewire-${randomUUID()}.state`);
  try {
    await from.saveStateToFile(file);
    // The risk to accept is another model's file; this one was written a moment ago.
    await to.loadStateFromFile(file, { acceptRisk: true });
  } finally {
    await rm(file, { force: true });
  }
}
