import type { LogListener } from "../../../wire/core/generation-observer.ts";
import { adapterBytes } from "../file/adapter-bytes.ts";
import { embeddingNeed, needWithEmbeddings } from "../file/embedding-need.ts";
import type { EmbeddingPlan } from "../file/embedding-plan.ts";
import { draftNeed, memoryNeed, totalOf } from "../file/memory-need.ts";
import { readModelFile, type ModelFile } from "../file/read-model-file.ts";
import { chooseLibraries, type ChosenLibraries } from "../libraries/choose-libraries.ts";
import type { LibraryFolder } from "../libraries/library-folders.ts";
import { ModelOpenError } from "../model-open-error.ts";
import { defaultDraftTokens, defaultRecurrentDraftTokens, maxDefaultContextSize } from "../defaults.ts";
import type { DraftOptions, OpenProgress } from "../options.ts";
import type { ModelFacts } from "../preparing/model-facts.ts";
import type { ModelDevice, OpenModelMessage } from "../protocol.ts";
import type { EncoderProcess } from "../vision/encoder-process.ts";
import { openEncoder } from "../vision/open-encoder.ts";
import { NativeAdapters } from "./c-api/adapters.ts";
import { loadLlamaApi, type LlamaApi } from "./c-api/llama-api.ts";
import type { NativeContext, NativeEmbeddingContext } from "./c-api/native-context.ts";
import { NativeModel } from "./c-api/native-model.ts";
import type { Koffi } from "./c-api/structs.ts";
import { DraftModel } from "./drafting/draft-model.ts";
import { draftTexts } from "./drafting/draft-text.ts";
import {
  benefitsFromUnified,
  hasRoomForWeights,
  fittingContext,
  fittingEmbeddings,
  openEmbeddingContext,
  openSecondaryEmbeddingContext,
  type ContextCapacity,
} from "./memory.ts";
import { checkIsGguf, importLibrary, libraryMissing, modelFile } from "./model-file.ts";
import { checkAttention, defaultThreads, openContext } from "./open-context.ts";
import { PersistedPromptCache, stateIdentity } from "./prompt-cache/persisted-prompt-cache.ts";
import { PromptCache } from "./prompt-cache/prompt-cache.ts";
import { Sequence } from "./prompt-cache/sequence.ts";
import { Vocabulary } from "./tokens/vocabulary.ts";

/** What a model generates answers with. */
export interface Answering {
  readonly context: NativeContext;
  /** One for each slot, in the order of their ids. */
  readonly sequences: readonly Sequence[];
  readonly promptCache: PromptCache;
  /** Absent if the model has no adapters. */
  readonly adapters?: NativeAdapters;
  /** Absent if no draft model is configured. */
  readonly draftModel?: DraftModel;
  /** Absent if the prompt cache is not persisted. */
  readonly persistedCache?: PersistedPromptCache;
}

export interface OpenModel {
  readonly model: NativeModel;
  /** `null` if the model takes no images. */
  readonly encoder: EncoderProcess | null;
  /** `null` if the model only computes embeddings. */
  readonly answering: Answering | null;
  /** `null` if the model does not support embeddings. */
  readonly embedding: { readonly plan: EmbeddingPlan; readonly open: () => NativeEmbeddingContext } | null;
  readonly vocabulary: Vocabulary;
  readonly facts: ModelFacts;
  readonly device: ModelDevice;
}

export interface OpenListeners {
  readonly onProgress: (progress: OpenProgress) => void;
  /** Called before the model is loaded, if a GPU is used. */
  readonly onGpu: () => void;
  readonly log: LogListener;
}

/**
 * Up to this number of slots, the KV cache may be unified. With 16 sequences of 400 tokens without a common prefix, a decode took a third longer
 * with a unified cache than with one for each sequence.
 */
const maxUnifiedSlots = 4;

