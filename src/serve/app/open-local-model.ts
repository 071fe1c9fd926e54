import { readFile } from "node:fs/promises";
import { ConfigError } from "../config/config-error.ts";
import type { LocalModelConfig } from "../config/model-schema.ts";
import { openLlamaEngine } from "../../engines/llama/llama-engine.ts";
import type { JobOrigin } from "../../engines/lifecycle/limited-jobs.ts";
import type { Background } from "../../engines/upstream/background/background.ts";
import { formatOf } from "./format-of.ts";
import type { Engine } from "../../wire/core/engine.ts";
import type { Sampling } from "../../wire/core/request.ts";
import { observerOf } from "./open-options.ts";
import type { OpenOptions } from "./open-options.ts";

/**
 * Opens a configured GGUF model. `recommended`: by its file, for requests and a configuration that do not set it. Throws `ModelOpenError` or
 * `ConfigError`, each with one clear sentence.
 */
export async function openLocalModel(
  model: LocalModelConfig,
  name: string,
  options: OpenOptions,
  recommended: Sampling = {},
): Promise<Engine> {
  const { path, contextSize, slots, threads, batchSize, gpu, queueLimit, modelsFolder, constrainCalls } = model;
  const { stepTimeout, loadTimeout, splitMode, tensorSplit, mainGpu, flashAttention, cacheTypeK, cacheTypeV } = model;
  const {
    cacheMemory,
    keepCache,
    adapters,
    speculation,
    draft,
    pooling,
    maxTokenGap,
    mmproj,
    llamaLibraries,
    loopGuard,
  } = model;
  const split = {
    ...(splitMode !== undefined && { mode: splitMode }),
    ...(tensorSplit !== undefined && { shares: tensorSplit }),
    ...(mainGpu !== undefined && { mainGpu }),
  };
  const { maxTokens, maxStringTokens, maxReasoningTokens, ...sampling } = model.defaults ?? {};
  const limits = {
    ...(maxTokens !== undefined && { maxTokens }),
    ...(maxStringTokens !== undefined && { maxStringTokens }),
    ...(maxReasoningTokens !== undefined && { maxReasoningTokens }),
  };
  const chatTemplate = model.chatTemplate === undefined ? undefined : await templateIn(model.chatTemplate);
  return openLlamaEngine({
    model: path,
    name,
    ...(contextSize !== undefined && { contextSize }),
    ...(slots !== undefined && { slots }),
    ...(threads !== undefined && { threads }),
    ...(batchSize !== undefined && { batchSize }),
    ...(maxTokenGap !== undefined && { maxTokenGapMs: maxTokenGap }),
    ...(gpu !== undefined && { gpu: gpu === "off" ? false : gpu }),
    split,
    ...(flashAttention !== undefined && {
      flashAttention: flashAttention === "auto" ? flashAttention : flashAttention === "on",
    }),
    ...(cacheTypeK !== undefined && { cacheTypeK }),
    ...(cacheTypeV !== undefined && { cacheTypeV }),
    ...(cacheMemory !== undefined && { cacheMemory }),
    ...(keepCache !== undefined && { keepCache }),
    ...(adapters && { adapters }),
    ...(mmproj !== undefined && { mmproj: mmproj === "off" ? (false as const) : mmproj }),
    ...(llamaLibraries !== undefined && { llamaLibraries }),
    readImage,
    ...(constrainCalls !== undefined && { constrainCalls }),
    ...(speculation !== undefined && { speculation }),
    ...(loopGuard !== undefined && { loopGuard: loopGuard === "on" }),
    ...(draft && { draft }),
    ...(pooling !== undefined && { pooling }),
    ...(queueLimit !== undefined && { queueLimit }),
    ...(stepTimeout !== undefined && { stepTimeoutMs: stepTimeout }),
    ...(loadTimeout !== undefined && { loadTimeoutMs: loadTimeout }),
    ...(modelsFolder !== undefined && { modelsFolder }),
    ...(chatTemplate !== undefined && { chatTemplate }),
    ...(model.toolFormat !== undefined && { toolFormat: formatOf(model.toolFormat) }),
    defaults: { sampling: { ...recommended, ...sampling }, ...limits },
    ...(options.signal && { signal: options.signal }),
    onProgress: (progress) => options.onProgress?.(name, progress),
    log: observerOf(options.log, name),
    debug: options.log.isLevelEnabled?.("debug") === true,
  });
}

/** For all models of this process. */
let background: Background | undefined;

/** Returns a data URL of an image that libmtmd reads: downloads it from the public internet, converts WebP, HEIC and others with sharp. */
async function readImage(url: string, origin: JobOrigin): Promise<string> {
  const { openBackground } = await import("../../engines/upstream/background/background.ts");
  background ??= openBackground();
  const data = /^https?:/i.test(url) ? await background.download(url, "image/*", origin) : url;
  const converted = await background.convertImage(data, { types: readableTypes }, origin);
  return converted.url ?? url;
}

const readableTypes = ["image/png", "image/jpeg", "image/gif", "image/bmp"];

async function templateIn(file: string): Promise<string> {
  return readFile(file, "utf8").catch((cause: Error) => {
    throw new ConfigError([{ path: ["chatTemplate"], message: cause.message }], undefined, { cause });
  });
}
