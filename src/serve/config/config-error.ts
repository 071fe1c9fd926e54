/**
 * An invalid configuration. The message is for people: one line for each problem, with its place and what was expected there.
 *
 * @example
 * import { ConfigError } from "truewire";
 * import { createHandler } from "truewire/server";
 *
 * try {
 *   createHandler({ hold: "soon" });
 * } catch (error) {
 *   if (error instanceof ConfigError) console.log(error.problems[0].path);
 * }
 * // → [ 'hold' ]
 */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  /** `file`: the configuration's name, where it was read from a file; then each line begins with `file:line:`. */
  constructor(problems: readonly ConfigProblem[], file?: string, options?: ErrorOptions) {
    super(problems.map((problem) => lineFor(problem, file)).join("\n"), options);
    this.name = "ConfigError";
    this.problems = problems;
  }
}

export interface ConfigProblem {
  readonly message: string;
  /** The place in the configuration: `["models", 0, "slots"]`. */
  readonly path: readonly (string | number)[];
  /** From 1, in a file. */
  readonly line?: number;
}

function lineFor({ message, path, line }: ConfigProblem, file: string | undefined): string {
  const place = file === undefined ? "" : line === undefined ? `${file}: ` : `${file}:${line}: `;
  return `${place}${path.length === 0 ? "" : `${pathText(path)}: `}${message}`;
}

/** `models[0].slots` */
function pathText(path: readonly (string | number)[]): string {
  return path.map((part, at) => (typeof part === "number" ? `[${part}]` : at === 0 ? part : `.${part}`)).join("");
}
