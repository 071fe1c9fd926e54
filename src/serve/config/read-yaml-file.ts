import { readFile } from "node:fs/promises";
import { type Document, isScalar, LineCounter, parseDocument, visit } from "yaml";
import { ConfigError, type ConfigProblem } from "./config-error.ts";

/**
 * Reads a YAML (or JSON, which is YAML) file, with `${NAME}` for environment variables. `check` throws a `ConfigError` for what is wrong
 * with its value. Throws `ConfigError` whose every line begins with `file:line:`.
 */
export async function readYamlFile(
  file: string,
  environment: Readonly<Record<string, string | undefined>>,
  check: (value: unknown) => void,
): Promise<unknown> {
  const text = await readFile(file, "utf8").catch((cause: NodeJS.ErrnoException) => {
    const message = cause.code === "ENOENT" ? "there is no such file" : `cannot be read: ${cause.message}`;
    throw new ConfigError([{ path: [], message }], file, { cause });
  });
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  if (document.errors.length > 0) {
    throw new ConfigError(
      document.errors.map((error) => ({
        path: [],
        line: error.linePos?.[0].line ?? 1,
        message: error.message.split(/ at line \d|\n/)[0] ?? error.message,
      })),
      file,
    );
  }
  const unset = fillIn(document, environment, lines);
  if (unset.length > 0) throw new ConfigError(unset, file);
  const value: unknown = document.toJS();
  try {
    check(value);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(
      error.problems.map((problem) => ({ ...problem, line: lineOf(document, problem.path, lines) })),
      file,
    );
  }
  return value;
}

/** Puts the environment into every text of the document. Gives a problem, with its line, for each variable that is not set. */
function fillIn(
  document: Document,
  environment: Readonly<Record<string, string | undefined>>,
  lines: LineCounter,
): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  visit(document, {
    Scalar(key, node) {
      if (key === "key" || typeof node.value !== "string" || !node.value.includes("${")) return;
      try {
        node.value = withEnvironment(node.value, environment);
      } catch (error) {
        const line = lines.linePos(node.range?.[0] ?? 0).line;
        problems.push({ path: [], line, message: (error as Error).message });
      }
    },
  });
  return problems;
}

/** The line of the key at a path, or of the nearest thing around it that is written down. */
function lineOf(document: Document, path: readonly (string | number)[], lines: LineCounter): number {
  for (let depth = path.length; depth > 0; depth--) {
    const parent = document.getIn(path.slice(0, depth - 1), true) ?? document.contents;
    const last = path[depth - 1];
    const items = (parent as { items?: readonly unknown[] } | null)?.items ?? [];
    const found =
      typeof last === "number"
        ? items[last]
        : items.map((pair) => (pair as { key?: unknown }).key).find((key) => isScalar(key) && key.value === last);
    const range = (found as { range?: readonly [number, ...unknown[]] } | undefined)?.range;
    if (range) return lines.linePos(range[0]).line;
  }
  return 1;
}

/**
 * Replaces environment variables in a text: `${NAME}`, or `${NAME:-default}` with a default for when it is not set; `$${` becomes `${`.
 * Throws an Error for a variable that is not set and has no such text.
 */
export function withEnvironment(text: string, environment: Readonly<Record<string, string | undefined>>): string {
  return text.replace(/\$\$\{|\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g, (_, name?: string, otherwise?: string) => {
    if (name === undefined) return "${";
    const value = environment[name] ?? otherwise;
    if (value === undefined) throw new Error(`the environment variable ${name} is not set`);
    return value;
  });
}
