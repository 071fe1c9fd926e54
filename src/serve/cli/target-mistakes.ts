import { existsSync, readdirSync } from "node:fs";
import { modelOfTarget } from "../config/target.ts";
import { nearest } from "../../wire/core/nearest.ts";

/**
 * What is wrong with a target of `truewire serve` that is neither a file nor an address, in one line with what to do next; undefined if
 * nothing is.
 */
export function mistakeOfTarget(target: string): string | undefined {
  const model = modelOfTarget(target);
  if (model.kind !== "local" || model.path.startsWith("hf:") || existsSync(model.path)) return undefined;
  const { path } = model;
  const [, scheme, rest] = /^([a-z][a-z\d+.-]*):\/\/(.*)$/is.exec(path) ?? [];
  if (scheme !== undefined) {
    const meant = nearest(scheme, ["http", "https"]);
    const hint = meant === undefined ? "" : ` Did you mean ${meant}://${rest}?`;
    return `${path} is no address of a server: expected http:// or https://, not ${scheme}://.${hint}`;
  }
  const missing = `The model file ${path} does not exist.`;
  if (/\.gguf$/i.test(path) || /[\\/]/.test(path.replace(/^[\w.-]+\/(?=[\w.-]+:)/, ""))) {
    const meant = nearest(path, ggufFilesHere());
    return `${missing} ${meant === undefined ? "" : `Did you mean ${meant}? `}To download a model: truewire serve hf:OWNER/REPO:QUANT`;
  }
  return `${missing} ${ollamaHint(path)}`;
}

/** What to do with a name that looks like one of Ollama's models: `qwen3:4b`, `llama3.2`. */
export function ollamaHint(name: string): string {
  return `If ${name} is a model of Ollama, serve the running Ollama with all its models: truewire serve http://localhost:11434. To download a GGUF file: truewire serve hf:OWNER/REPO:QUANT`;
}

/** The names of the GGUF files in the current folder. */
export function ggufFilesHere(): string[] {
  try {
    return readdirSync(".").filter((name) => /\.gguf$/i.test(name));
  } catch {
    // The folder cannot be read, or was removed.
    return [];
  }
}