/** Finds, checks and loads a model, and creates its context. Throws ModelOpenError with one sentence for every failure. */
export async function openModel(options: OpenModelMessage, listeners: OpenListeners): Promise<OpenModel> {
  const { llamaLibraries } = options;
  const { onProgress, log } = listeners;
  const koffi = await importKoffi();
  const chosen: ChosenLibraries | undefined =
    llamaLibraries === undefined
      ? chooseLibraries(koffi, options.gpu !== "off")
      : { libraries: { folder: llamaLibraries, more: [] } };
  if (!chosen) throw libraryMissing();
  const path = await findFile(options, onProgress);
  const api = loadLibraries(koffi, chosen.libraries, llamaLibraries, (line, level) => {
    // The warning concerns the capacity of all slots together. A context that is too long for one answer is logged below.
    if (!line.includes("training context overflow")) log(line, level);
  });
  try {
    if (options.gpu !== "off" && api.gpuName() !== null) listeners.onGpu();
    return await load(api, path, { ...options, noGpu: options.noGpu ?? chosen.noGpu }, listeners);
  } catch (error) {
    if (error instanceof ModelOpenError) throw error;
    const message = error instanceof Error ? error.message : String(error);
    const architecture = /unknown model architecture: '(.*)'/.exec(message)?.[1];
    throw architecture === undefined
      ? new ModelOpenError("load-failed", `${path} cannot be loaded: ${message}.`, error)
      : new ModelOpenError(
          "unknown-architecture",
          `${path} has the architecture "${architecture}", which the installed llama.cpp (${api.llama_version()}) does not support.`,
          error,
        );
  }
}

/** Loads koffi, which calls functions of native libraries and is installed with Truewire on platforms that it supports. */
async function importKoffi(): Promise<Koffi> {
  try {
    return (await import("koffi")).default;
  } catch (cause) {
    throw new ModelOpenError(
      "library-missing",
      "Local models need the package koffi, which is not installed here or not made for this platform: npm install koffi@3.3.4",
      cause,
    );
  }
}

/** `own`: the configured folder. */
function loadLibraries(koffi: Koffi, libraries: LibraryFolder, own: string | undefined, log: LogListener): LlamaApi {
  try {
    return loadLlamaApi(koffi, libraries, log);
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    const help =
      libraries.folder === own
        ? "--llama-libraries needs a folder with a build or a release of llama.cpp 0.5.0"
        : "Install them again: truewire libraries install";
    throw new ModelOpenError(
      "load-failed",
      `The libraries of llama.cpp in ${libraries.folder} cannot be used: ${message.replace(/\.$/, "")}. ${help}`,
      cause,
    );
  }
}

async function findFile(options: OpenModelMessage, onProgress: (progress: OpenProgress) => void): Promise<string> {
  if (!options.model.startsWith("hf:")) {
    await checkIsGguf(options.model);
    return options.model;
  }
  return await modelFile(await importLibrary(), options, ({ bytes, totalBytes }) =>
    onProgress({ phase: "download", fraction: totalBytes > 0 ? bytes / totalBytes : 0 }),
  );
}

