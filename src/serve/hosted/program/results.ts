import type { HostedFunction, HostedResult, HostedToolKind, SearchResult } from "../../../wire/core/hosted-tool.ts";
import { isObject } from "../../../wire/core/json.ts";
import type { JsonSchema } from "../../../wire/core/message.ts";
import { failure, OutputBudget, shown } from "../executor.ts";

/** What the model is told of a tool whose module says nothing. */
const known: Readonly<Partial<Record<HostedToolKind, Pick<HostedFunction, "description" | "parameters">>>> = {
  code_interpreter: {
    description: "Runs Python code and returns its output. Print what you want to see.",
    parameters: {
      type: "object",
      properties: { code: { type: "string", description: "The code" } },
      required: ["code"],
    },
  },
  file_search: {
    description: "Searches the user's files. Returns parts of them that fit the query.",
    parameters: {
      type: "object",
      properties: { query: { type: "string", description: "What to search for" } },
      required: ["query"],
    },
  },
  image_generation: {
    description: "Generates an image, which the user sees.",
    parameters: {
      type: "object",
      properties: { prompt: { type: "string", description: "What the image shows, in detail" } },
      required: ["prompt"],
    },
  },
};

/** The function of a tool, from what its module exports. */
export function functionOfProgram(
  kind: HostedToolKind,
  type: string,
  { description, parameters }: { readonly description?: unknown; readonly parameters?: unknown },
): HostedFunction {
  return {
    name: type.replace(/[^\w-]/g, "_").slice(0, 64),
    ...known[kind],
    ...(typeof description === "string" && { description }),
    ...(isObject(parameters) && { parameters: parameters as JsonSchema }),
  };
}

/** Reads the results of a search; what has no URL is left out. Throws an Error with a reason for what is no list. */
export function searchResults(value: unknown): readonly SearchResult[] {
  if (!Array.isArray(value))
    throw new Error(`it returned ${shown(value)}; expected a list such as [{ url, title, text }]`);
  return value
    .filter(isObject)
    .flatMap(({ url, title, text, age }) =>
      typeof url === "string"
        ? [{ url, title: textOf(title), text: textOf(text), ...(typeof age === "string" && { age }) }]
        : [],
    );
}

/** Returns what a user's function has returned as the result of a tool. `maxOutput`: in characters. */
export function resultOf(kind: HostedToolKind, value: unknown, maxOutput: number): HostedResult {
  const budget = new OutputBudget(maxOutput);
  switch (kind) {
    case "code_interpreter":
      return codeOutput(value, budget);
    case "file_search":
      return fileResults(value, budget);
    case "image_generation":
      return imageOf(value, budget);
    default: {
      const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
      return { kind: "contents", contents: [{ type: "text", text: budget.text(text) }], isError: false };
    }
  }
}

function codeOutput(value: unknown, budget: OutputBudget): HostedResult {
  if (typeof value === "string") return { kind: "code", stdout: budget.text(value), stderr: "", returnCode: 0 };
  if (!isObject(value)) return wrong("code_interpreter", value, "a text, or { stdout, stderr, returnCode }");
  const { stdout, stderr, returnCode, container, images, files } = value;
  const shownImages = listOf(images).filter(
    (image): image is string =>
      typeof image === "string" && image.startsWith("data:image/") && budget.takes(image.length),
  );
  return {
    kind: "code",
    stdout: budget.text(textOf(stdout)),
    stderr: budget.text(textOf(stderr)),
    returnCode: typeof returnCode === "number" ? returnCode : 0,
    ...(typeof container === "string" && { container }),
    ...(shownImages.length > 0 && { images: shownImages }),
    ...(Array.isArray(files) && {
      files: files
        .filter(isObject)
        .flatMap(({ id, name }) => (typeof id === "string" ? [{ id, ...(typeof name === "string" && { name }) }] : [])),
    }),
  };
}

function fileResults(value: unknown, budget: OutputBudget): HostedResult {
  if (!Array.isArray(value)) return wrong("file_search", value, "a list such as [{ fileId, filename, score, text }]");
  const results = value.filter(isObject).flatMap(({ fileId, filename, score, text, attributes }) =>
    budget.isSpent
      ? []
      : [
          {
            fileId: textOf(fileId),
            filename: textOf(filename),
            score: typeof score === "number" ? score : 0,
            text: budget.text(textOf(text)),
            ...(isObject(attributes) && { attributes: attributes as Readonly<Record<string, string>> }),
          },
        ],
  );
  return { kind: "files", results };
}

const dataUrl = /^data:image\/[\w.+-]{1,50};base64,/;

function imageOf(value: unknown, budget: OutputBudget): HostedResult {
  const { image, revisedPrompt, partialImages } = isObject(value)
    ? value
    : { image: value, revisedPrompt: undefined, partialImages: undefined };
  if (typeof image !== "string" || !dataUrl.test(image))
    return wrong("image_generation", image, "a data URL such as data:image/png;base64,…, or { image, revisedPrompt }");
  if (!budget.takes(image.length))
    return failure("too-large", `The image has ${image.length} characters, which is more than a result may have.`);
  const partial = listOf(partialImages).filter(
    (one): one is string => typeof one === "string" && dataUrl.test(one) && budget.takes(one.length),
  );
  return {
    kind: "image",
    url: image,
    ...(typeof revisedPrompt === "string" && { revisedPrompt: budget.text(revisedPrompt) }),
    ...(partial.length > 0 && { partial }),
  };
}

function wrong(tool: string, value: unknown, expected: string): HostedResult {
  return failure("protocol-error", `The program of ${tool} returned ${shown(value)}; expected ${expected}.`);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}
