import { availableParallelism } from "node:os";
import type * as LlamaLibrary from "node-llama-cpp";
import type { LlamaContextSequence, LlamaModel } from "node-llama-cpp";
import { ModelOpenError } from "../model-open-error.ts";
import type { Observe } from "../../../generation/observe.ts";
import type { OpenProgress } from "../options.ts";
import type { ModelFacts } from "../preparing/model-facts.ts";
import type { OpenMessage } from "../protocol.ts";
import { BatchGate } from "./batch-gate.ts";
import { importLibrary } from "./import-library.ts";
import { chooseAttention } from "./choose-attention.ts";
import { fittingContextSize } from "./memory.ts";
import { modelFile } from "./model-file.ts";
import { Vocabulary } from "./vocabulary.ts";

type Library = typeof LlamaLibrary;

export interface OpenModel {
  readonly model: LlamaModel;
  readonly sequences: readonly LlamaContextSequence[];
  readonly vocabulary: Vocabulary;
  readonly gate: BatchGate;
  /** What one sequence knows may be copied to another: the model is in main memory, and its state can be cut anywhere. */
  readonly copiesStates: boolean;
  readonly facts: ModelFacts;
}

export interface OpenListeners {
  readonly onProgress: (progress: OpenProgress) => void;
  readonly log: Observe;
}

/** Finds, checks and loads the model, and makes its context. Throws ModelOpenError with one sentence for whatever goes wrong. */
export async function openModel(options: OpenMessage, { onProgress, log }: OpenListeners): Promise<OpenModel> {
  const library = await importLibrary();
  const path = await modelFile(library, options, ({ bytes, totalBytes }) =>
    onProgress({ phase: "download", fraction: totalBytes > 0 ? bytes / totalBytes : 0 }),
  );
  try {
    return await load(library, path, options, { onProgress, log });
  } catch (error) {
    if (error instanceof ModelOpenError) throw error;
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof library.InsufficientMemoryError)
      throw new ModelOpenError("not-enough-memory", `${path} does not fit into memory: ${message}`, error);
    throw new ModelOpenError("load-failed", `${path} cannot be loaded: ${message}`, error);
  }
}

async function load(
  library: Library,
  path: string,
  options: OpenMessage,
  { onProgress, log }: OpenListeners,
): Promise<OpenModel> {
  const llama = await library.getLlama({
    gpu: options.gpu === false ? false : "auto",
    build: "never",
    progressLogs: false,
    // 0: contexts get the number of threads that they ask for.
    maxThreads: 0,
    logLevel: library.LlamaLogLevel.warn,
    logger: (level, message) => log(`llama.cpp ${level}: ${message.trimEnd()}`, "info"),
  });
  const insights = await library.GgufInsights.from(
    await library.readGgufFileInfo(path, { sourceType: "filesystem", logWarnings: false }),
    llama,
  );
  if (!insights.isSupportedByLlamaCpp) {
    const architecture = insights.ggufFileInfo.metadata.general.architecture;
    throw new ModelOpenError(
      "unknown-architecture",
      `${path} is of the architecture "${architecture}", which this llama.cpp (${llama.llamaCppRelease.release}) does not know.`,
    );
  }
  const contextSize = await fittingContextSize(insights, options, llama.gpu !== false);
  const model = await llama.loadModel({
    modelPath: path,
    gpuLayers: typeof options.gpu === "number" ? options.gpu : "auto",
    onLoadProgress: (fraction) => onProgress({ phase: "load", fraction }),
  });
  const gate = new BatchGate();
  const threads = options.threads ?? fittingThreads(insights.modelSize);
  // A larger model takes seconds to measure, and spends little of its time on attention.
  const measures = llama.gpu === false && insights.modelSize < smallModel && contextSize >= worthMeasuring;
  const context = await model.createContext({
    sequences: options.slots,
    contextSize,
    batchSize: options.batchSize,
    threads,
    flashAttention: measures ? await chooseAttention(model, threads) : "auto",
    failedCreationRemedy: false,
    batching: { dispatchSchedule: gate.schedule },
  });
  const vocabulary = new Vocabulary(model);
  const { prefix, suffix, middle } = model.tokens.infill;
  const sequences = Array.from({ length: options.slots }, () => context.getSequence());
  return {
    model,
    sequences,
    vocabulary,
    gate,
    copiesStates: llama.gpu === false && sequences.every((sequence) => !sequence.needsCheckpoints),
    facts: {
      path,
      architecture: model.architecture,
      // The library pads a context's size; what was asked for is what is promised.
      contextSize: Math.min(contextSize, context.contextSize),
      chatTemplate: model.fileInfo.metadata.tokenizer.chat_template ?? null,
      bosToken: model.tokens.bosString,
      eosToken: model.tokens.eosString,
      specialTokens: vocabulary.controlTexts(),
      markupTokens: vocabulary.userDefinedTexts(),
      vocabularySize: vocabulary.size,
      longestToken: vocabulary.longestToken(),
      fillsInMiddle: prefix !== null && suffix !== null && middle !== null,
    },
  };
}

const smallModel = 64 * 2 ** 20;
/** In a context shorter than this, attention never takes long. */
const worthMeasuring = 2048;

/**
 * All cores but one, which the server and everything else need: threads wait for each other many times in a pass, spinning, so one that
 * has to share its core stops all of them (measured on two busy cores: 5 tokens/s with two threads, 660 with one). A small model is done
 * with a pass before threads pay at all.
 */
function fittingThreads(modelBytes: number): number {
  return modelBytes < smallModel ? 1 : Math.max(1, availableParallelism() - 1);
}