async function load(
  api: LlamaApi,
  path: string,
  options: OpenModelMessage,
  { onProgress, log }: Pick<OpenListeners, "onProgress" | "log">,
): Promise<OpenModel> {
  checkAttention(options);
  const hasGpu = options.gpu !== "off" && api.llama_supports_gpu_offload();
  const read = await readModelFile(path);
  const file = { ...read, bytes: read.bytes + (await adapterBytes(options.adapters)) };
  const plan = fittingEmbeddings(file, options, hasGpu);
  if (plan?.isOnlyUse === true) {
    if (options.adapters)
      throw new ModelOpenError("load-failed", `${path} only makes embeddings, for which adapters cannot be used.`);
    if (options.draft)
      throw new ModelOpenError("load-failed", `${path} only makes embeddings, for which a draft model cannot be used.`);
    const need = needWithEmbeddings(file, { ...options, contextSize: 0 }, plan);
    const readsWeights = hasRoomForWeights(totalOf(need), file.bytes, hasGpu);
    return loadEmbedder(api, path, options, { plan, hasGpu, readsWeights, onProgress });
  }
  const mayUnify = options.slots <= maxUnifiedSlots && !file.usesLongRope;
  const draft = options.speculation === "off" ? undefined : await draftFile(options, onProgress);
  const forEmbeddings = plan ? embeddingNeed(file, plan) : { cache: 0, pass: 0 };
  const reserved = forEmbeddings.cache + forEmbeddings.pass + (draft ? bytesOfDraft(draft, file, options) : 0);
  const sizes = fittingContext(file, options, { gpu: hasGpu, unifiedKv: mayUnify, reserved });
  if (sizes.contextSize > (file.trainedContext ?? Infinity))
    log(`The model was trained for ${file.trainedContext} tokens, and has ${sizes.contextSize}.`, "info");
  if (sizes.capacity < sizes.contextSize * options.slots)
    log(
      `There is memory for ${sizes.capacity} tokens: ${options.slots} answers of up to ${sizes.contextSize} tokens share them.`,
      "info",
    );
  const need = memoryNeed(file, { ...options, contextSize: sizes.capacity / options.slots });
  const readsWeights = hasRoomForWeights(totalOf(need) + reserved, file.bytes, hasGpu);
  const loading = { options, hasGpu, readsWeights, onProgress };
  const { model, created, device } = loadWith(api, path, loading, (loaded) => {
    // A context reserves memory for the adapters that are loaded when it is created.
    const adapters = options.adapters && new NativeAdapters(loaded, options.adapters);
    const rollback = draft && (draft.draft.maxTokens ?? defaultRecurrentDraftTokens);
    const unifiedKv = mayUnify && benefitsFromUnified(loaded, sizes, options.slots, hasGpu);
    return { adapters, context: openContext(loaded, { ...sizes, unifiedKv }, options, hasGpu, rollback) };
  });
  const { adapters, context } = created;
  const { unifiedKv } = context;
  testContext(context);
  const sequences = Array.from({ length: options.slots }, (_, id) => new Sequence(context, id));
  const promptCache = new PromptCache(sizes.cacheMemory, sequences);
  const opened = await openEncoder({ path, rowLength: model.rowLength, threads: context.threads }, options, log);
  const { keepCache: folder, name } = options;
  const identity = stateIdentity(path, api.llama_version(), unifiedKv, options, opened?.mmproj);
  const persistedCache =
    folder === undefined
      ? undefined
      : new PersistedPromptCache({ folder, name, identity }, sequences, promptCache, log);
  persistedCache?.read();
  const vocabulary = new Vocabulary(model);
  const { threads } = context;
  const draftModel =
    draft && openDraftModel(api, draft, { model, vocabulary, context }, { ...sizes, unifiedKv }, { ...loading, log });
  return {
    model,
    encoder: opened?.encoder ?? null,
    answering: {
      context,
      sequences,
      promptCache,
      adapters,
      draftModel,
      persistedCache,
    },
    embedding: plan && {
      plan,
      open: () => openSecondaryEmbeddingContext(model, file, plan, { threads, gpu: hasGpu }),
    },
    vocabulary,
    device,
    // llama.cpp rounds up the size of a context; the requested size is what clients are promised.
    facts: {
      ...factsOf(model, vocabulary, path, Math.min(sizes.contextSize, context.capacity)),
      takes: opened?.encoder?.takes ?? {},
      ...(opened?.hint !== undefined && { imageHint: opened.hint }),
    },
  };
}

/** A file of a draft model, of which the header was read. */
interface DraftFile extends ModelFile {
  readonly path: string;
  /** As it is configured. */
  readonly draft: DraftOptions;
}

