import { AbortFlag } from "./abort-flag.ts";
import { attachThreads } from "./attach-threads.ts";
import type { NativeModel } from "./native-model.ts";
import type { ContextParams, Pointer } from "./structs.ts";

export interface ContextSizes {
  /** Tokens that all sequences hold together. */
  readonly room: number;
  readonly sequences: number;
  /** Tokens of one pass at most. */
  readonly batchSize: number;
  readonly threads: number;
}

/** A context as llama.cpp made it, with what it needs for as long as it lives. */
export interface MadeContext {
  readonly pointer: Pointer;
  /** Ends the pass that is under way. */
  readonly abort: AbortFlag;
  free(): void;
}

/**
 * Makes one with threads of its own, whose passes can be ended early. `more`: what else is not llama.cpp's default. Throws an Error with
 * llama.cpp's reason.
 */
export function makeContext(model: NativeModel, sizes: ContextSizes, more: Partial<ContextParams>): MadeContext {
  const { api } = model;
  const { room, sequences, batchSize, threads } = sizes;
  const abort = new AbortFlag(api);
  api.takeComplaint();
  const pointer = api.llama_init_from_model(model.pointer, {
    ...api.llama_context_default_params(),
    n_ctx: room,
    n_batch: batchSize,
    n_ubatch: batchSize,
    n_seq_max: sequences,
    n_threads: threads,
    n_threads_batch: threads,
    abort_callback: abort.callback,
    abort_callback_data: abort.data,
    swa_full: false,
    ...more,
  });
  if (pointer === null) {
    abort.free();
    throw new Error(api.takeComplaint() ?? "llama.cpp cannot make a context");
  }
  const freePool = attachThreads(api, pointer, threads);
  return {
    pointer,
    abort,
    free() {
      api.llama_free(pointer);
      freePool();
      abort.free();
    },
  };
}
