import type { LocalModelConfig } from "../../config/model-schema.ts";
import {
  defaultBatchSize,
  defaultDraftTokens,
  defaultSlots,
  maxDefaultContextSize,
} from "../../engines/llama/defaults.ts";
import { adapterBytes } from "../../engines/llama/file/adapter-bytes.ts";
import { needWithEmbeddings } from "../../engines/llama/file/embedding-need.ts";
import { embeddingPlan } from "../../engines/llama/file/embedding-plan.ts";
import { localEndpoints } from "../../engines/llama/file/local-endpoints.ts";
import { draftNeed, sumOf, totalOf } from "../../engines/llama/file/memory-need.ts";
import type { MemoryNeed } from "../../engines/llama/file/memory-need.ts";
import { readModelFile } from "../../engines/llama/file/read-model-file.ts";
import { publicAdapters } from "../../engines/llama/public-adapters.ts";
import type { ModelSource } from "../../engines/llama/process/model-file.ts";
import type { Engine, ModelInfo } from "../../core/engine.ts";
import { recognizeFormat } from "../../formats/known.ts";
import { openLocalModel } from "../open-local-model.ts";
import type { OpenOptions } from "../open-options.ts";
import type { Loadable, LoadOptions } from "./model-keeper.ts";
import type { Pulls } from "./pulls.ts";

/** A configured GGUF model. */
export class LoadableLocalModel implements Loadable {
  readonly #config: LocalModelConfig;
  readonly #name: string;
  readonly #options: OpenOptions;
  readonly #pulls: Pulls;
  /** undefined: an `hf:` model of which it is not known whether it is here. */
  #path: string | undefined;
  /** The same of its draft model. */
  #draftPath: string | undefined;
  #need: MemoryNeed | undefined;
  #onlyEmbeds = false;
  #info: ModelInfo;

