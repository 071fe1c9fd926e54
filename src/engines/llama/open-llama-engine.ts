import type { Engine } from "../../core/engine.ts";
import { defaultCacheType } from "./cache-type.ts";
import { defaultBatchSize, defaultLoadTimeoutMs, defaultSlots } from "./defaults.ts";
import { fileStem, LlamaEngine } from "./llama-engine.ts";
import { ModelProcess } from "./model-process.ts";
import type { LlamaEngineOptions } from "./options.ts";
import type { OpenModelMessage } from "./protocol.ts";

/**
 * Opens a local model with llama.cpp in a process of its own. Resolves when the model is loaded; rejects with `ModelOpenError`, whose
 * message is one sentence for the user.
 */
export async function openLlamaEngine(options: LlamaEngineOptions): Promise<Engine> {
  const open: OpenModelMessage = {
    type: "open",
    model: options.model,
    contextSize: options.contextSize ?? null,
    slots: options.slots ?? defaultSlots,
    threads: options.threads ?? null,
    batchSize: options.batchSize ?? defaultBatchSize,
    gpu: options.gpu ?? "auto",
    ...(options.split && { split: options.split }),
    flashAttention: options.flashAttention ?? "auto",
    cacheTypeK: options.cacheTypeK ?? defaultCacheType,
    cacheTypeV: options.cacheTypeV ?? defaultCacheType,
    ...(options.cacheMemory !== undefined && { cacheMemory: options.cacheMemory }),
    ...(options.keepCache !== undefined && {
      keepCache: { folder: options.keepCache, name: options.name ?? fileStem(options.model) },
    }),
    ...(options.adapters && options.adapters.length > 0 && { adapters: options.adapters }),
    queueLimit: options.queueLimit ?? 64,
    speculation: options.speculation ?? "auto",
    ...(options.modelsFolder !== undefined && { modelsFolder: options.modelsFolder }),
    ...(options.hub !== undefined && { hub: options.hub }),
    ...(options.chatTemplate !== undefined && { chatTemplate: options.chatTemplate }),
    ...(options.toolFormat && { toolFormat: options.toolFormat }),
    ...(options.defaults && { defaults: options.defaults }),
    ...(options.constrainCalls !== undefined && { constrainCalls: options.constrainCalls }),
    ...(options.pooling !== undefined && { pooling: options.pooling }),
    ...(options.debug === true && { debug: true }),
  };
  let engine: LlamaEngine | undefined;
  const process = new ModelProcess(open, options.loadTimeoutMs ?? defaultLoadTimeoutMs, {
    onMessage: (message) => engine?.receive(message),
    onGone: (how) => engine?.processGone(how),
    onProgress: (progress) => options.onProgress?.(progress),
    log: (line, level) => options.log?.(line, level),
  });
  const stop = (): void => void process.stop();
  options.signal?.addEventListener("abort", stop, { once: true });
  if (options.signal?.aborted === true) stop();
  await process.opened.finally(() => options.signal?.removeEventListener("abort", stop));
  engine = new LlamaEngine(options, open, process, await process.opened, Math.floor(Date.now() / 1000));
  return engine;
}
