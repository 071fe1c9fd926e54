import { ConfigError } from "./config/config-error.ts";
import type { ModelConfig } from "./config/schema.ts";
import type { Format } from "./formats/format.ts";
import type { Engine } from "./generation/engine.ts";
import type { Log } from "./server/log.ts";
import type { ServedEngine } from "./server/model-directory.ts";
import { lean, openai } from "./wire/profile.ts";

export interface OpenOptions {
  readonly log: Log;
  /** How far a local model's loading is, 0 to 1. */
  readonly onProgress?: (
    name: string,
    progress: { readonly phase: "download" | "load"; readonly fraction: number },
  ) => void;
}

/** Opens the engine of one configured model, with how its answers look. What each kind of engine needs is loaded only here. */
export async function openServedEngine(model: ModelConfig, options: OpenOptions): Promise<ServedEngine> {
  const { aliases, wire, systemFingerprint, reasoningFields } = model;
  return {
    name: nameOf(model),
    engine: await openEngine(model, options),
    aliases,
    ...(wire && { profile: wire === "openai" ? openai : lean }),
    settings: {
      ...(systemFingerprint !== undefined && { systemFingerprint }),
      ...(reasoningFields && { reasoningFields }),
    },
  };
}

async function openEngine(model: ModelConfig, { log, onProgress }: OpenOptions): Promise<Engine> {
  const name = nameOf(model);
  switch (model.kind) {
    case "engine":
      return model.engine;
    case "local": {
      const { openLlamaEngine } = await import("./engines/llama/open-llama-engine.ts");
      const { path, chatTemplate, toolFormat, gpu, defaults, contextSize, slots, threads } = model;
      const { maxTokens, ...sampling } = defaults ?? {};
      return openLlamaEngine({
        model: path,
        name,
        contextSize,
        slots,
        threads,
        batchSize: model.batchSize,
        queueLimit: model.queueLimit,
        modelsFolder: model.modelsFolder,
        gpu: gpu === "off" ? false : gpu,
        chatTemplate: chatTemplate === undefined ? undefined : await textOf(chatTemplate),
        toolFormat: toolFormat === undefined ? undefined : await formatOf(toolFormat),
        defaults: { sampling, maxTokens },
        onProgress: (progress) => onProgress?.(name, progress),
        log: (line) => log.info({ model: name }, line),
      });
    }
    case "program": {
      const { openProgramEngine } = await import("./engines/program/open-program-engine.ts");
      return openProgramEngine({
        program: model.program as string,
        name,
        watch: model.watch,
        threads: model.threads,
        format: model.toolFormat === undefined ? undefined : await formatOf(model.toolFormat),
        log: (line) => log.info({ model: name }, line),
      });
    }
  }
}

async function textOf(file: string): Promise<string> {
  const { readFile } = await import("node:fs/promises");
  return readFile(file, "utf8").catch((cause: Error) => {
    throw new ConfigError([{ path: ["chatTemplate"], message: cause.message }], undefined, { cause });
  });
}

async function formatOf(name: string): Promise<Format> {
  const { formatNamed, knownFormats } = await import("./formats/known.ts");
  const format = formatNamed(name);
  if (format) return format;
  const known = knownFormats.map(({ id }) => id).join(", ");
  throw new ConfigError([{ path: ["toolFormat"], message: `"${name}" is not known; known are ${known}` }]);
}

/** The model's name in logs and messages; for a local model also its id. */
export function nameOf(model: ModelConfig): string {
  if (model.name !== undefined) return model.name;
  switch (model.kind) {
    case "local":
      return fileName(model.path).replace(/\.gguf$/i, "");
    case "upstream":
      return new URL(typeof model.url === "string" ? model.url : (model.url[0] ?? "")).host;
    case "program":
      return typeof model.program === "string" ? fileName(model.program).replace(/\.[cm]?[jt]s$/i, "") : "program";
    case "engine":
      return model.engine.models()[0]?.id ?? "engine";
  }
}

function fileName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}
