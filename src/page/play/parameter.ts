import type { KnownDefault } from "../api/models.ts";

/** A parameter of a request as the build describes it, from the tables that read requests (scripts/build-page.mjs). */
export interface Parameter {
  readonly name: string;
  readonly treatment: "honoured" | "accepted" | "refused";
  readonly origin: "openai" | "extension";
  /** What it does, with names of code in backticks. */
  readonly note: string;
  /** The JSON type of its value; absent: several, or an object or list. */
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly values?: readonly string[];
}

/** How a parameter's value is entered. */
export type Kind = "choice" | "number" | "text" | "json";

export function kindOf({ type, values }: Parameter): Kind {
  if (values || type === "boolean") return "choice";
  if (type === "integer" || type === "number") return "number";
  return type === "string" ? "text" : "json";
}

/** What a choice can be. */
export function optionsOf({ values }: Parameter): readonly string[] {
  return values ?? ["true", "false"];
}

/**
 * The value that a text means for a parameter; undefined: none was entered. What is no JSON counts as text, for the server to judge: `stop`
 * takes a word as well as a list. Throws an error for people if a number or JSON is invalid.
 */
export function valueOf(parameter: Parameter, text: string): unknown {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const kind = kindOf(parameter);
  if (kind === "choice" && !parameter.values) return trimmed === "true";
  if (kind === "number") {
    const value = Number(trimmed);
    if (Number.isNaN(value)) throw new Error(`${parameter.name} is not a number: ${trimmed}`);
    return value;
  }
  if (kind !== "json") return text;
  if (!/^[[{"]/.test(trimmed)) return text;
  try {
    return JSON.parse(trimmed) as unknown;
  } catch {
    throw new Error(`${parameter.name} is no valid JSON`);
  }
}

/** Those that have a place of their own on the page. */
const placed: ReadonlySet<string> = new Set(
  "model messages stream stream_options tools tool_choice functions function_call response_format n logprobs top_logprobs".split(
    " ",
  ),
);

/** Those that nearly everybody looks for, first. */
const first: readonly string[] = "temperature max_completion_tokens reasoning_effort stop seed".split(" ");

/** The parameters that do something and have no place of their own: those that are looked for most, and the others. */
export function sorted(all: readonly Parameter[]): {
  readonly common: readonly Parameter[];
  readonly others: readonly Parameter[];
} {
  const free = all.filter(({ name, treatment }) => treatment === "honoured" && !placed.has(name));
  return {
    common: first.flatMap((name) => free.filter((parameter) => parameter.name === name)),
    others: free.filter(({ name }) => !first.includes(name)),
  };
}

/** The parameters whose name or note contains each of the words of a search. */
export function matching(all: readonly Parameter[], search: string): readonly Parameter[] {
  const words = search.toLowerCase().split(/\s+/);
  return all.filter(({ name, note }) => {
    const text = `${name} ${note}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Other names of a parameter, whose default is listed under the first one. */
const aliases: Readonly<Record<string, string>> = {
  max_tokens: "max_completion_tokens",
  n_predict: "max_completion_tokens",
  repetition_penalty: "repeat_penalty",
  thinking_budget_tokens: "thinking_token_budget",
};

/** The default of a parameter among those of a model. */
export function defaultOf(
  { name }: Parameter,
  defaults: ReadonlyMap<string, KnownDefault> | undefined,
): KnownDefault | undefined {
  return defaults?.get(name) ?? defaults?.get(aliases[name] ?? "");
}

/** `0.7, set in the configuration`. */
export function defaultInWords({ value, origin }: KnownDefault): string {
  const words = Object.hasOwn(origins, origin) ? origins[origin] : undefined;
  return words === undefined ? String(value) : `${value}, ${words}`;
}

const origins: Readonly<Record<string, string>> = {
  engine: "Truewire's default",
  file: "from the model file",
  template: "from the chat template",
  server: "set by the model's server",
  configuration: "set in the configuration",
};
