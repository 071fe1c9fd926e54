import type { Engine } from "../../wire/core/engine.ts";
import { isLanguageModel, languageModelProgram } from "./language-model.ts";
import type { Program } from "../../wire/apis/chat/program.ts";

/** A module's default export. */
export type LoadedProgram =
  /** `blocking`: a plain function or generator, which may block its thread. */
  | { readonly kind: "program"; readonly program: Program; readonly blocking: boolean }
  | { readonly kind: "engine"; readonly engine: Engine };

/** A module that cannot be served; `message` is one sentence for the user. */
export class ProgramLoadError extends Error {
  override readonly name = "ProgramLoadError";
}

/** Classifies a value; undefined: it cannot be served. */
export function classify(value: unknown): LoadedProgram | undefined {
  if (typeof value === "function") return { kind: "program", program: value as Program, blocking: isBlocking(value) };
  if (isLanguageModel(value)) return { kind: "program", program: languageModelProgram(value), blocking: false };
  if (isEngine(value)) return { kind: "engine", engine: value };
  return undefined;
}

/** Whether a function may run for long without an `await`, judged by its kind. */
function isBlocking(value: object): boolean {
  const kind = Object.prototype.toString.call(value);
  return kind !== "[object AsyncFunction]" && kind !== "[object AsyncGeneratorFunction]";
}

function isEngine(value: unknown): value is Engine {
  const engine = value as Partial<Engine> | null;
  return typeof engine === "object" && typeof engine?.generate === "function" && typeof engine.models === "function";
}