async function draftFile(
  { draft, ...options }: OpenModelMessage,
  onProgress: OpenListeners["onProgress"],
): Promise<DraftFile | undefined> {
  if (!draft) return undefined;
  const path = await findFile({ ...options, model: draft.path }, onProgress);
  return { ...(await readModelFile(path)), path, draft };
}

/** The memory that a draft model needs in addition, for the context size that is tried first. */
function bytesOfDraft(draft: DraftFile, target: ModelFile, options: OpenModelMessage): number {
  const { trainedContext = maxDefaultContextSize } = target;
  const contextSize = options.contextSize ?? Math.min(trainedContext, maxDefaultContextSize);
  const { maxTokens = defaultRecurrentDraftTokens } = draft.draft;
  return totalOf(draftNeed(draft, target, { ...options, contextSize }, maxTokens));
}

/** Loads a draft model, and creates its context. Throws ModelOpenError with one sentence for every failure. */
function openDraftModel(
  api: LlamaApi,
  { path, draft }: DraftFile,
  target: { readonly model: NativeModel; readonly vocabulary: Vocabulary; readonly context: NativeContext },
  sizes: ContextCapacity & { readonly unifiedKv: boolean },
  { options, ...loading }: Loading & Pick<OpenListeners, "log">,
): DraftModel {
  const { speculation, batchSize, maxTokenGap } = options;
  if (!canDropDrafts(target.context))
    throw new ModelOpenError(
      "load-failed",
      `${options.model} cannot be used with a draft model: draft tokens cannot be removed from its memory` +
        `${target.model.isRecurrent ? ", which llama.cpp supports for few recurrent models" : " with more than four slots"}. ` +
        "Remove the setting draft.",
    );
  try {
    const { model, created: context } = loadWith(api, path, { ...loading, options }, (loaded) =>
      openContext(loaded, sizes, options, loading.hasGpu),
    );
    testContext(context);
    return new DraftModel({
      context,
      newText: draftTexts(target, { model, vocabulary: new Vocabulary(model) }),
      maxTokens: Math.min(draft.maxTokens ?? defaultDraftTokens, target.context.maxRollback),
      batchSize,
      maxGapMs: maxTokenGap,
      assumedCost: model.size / target.model.size,
      always: speculation === "always",
      log: loading.log,
      clock: () => performance.now(),
    });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new ModelOpenError("load-failed", `The draft model ${path} cannot be used: ${message}.`, error);
  }
}

/**
 * Whether rejected draft tokens can be removed from the KV cache. Layers with a sliding window keep the cells for that only in a unified
 * cache, where all tokens of a batch are added at the same time.
 */
export function canDropDrafts({ model, maxRollback, unifiedKv }: NativeContext): boolean {
  return maxRollback > 0 && (model.window === 0 || unifiedKv);
}

/** Loads a model that only computes embeddings, and creates its context. */
async function loadEmbedder(
  api: LlamaApi,
  path: string,
  options: OpenModelMessage,
  { plan, ...loading }: Omit<Loading, "options"> & { readonly plan: EmbeddingPlan },
): Promise<OpenModel> {
  const {
    model,
    created: context,
    device,
  } = loadWith(api, path, { ...loading, options }, (loaded) =>
    openEmbeddingContext(loaded, plan, options.threads ?? defaultThreads(loaded.size)),
  );
  await testEmbedding(context, model);
  const vocabulary = new Vocabulary(model);
  return {
    model,
    encoder: null,
    answering: null,
    embedding: { plan, open: () => context },
    vocabulary,
    device,
    facts: factsOf(model, vocabulary, path, plan.maxInputTokens),
  };
}

interface Loading {
  readonly options: OpenModelMessage;
  readonly hasGpu: boolean;
  /** See `hasRoomForWeights`. */
  readonly readsWeights: boolean;
  readonly onProgress: OpenListeners["onProgress"];
}

