import { type Format, plainText } from "../../formats/format.ts";
import type { Engine } from "../../core/engine.ts";
import type { LogListener } from "../../core/observe.ts";
import { toolCallId } from "../../apis/ids.ts";
import { classify, ProgramLoadError } from "./classify-program.ts";
import type { LanguageModel } from "./language-model.ts";
import type { Program } from "./program.ts";
import { ProgramEngine } from "./program-engine.ts";
import { runProgram } from "./run-program.ts";

export interface LocalProgramOptions {
  /** The program. It runs in this thread, so it must not compute for long without an `await`. */
  readonly program: Program | LanguageModel;
  /** The model's name for clients; default "program". */
  readonly name?: string;
  /** The format of tool calls and reasoning in the program's text; default: none. */
  readonly format?: Format;
  /** Clients see the message of any exception; default: only of a `RequestError`. */
  readonly showErrors?: boolean;
  /** Receives warnings about the program. */
  readonly log?: LogListener;
}

/** Opens a program in memory, without Node built-ins. Throws `ProgramLoadError` if the value is not a program. */
export function openLocalProgram({
  program,
  name = "program",
  format = plainText,
  showErrors = false,
  log,
}: LocalProgramOptions): Engine {
  const loaded = classify(program);
  if (loaded?.kind !== "program") {
    throw new ProgramLoadError("A program must be a function or an AI SDK language model.");
  }
  const warn = (line: string): void => log?.(line, "warn");
  const run = { format, showErrors, warn, newCallId: () => toolCallId(Math.random) };
  return new ProgramEngine(
    {
      models: undefined,
      run: (request, signal) => runProgram(loaded.program, request, signal, run),
      load: () => ({}),
      close: async () => {},
    },
    name,
  );
}
