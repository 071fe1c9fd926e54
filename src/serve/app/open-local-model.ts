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
  const { chatTemplate, toolFormat, defaults } = model;
  return openLlamaEngine({
    ...model,
    model: model.path,
    name,
    readImage,
    chatTemplate: chatTemplate === undefined ? undefined : await templateIn(chatTemplate),
    toolFormat: toolFormat === undefined ? undefined : formatOf(toolFormat),
    defaults: { ...recommended, ...defaults },
    signal: options.signal,
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
  const text = await readFile(file, "utf8").catch((cause: Error) => {
    throw new ConfigError([{ path: ["chatTemplate"], message: cause.message }], undefined, { cause });
  });
  // The byte order mark that programs on Windows write would be a part of each prompt.
  return text.replace(/^\uFEFF/, "");
}
