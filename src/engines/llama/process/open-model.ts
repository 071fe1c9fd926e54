import { availableParallelism } from "node:os";
import type { Observe } from "../../../core/observe.ts";
import { isQuantized } from "../cache-type.ts";
import { adapterBytes } from "../file/adapter-bytes.ts";
import { embeddingNeed } from "../file/embedding-need.ts";
import type { EmbeddingPlan } from "../file/embedding-plan.ts";
import { readModelFile } from "../file/read-model-file.ts";
import { ModelOpenError } from "../model-open-error.ts";
import type { OpenProgress } from "../options.ts";
import type { ModelFacts } from "../preparing/model-facts.ts";
import type { OpenMessage } from "../protocol.ts";
import { libraryFolders, type LibraryFolder, loadLlamaApi, type LlamaApi } from "./c-api/llama-api.ts";
import { NativeAdapters } from "./c-api/adapters.ts";
import { NativeContext, type NativeEmbeddingContext } from "./c-api/native-context.ts";
import { NativeModel } from "./c-api/native-model.ts";
import type { Koffi } from "./c-api/structs.ts";
import {
  fittingEmbeddings,
  fittingContext,
  type ContextCapacity,
  openEmbeddingContext,
  openEmbeddingsBeside,
} from "./memory.ts";
import { importLibrary, libraryMissing, checkIsGguf, modelFile } from "./model-file.ts";
import { PromptCache } from "./prompt-cache/prompt-cache.ts";
import { PersistedPromptCache, stateIdentity } from "./prompt-cache/persisted-prompt-cache.ts";
import { Sequence } from "./prompt-cache/sequence.ts";
import { Vocabulary } from "./tokens/vocabulary.ts";

/** What a model generates with. */
export interface Answering {
  readonly context: NativeContext;
  /** One for each slot, in the order of their ids. */
  readonly sequences: readonly Sequence[];
  /** What is kept beside them, and their checkpoints. */
  readonly states: PromptCache;
  /** Absent: it has none. */
  readonly adapters?: NativeAdapters;
  /** Absent: nothing outlasts this process. */
  readonly outlasting?: PersistedPromptCache;
}

export interface OpenModel {
  readonly model: NativeModel;
  /** null: it only makes embeddings. */
  readonly answering: Answering | null;
  /** null: it makes no embeddings. */
  readonly embedding: { readonly plan: EmbeddingPlan; readonly open: () => NativeEmbeddingContext } | null;
  readonly vocabulary: Vocabulary;
  /** Milliseconds that computing has taken so far; on a processor without the time in which others had it. */
  readonly clock: () => number;
  readonly facts: ModelFacts;
}

export interface OpenListeners {
  readonly onProgress: (progress: OpenProgress) => void;
  readonly log: Observe;
}

