import type { ModelInfo } from "../../wire/core/engine.ts";
import type { ServedEngine, ServedModel } from "./model-directory.ts";

/** The models of each engine that have reasoned in an answer of this process. Most servers do not say which of theirs do. */
const seen = new WeakMap<ServedEngine, Set<string>>();
/** More models than a server has that answers for months. An upstream may take any name. */
const maxModels = 1000;

/** Notes that a model has reasoned. */
export function noteReasoning({ from, engineModel }: ServedModel): void {
  const models = seen.get(from) ?? new Set();
  seen.set(from, models);
  if (models.size < maxModels) models.add(engineModel);
}

/** What is known of a model, with what its answers have shown. */
export function knownInfo({ info, from, engineModel }: ServedModel): ModelInfo {
  return seen.get(from)?.has(engineModel) === true ? { ...info, reasons: true } : info;
}