/** Loads the model and calls `create` with it, with as many layers on a GPU as fit. Throws the error of the last attempt. */
function loadWith<T>(
  api: LlamaApi,
  path: string,
  { options, hasGpu, readsWeights, onProgress }: Loading,
  create: (model: NativeModel) => T,
): { model: NativeModel; created: T; device: ModelDevice } {
  let failure: unknown;
  for (const gpuLayers of gpuLayersToTry(options.gpu, hasGpu)) {
    const { all } = api.offloaded();
    if (all > 0 && gpuLayers >= all) continue; // All layers were tried already.
    try {
      const model = new NativeModel(api, path, {
        gpuLayers,
        readsWeights,
        placement: options,
        onProgress: (fraction) => onProgress({ phase: "load", fraction }),
      });
      try {
        return { model, created: create(model), device: deviceOf(api, options, gpuLayers, failure) };
      } catch (error) {
        model.free();
        throw error;
      }
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** Numbers of layers on a GPU: all, then fewer and fewer. */
function gpuLayersToTry(requested: OpenModelMessage["gpu"], hasGpu: boolean): readonly number[] {
  if (!hasGpu) return [0];
  return typeof requested === "number" ? [requested] : [-1, 64, 48, 32, 24, 16, 8, 4, 0];
}

/** Where a loaded model computes. `failure`: of loading more layers on the GPU. */
function deviceOf(api: LlamaApi, { gpu, noGpu }: OpenModelMessage, gpuLayers: number, failure: unknown): ModelDevice {
  const name = api.gpuName();
  const reason = failure instanceof Error ? failure.message.replace(/\.$/, "") : undefined;
  if (gpuLayers === 0 || name === null) {
    const why = noGpu ?? (name === null ? "no GPU was found" : reason && `it cannot be loaded on ${name} (${reason})`);
    return { gpu: false, text: `CPU: ${why ?? "gpu is 0"}` };
  }
  const { layers, all } = api.offloaded();
  const rest =
    layers < all ? (typeof gpu === "number" ? ", as gpu says" : ": the rest does not fit into its memory") : "";
  return { gpu: true, text: `GPU ${name}, ${layers} of ${all} layers${rest}` };
}

function factsOf(model: NativeModel, vocabulary: Vocabulary, path: string, contextSize: number): ModelFacts {
  const { bos, eos, prefix, suffix, middle } = model.tokens;
  return {
    path,
    architecture: model.metadata("general.architecture") ?? "",
    contextSize,
    chatTemplate: model.chatTemplate,
    bosToken: bos === null ? null : vocabulary.entry(bos),
    eosToken: eos === null ? null : vocabulary.entry(eos),
    specialTokens: vocabulary.controlTexts(),
    markupTokens: vocabulary.userDefinedTexts(),
    vocabularySize: vocabulary.size,
    maxTokenLength: vocabulary.longestToken(),
    takes: {},
    fillsInMiddle: prefix !== null && suffix !== null && middle !== null,
  };
}

/**
 * Decodes one token, which shows whether the batch, the KV cache and the logits have the layout that is declared here. Throws an Error with
 * one sentence.
 */
function testContext(context: NativeContext): void {
  const { batch, model } = context;
  const token = model.tokens.bos ?? model.tokens.eos ?? 0;
  batch.clear();
  const index = batch.add(token, 0, 0, true);
  context.decode();
  const logits = context.logits(index);
  const [first, last] = context.positions(0);
  if (first !== 0 || last !== 0) throw new Error("what was evaluated is not where it should be");
  if (logits.some((logit) => Number.isNaN(logit))) throw new Error("the model computes what is not a number");
  context.clear(0);
  batch.clear();
}

/** Embeds one token, for the same reason. */
async function testEmbedding(context: NativeEmbeddingContext, { tokens }: NativeModel): Promise<void> {
  context.batch.add(tokens.bos ?? tokens.eos ?? 0, 0, 0, true);
  await context.decode();
  if (!context.pooled(0, 1).every((number) => Number.isFinite(number)))
    throw new Error("the model computes what is not a number");
  context.clear();
}