  constructor(config: LocalModelConfig, name: string, options: OpenOptions, pulls: Pulls) {
    this.#config = config;
    this.#name = name;
    this.#options = options;
    this.#pulls = pulls;
    if (!config.path.startsWith("hf:")) this.#path = config.path;
    if (config.draft?.path.startsWith("hf:") === false) this.#draftPath = config.draft.path;
    this.#info = {
      id: name,
      created: Math.floor(Date.now() / 1000),
      ownedBy: "local",
      prewarms: "local",
      takesImages: false,
      endpoints: ["chat", "completions"],
      ...(config.adapters && { adapters: publicAdapters(config.adapters) }),
      ...(config.contextSize !== undefined && { contextLength: config.contextSize }),
    };
  }

  get info(): ModelInfo {
    return this.#info;
  }

  /** Reads what the file says, where it is here. Returns the bytes that the model takes, if they are known by that. */
  async look(): Promise<number | undefined> {
    return this.#path === undefined ? undefined : this.#read(this.#path);
  }

  async measure({ onProgress, signal }: LoadOptions): Promise<number> {
    try {
      this.#path ??= await this.#pull(this.source, onProgress, signal);
      const { draft, speculation } = this.#config;
      if (draft && speculation !== "off")
        this.#draftPath ??= await this.#pull({ ...this.source, model: draft.path }, onProgress, signal);
      return await this.#read(this.#path);
    } catch (error) {
      // What was downloaded may be deleted, and is downloaded again.
      if (this.#config.path.startsWith("hf:")) this.#path = undefined;
      if (this.#config.draft?.path.startsWith("hf:")) this.#draftPath = undefined;
      throw error;
    }
  }

  load({ onProgress, signal }: LoadOptions): Promise<Engine> {
    const { path = this.#config.path } = { path: this.#path };
    const options: OpenOptions = {
      ...this.#options,
      signal,
      onProgress: (name, progress) => {
        onProgress(progress);
        this.#options.onProgress?.(name, progress);
      },
    };
    const { draft } = this.#config;
    const ofDraft = draft && this.#draftPath !== undefined ? { draft: { ...draft, path: this.#draftPath } } : {};
    return openLocalModel({ ...this.#config, path, ...ofDraft }, this.#name, options);
  }

  /** The memory that the model needs, for people: "1.9 GiB (1.1 GiB of weights, 0.6 GiB for 4 × 8192 tokens of context, 0.2 GiB other)". */
  needInWords(): string {
    if (!this.#need) return "an unknown amount";
    const { weights, cache, promptCache: kept, buffers: rest } = this.#need;
    const { slots = defaultSlots } = this.#config;
    const tokens = `${this.#info.contextLength ?? maxDefaultContextSize} tokens`;
    const context = this.#onlyEmbeds ? `inputs of ${tokens}` : `${slots} × ${tokens} of context`;
    return (
      `${gibibytes(totalOf(this.#need))} (${gibibytes(weights)} of weights, ${gibibytes(cache)} for ${context}, ` +
      `${gibibytes(kept + rest)} other)`
    );
  }

  get source(): ModelSource {
    const { path, modelsFolder } = this.#config;
    return { model: path, ...(modelsFolder !== undefined && { modelsFolder }) };
  }

  async #pull(source: ModelSource, onProgress: LoadOptions["onProgress"], signal: AbortSignal): Promise<string> {
    return this.#pulls.pull(
      source,
      ({ bytes, totalBytes }) => {
        const progress = { phase: "download", fraction: totalBytes > 0 ? bytes / totalBytes : 0 } as const;
        onProgress(progress);
        this.#options.onProgress?.(this.#name, progress);
      },
      signal,
    );
  }

  async #read(path: string): Promise<number> {
    const { contextSize = null, slots = defaultSlots, batchSize = defaultBatchSize } = this.#config;
    const { chatTemplate, pooling = null, cacheTypeK, cacheTypeV, cacheMemory } = this.#config;
    const read = await readModelFile(path);
    const file = { ...read, bytes: read.bytes + (await adapterBytes(this.#config.adapters)) };
    const { trainedContext = maxDefaultContextSize } = file;
    const embedding = embeddingPlan(file, { model: this.#config.path, pooling, contextSize, batchSize });
    const contextLength = embedding?.isOnlyUse
      ? embedding.maxInputTokens
      : (contextSize ?? Math.min(trainedContext, maxDefaultContextSize));
    const plan = {
      contextSize: contextLength,
      slots,
      batchSize,
      ...(cacheTypeK !== undefined && { cacheTypeK }),
      ...(cacheTypeV !== undefined && { cacheTypeV }),
      ...(cacheMemory !== undefined && { cacheMemory }),
    };
    this.#need = needWithEmbeddings(file, plan, embedding);
    const { draft, speculation } = this.#config;
    if (draft && speculation !== "off" && this.#draftPath !== undefined && embedding?.isOnlyUse !== true) {
      const ofDraft = draftNeed(
        await readModelFile(this.#draftPath),
        file,
        plan,
        draft.maxTokens ?? defaultDraftTokens,
      );
      this.#need = sumOf(this.#need, ofDraft);
    }
    this.#onlyEmbeds = embedding?.isOnlyUse ?? false;
    const endpoints = localEndpoints(embedding, file.hasTemplate || chatTemplate !== undefined);
    const { info } = this;
    if (info.contextLength !== contextLength || info.endpoints.join() !== endpoints.join())
      this.#info = { ...info, contextLength, endpoints };
    const template = chatTemplate ?? read.facts.template;
    const { file: known } = this.#info;
    if (known?.bytes !== read.facts.bytes || known.modified !== read.facts.modified) {
      const isByTemplate = template !== undefined && this.#config.toolFormat === undefined;
      const reasons = isByTemplate ? reasonsBy(template) : undefined;
      this.#info = {
        ...this.#info,
        file: { ...read.facts, ...(template !== undefined && { template }) },
        ...(reasons !== undefined && { reasons }),
      };
    }
    return totalOf(this.#need);
  }
}

/** Whether a model reasons, by its chat template; undefined: its format may have reasoning that the template does not show. */
function reasonsBy(template: string): boolean | undefined {
  const format = recognizeFormat(template);
  if (!format || template.includes("<think>")) return undefined;
  if (!format.reasoning) return false;
  return format.reasoning.open.some((marker) => template.includes(marker)) || undefined;
}

export function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