/** Finds, checks and loads the model, and makes its context. Throws ModelOpenError with one sentence for whatever goes wrong. */
export async function openModel(options: OpenMessage, { onProgress, log }: OpenListeners): Promise<OpenModel> {
  const [libraries] = libraryFolders(options.gpu !== false);
  if (!libraries) throw libraryMissing();
  const path = await findFile(options, onProgress);
  const api = loadLibraries(await importKoffi(), libraries, (line, level) => {
    // It means the memory of all slots; what is too long for an answer is told below.
    if (!line.includes("training context overflow")) log(line, level);
  });
  try {
    return await load(api, path, options, { onProgress, log });
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

function loadLibraries(koffi: Koffi, libraries: LibraryFolder, log: Observe): LlamaApi {
  try {
    return loadLlamaApi(koffi, libraries, log);
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new ModelOpenError(
      "load-failed",
      `The libraries of llama.cpp in ${libraries.folder} cannot be used: ${message.replace(/\.$/, "")}. ` +
        "They come with the package node-llama-cpp: npm install node-llama-cpp@3.22.1",
      cause,
    );
  }
}

async function findFile(options: OpenMessage, onProgress: (progress: OpenProgress) => void): Promise<string> {
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
  options: OpenMessage,
  { onProgress, log }: OpenListeners,
): Promise<OpenModel> {
  checkAttention(options);
  const hasGpu = options.gpu !== false && api.llama_supports_gpu_offload();
  const read = await readModelFile(path);
  const file = { ...read, bytes: read.bytes + (await adapterBytes(options.adapters)) };
  const plan = fittingEmbeddings(file, options, hasGpu);
  if (plan?.only === true) {
    if (options.adapters)
      throw new ModelOpenError("load-failed", `${path} only makes embeddings, for which adapters cannot be used.`);
    return loadEmbedder(api, path, options, { plan, hasGpu, onProgress });
  }
  const oneMemory = options.slots <= fewSlots && !file.stretches;
  const reserved = plan ? embeddingNeed(file, plan) : { cache: 0, pass: 0 };
  const sizes = fittingContext(file, options, { gpu: hasGpu, oneMemory, reserved: reserved.cache + reserved.pass });
  if (sizes.contextSize > (file.trainedContext ?? Infinity))
    log(`The model was trained for ${file.trainedContext} tokens, and has ${sizes.contextSize}.`, "info");
  if (sizes.capacity < sizes.contextSize * options.slots)
    log(
      `There is memory for ${sizes.capacity} tokens: ${options.slots} answers of up to ${sizes.contextSize} tokens share them.`,
      "info",
    );
  const { model, made } = loadWith(api, path, { options, hasGpu, onProgress }, (loaded) => {
    // A context has room for the adapters that are there when it is made.
    const adapters = options.adapters && new NativeAdapters(loaded, options.adapters);
    return { adapters, context: openContext(loaded, { ...sizes, oneMemory }, options, hasGpu) };
  });
  const { adapters, context } = made;
  proveContext(context);
  const sequences = Array.from({ length: options.slots }, (_, id) => new Sequence(context, id));
  const states = new PromptCache(sizes.cacheMemory, sequences);
  const { keepCache } = options;
  const outlasting =
    keepCache &&
    new PersistedPromptCache(
      { ...keepCache, identity: stateIdentity(path, api.llama_version(), oneMemory, options) },
      sequences,
      states,
      log,
    );
  outlasting?.read();
  const vocabulary = new Vocabulary(model);
  const { threads } = context;
  return {
    model,
    answering: { context, sequences, states, ...(adapters && { adapters }), ...(outlasting && { outlasting }) },
    embedding: plan && {
      plan,
      open: () => openEmbeddingsBeside(model, file, plan, { threads, gpu: hasGpu }),
    },
    vocabulary,
    clock: clockOf(threads, hasGpu),
    // llama.cpp pads a context's size; what was asked for is what is promised.
    facts: factsOf(model, vocabulary, path, Math.min(sizes.contextSize, context.capacity)),
  };
}

/** Loads a model that only makes embeddings, with the context for them. */
async function loadEmbedder(
  api: LlamaApi,
  path: string,
  options: OpenMessage,
  { plan, ...loading }: Pick<Loading, "hasGpu" | "onProgress"> & { readonly plan: EmbeddingPlan },
): Promise<OpenModel> {
  const { model, made: context } = loadWith(api, path, { ...loading, options }, (loaded) =>
    openEmbeddingContext(loaded, plan, options.threads ?? fittingThreads(loaded.size)),
  );
  await proveEmbedding(context, model);
  const vocabulary = new Vocabulary(model);
  return {
    model,
    answering: null,
    embedding: { plan, open: () => context },
    vocabulary,
    clock: clockOf(context.threads, loading.hasGpu),
    facts: factsOf(model, vocabulary, path, plan.longest),
  };
}

interface Loading {
  readonly options: OpenMessage;
  readonly hasGpu: boolean;
  readonly onProgress: OpenListeners["onProgress"];
}

/** The model with what `make` makes of it, with as many layers on a GPU as leave memory for that. */
function loadWith<T>(
  api: LlamaApi,
  path: string,
  { options, hasGpu, onProgress }: Loading,
  make: (model: NativeModel) => T,
): { model: NativeModel; made: T } {
  return withinMemory(gpuLayersToTry(options.gpu, hasGpu), (gpuLayers) => {
    const model = new NativeModel(api, path, {
      gpuLayers,
      ...(options.split && { split: options.split }),
      onProgress: (fraction) => onProgress({ phase: "load", fraction }),
    });
    try {
      return { model, made: make(model) };
    } catch (error) {
      model.free();
      throw error;
    }
  });
}

function clockOf(threads: number, hasGpu: boolean): () => number {
  return hasGpu ? () => performance.now() : () => processorMs() / threads;
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
    longestToken: vocabulary.longestToken(),
    fillsInMiddle: prefix !== null && suffix !== null && middle !== null,
  };
}

function openContext(
  model: NativeModel,
  { contextSize, capacity: room, oneMemory }: ContextCapacity & { readonly oneMemory: boolean },
  options: OpenMessage,
  hasGpu: boolean,
): NativeContext {
  const { slots, batchSize, flashAttention, cacheTypeK, cacheTypeV } = options;
  const threads = options.threads ?? fittingThreads(model.size);
  // A larger model takes seconds to measure, and spends little of its time on attention.
  const isSmall = !hasGpu && model.size < smallModel && contextSize >= worthMeasuring;
  const measures = isSmall && flashAttention === "auto" && !isQuantized(cacheTypeV);
  return new NativeContext(model, {
    capacity: room,
    sequences: slots,
    batchSize,
    maxOutputs: Math.max(slots, fewestOutputs),
    threads,
    unifiedKv: oneMemory,
    flashAttention: measures ? chooseAttention(model, threads) : flashAttention,
    cacheTypeK,
    cacheTypeV,
  });
}

/** Throws ModelOpenError: llama.cpp reads quantized values in its flash attention only. */
function checkAttention({ model, flashAttention, cacheTypeV }: OpenMessage): void {
  if (flashAttention !== false || !isQuantized(cacheTypeV)) return;
  throw new ModelOpenError(
    "load-failed",
    `${model} cannot be opened with cacheTypeV: ${cacheTypeV} and flashAttention: off: a quantized cache of values needs flash ` +
      "attention. Use flashAttention: auto, or cacheTypeV: f16.",
  );
}

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Where a model is to be put on a GPU as far as it fits there: all of its layers, or fewer and fewer. */
function gpuLayersToTry(asked: OpenMessage["gpu"], hasGpu: boolean): readonly number[] {
  if (!hasGpu) return [0];
  return typeof asked === "number" ? [asked] : [-1, 64, 48, 32, 24, 16, 8, 4, 0];
}

/** The first of these numbers of layers with which it works. Throws what the last one threw. */
function withinMemory<T>(layers: readonly number[], make: (layers: number) => T): T {
  const [first = 0, ...others] = layers;
  try {
    return make(first);
  } catch (error) {
    if (others.length === 0) throw error;
    return withinMemory(others, make);
  }
}

/**
 * Evaluates one token: a batch, the memory of sequences and the logits that were laid out in another way than is declared here would show
 * now. Throws an Error with one sentence.
 */
function proveContext(context: NativeContext): void {
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

/** The same of a model that only makes embeddings: it embeds one token. */
async function proveEmbedding(context: NativeEmbeddingContext, { tokens }: NativeModel): Promise<void> {
  context.batch.add(tokens.bos ?? tokens.eos ?? 0, 0, 0, true);
  await context.decode();
  if (!context.pooled(0, 1).every((number) => Number.isFinite(number)))
    throw new Error("the model computes what is not a number");
  context.clear();
}

/**
 * So many slots share one memory, as in llama.cpp's own server. With 16 sequences of 400 tokens that had nothing in common a pass took a
 * third longer there than with a memory for each.
 */
const fewSlots = 4;
const smallModel = 64 * 2 ** 20;
/** In a context shorter than this, attention never takes long. */
const worthMeasuring = 2048;
/** Tokens of a prompt whose logprobs are read in one pass, at least. */
const fewestOutputs = 32;

/**
 * All cores but one, which the server and everything else need: threads wait for each other many times in a pass, spinning, so one that
 * has to share its core stops all of them (measured on two busy cores: 5 tokens/s with two threads, 660 with one). A small model is done
 * with a pass before threads pay at all.
 */
function fittingThreads(modelBytes: number): number {
  return modelBytes < smallModel ? 1 : Math.max(1, availableParallelism() - 1);
}

/** Behind so many tokens, attention is most of what a small model does. */
const behind = 512;
const steps = 8;
const rounds = 2;

/**
 * Whether flash attention is used: as llama.cpp decides ("auto"), unless steps behind a text are clearly faster without it. On
 * processors the flash kernel takes several times as long as the plain one for some shapes of heads: a step of the demo model behind
 * 1,500 tokens took 34 ms with it and 6 ms without. Takes some hundred milliseconds for a model of a few megabytes.
 */
export function chooseAttention(model: NativeModel, threads: number): "auto" | false {
  let withFlash = Infinity;
  let without = Infinity;
  for (let round = 0; round < rounds; round++) {
    // By turns, since what else the machine does changes.
    withFlash = Math.min(withFlash, stepMs(model, threads, true));
    without = Math.min(without, stepMs(model, threads, false));
  }
  return without < withFlash * 0.8 ? false : "auto";
}

function stepMs(model: NativeModel, threads: number, flashAttention: boolean): number {
  const context = new NativeContext(model, {
    capacity: behind + steps,
    sequences: 1,
    batchSize: behind,
    maxOutputs: 1,
    threads,
    unifiedKv: true,
    flashAttention,
  });
  try {
    const token = model.tokens.bos ?? model.tokens.eos ?? 0;
    for (let at = 0; at < behind - 1; at++) context.batch.add(token, at, 0, at === behind - 2);
    context.decode();
    const started = performance.now();
    for (let step = 0; step < steps; step++) {
      context.batch.clear();
      context.batch.add(token, behind - 1 + step, 0, true);
      context.decode();
    }
    return (performance.now() - started) / steps;
  } finally {
    context.free();
  }
}

/** What calls functions of native libraries; it is installed with Truewire where there is one for the platform. */
export async function importKoffi(): Promise<Koffi> {
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
