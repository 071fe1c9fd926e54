import type { LlamaApi } from "./llama-api.ts";
import type { Pointer, ThreadPoolParams } from "./structs.ts";

const cpuDevice = 0;
/**
 * How long threads wait for the next pass awake, of 100: passes follow each other within a millisecond, and a thread that never sleeps
 * takes its core from everything else.
 */
const poll = 1;

/**
 * Gives a context threads of its own, for as long as it lives: llama.cpp makes new ones for each pass where it is given none. Returns what
 * frees them, once the context is freed.
 */
export function attachThreads(api: LlamaApi, context: Pointer, threads: number): () => void {
  const none = (): void => {};
  if (threads <= 1) return none;
  const { koffi, structs } = api;
  const registry = api.ggml_backend_dev_backend_reg(api.ggml_backend_dev_by_type(cpuDevice));
  const make = api.ggml_backend_reg_get_proc_address(registry, "ggml_threadpool_new");
  const free = api.ggml_backend_reg_get_proc_address(registry, "ggml_threadpool_free");
  if (make === null || free === null) return none;
  const newPool = koffi.decode(make, koffi.proto("void *", [koffi.pointer(structs.threadPoolParams)])) as (
    params: ThreadPoolParams,
  ) => Pointer;
  const freePool = koffi.decode(free, koffi.proto("void", ["void *"])) as (pool: Pointer) => void;
  const pool = newPool({ ...api.ggml_threadpool_params_default(threads), poll });
  if (pool === null) return none;
  api.llama_attach_threadpool(context, pool, pool);
  return () => freePool(pool);
}
