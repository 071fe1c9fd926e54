import type { LocalModelConfig } from "../../config/model-schema.ts";
import {
  defaultBatchSize,
  defaultRecurrentDraftTokens,
  defaultSampling,
  defaultSlots,
  maxDefaultContextSize,
} from "../../../engines/llama/defaults.ts";
import { adapterBytes } from "../../../engines/llama/file/adapter-bytes.ts";
import { needWithEmbeddings } from "../../../engines/llama/file/embedding-need.ts";
import { embeddingPlan } from "../../../engines/llama/file/embedding-plan.ts";
import { localEndpoints } from "../../../engines/llama/file/local-endpoints.ts";
import { draftNeed, sumOf, totalOf } from "../../../engines/llama/file/memory-need.ts";
import type { MemoryNeed } from "../../../engines/llama/file/memory-need.ts";
import { readModelFile, readProjectorFile, recommendedSampling } from "../../../engines/llama/file/read-model-file.ts";
import { findMtmd } from "../../../engines/llama/vision/mtmd-api.ts";
import { projectorNextTo } from "../../../engines/llama/vision/find-projector.ts";
import { publicAdapters } from "../../../engines/llama/public-adapters.ts";
import type { ModelSource } from "../../../engines/llama/process/model-file.ts";
import type { Engine, ModelDefaults, ModelFileFacts, ModelInfo } from "../../../wire/core/engine.ts";
import { samplingParameters } from "../../../wire/apis/models/models.ts";
import { recognizeFormat } from "../../../text/formats/known.ts";
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
      takesAudio: false,
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
    const { metadata = {} } = this.#info.file ?? {};
    const { draft } = this.#config;
    const ofDraft = draft && this.#draftPath !== undefined ? { draft: { ...draft, path: this.#draftPath } } : {};
    const config = { ...this.#config, path, ...ofDraft };
    return openLocalModel(config, this.#name, options, recommendedSampling(metadata));
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
    const { path, modelsFolder, mmproj, llamaLibraries } = this.#config;
    return { model: path, modelsFolder, mmproj, llamaLibraries };
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
    const projector = await this.#projector(path);
    const { trainedContext = maxDefaultContextSize } = file;
    const embedding = embeddingPlan(file, { model: this.#config.path, pooling, contextSize, batchSize });
    const contextLength = embedding?.isOnlyUse
      ? embedding.maxInputTokens
      : (contextSize ?? Math.min(trainedContext, maxDefaultContextSize));
    const plan = { contextSize: contextLength, slots, batchSize, cacheTypeK, cacheTypeV, cacheMemory };
    this.#need = needWithEmbeddings(file, plan, embedding);
    if (projector) this.#need = { ...this.#need, buffers: this.#need.buffers + projector.bytes };
    const { draft, speculation } = this.#config;
    if (draft && speculation !== "off" && this.#draftPath !== undefined && embedding?.isOnlyUse !== true) {
      const ofDraft = draftNeed(
        await readModelFile(this.#draftPath),
        file,
        plan,
        draft.maxTokens ?? defaultRecurrentDraftTokens,
      );
      this.#need = sumOf(this.#need, ofDraft);
    }
    this.#onlyEmbeds = embedding?.isOnlyUse ?? false;
    const { images: takesImages = false, audio: takesAudio = false } = projector?.takes ?? {};
    if (this.#info.takesImages !== takesImages || this.#info.takesAudio !== takesAudio)
      this.#info = { ...this.#info, takesImages, takesAudio };
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
        reasons,
        ...(endpoints.includes("completions") && { defaults: this.#defaults(read.facts.metadata, template) }),
      };
    }
    return totalOf(this.#need);
  }

  /** Values for requests that do not set them. */
  #defaults(metadata: ModelFileFacts["metadata"], template = ""): readonly ModelDefaults[] {
    const { maxTokens, maxReasoningTokens, maxStringTokens: _, ...sampling } = this.#config.defaults ?? {};
    const effort = effortBy(template);
    const all: readonly ModelDefaults[] = [
      { origin: "engine", parameters: samplingParameters(defaultSampling) },
      { origin: "file", parameters: samplingParameters(recommendedSampling(metadata)) },
      { origin: "template", parameters: effort === undefined ? {} : { reasoning_effort: effort } },
      {
        origin: "configuration",
        parameters: {
          ...samplingParameters(sampling),
          ...(maxTokens !== undefined && { max_completion_tokens: maxTokens }),
          ...(maxReasoningTokens !== undefined && { thinking_token_budget: maxReasoningTokens }),
        },
      },
    ];
    return all.filter(({ parameters }) => Object.keys(parameters).length > 0);
  }

  /** The model's projector; `null` if it has none, if that cannot be read, or if libmtmd is not installed. */
  async #projector(path: string): Promise<Awaited<ReturnType<typeof readProjectorFile>> | null> {
    const { mmproj, llamaLibraries } = this.#config;
    if (mmproj === "off" || !findMtmd(llamaLibraries)) return null;
    const file = mmproj ?? (await projectorNextTo(path));
    return file === null ? null : readProjectorFile(file).catch(() => null);
  }
}

/** The reasoning effort that a template sets for requests without one, as gpt-oss's template does; undefined if it sets none. */
function effortBy(template: string): string | undefined {
  const [, set, alternative] =
    /reasoning_effort is (?:not defined|undefined)[^%]{0,40}%\}\s{0,40}\{%-?\s{0,10}set reasoning_effort ?= ?["'](\w{1,20})["']|reasoning_effort ?\| ?default\(["'](\w{1,20})["']/.exec(
      template,
    ) ?? [];
  return set ?? alternative;
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
