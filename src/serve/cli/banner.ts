import colors from "picocolors";
import { ports } from "../../wire/apis/ports.ts";
import { nameOf } from "../app/open-engine.ts";
import type { TruewireConfig } from "../config/schema.ts";
import type { ModelConfig } from "../config/model-schema.ts";
import { parseConfig } from "../config/schema.ts";
import type { ModelInfo } from "../../wire/core/engine.ts";
import { shownUrl } from "../../engines/upstream/targets.ts";
import type { FoundServer, LateServer } from "./discovery.ts";

/** The most names of models that are printed for one source; an upstream may have hundreds. */
const maxNames = 8;

interface Serving {
  readonly url: string;
  models(): readonly ModelInfo[];
}

/**
 * What `truewire serve` prints when it is ready: the addresses, the models with their sources, what was found on this machine, and a curl
 * line to try. `demo`: nothing to serve was named. `late`: servers that have not answered
 * yet. `notes`: further lines.
 */
export function bannerOf(
  server: Serving,
  config: TruewireConfig,
  demo: boolean,
  found: readonly FoundServer[],
  late: readonly LateServer[],
  notes: readonly string[],
  platform: NodeJS.Platform = process.platform,
): string {
  const { url } = server;
  // The models of servers that were found come before the demo model, which is there for when there are none.
  const entries = parseConfig(config).models;
  const isFound = ({ id }: ModelInfo): boolean => serverOf(id, entries, found) !== undefined;
  const models = server.models().toSorted((a, b) => Number(isFound(b)) - Number(isFound(a)));
  const [first] = models;
  const lines = [
    `${colors.bold(url)} is the page, for a browser.`,
    `  OpenAI:    ${url}/v1 (OPENAI_BASE_URL)`,
    `  Anthropic: ${url} (ANTHROPIC_BASE_URL)`,
    ...(ports.some(({ name }) => name === "ollama") ? [`  Ollama:    ${url} (OLLAMA_HOST)`] : []),
    ...modelLines(models, entries, found),
    ...(first ? [] : ["No upstream answers yet; their models are taken in when they do."]),
    ...(demo
      ? [
          `No model was named, so this serves ${models.some(isFound) ? "the models of this machine, and " : ""}the bundled demo model, a small one for trying things out.`,
        ]
      : []),
    ...found.flatMap((one) => noteOf(one, models)),
    ...late
      .filter((one) => one.hasAccepted())
      .map(
        ({ product, url }) =>
          `${capitalized(product)} at ${url} takes connections and has not answered yet; its models are taken in when it does.`,
      ),
    ...notes,
    ...clashes(models, entries),
  ];
  if (!first) return lines.join("\n");
  // The key itself is not printed: what is printed may be kept.
  const { apiKey = [], keys = [], keysFile } = config;
  const withKey = apiKey.length > 0 || keys.length > 0 || keysFile !== undefined;
  // No line suits both of Windows' shells, whose quotation marks differ.
  if (platform === "win32") return lines.join("\n");
  const key = withKey ? ' -H "Authorization: Bearer $OPENAI_API_KEY"' : "";
  const [path, body] = exampleOf(first);
  lines.push(
    withKey ? "Try it, with your key in OPENAI_API_KEY:" : "Try it:",
    `  curl -N ${url}/v1/${path}${key} -H "Content-Type: application/json" -d ${shellQuoted(JSON.stringify(body))}`,
  );
  return lines.join("\n");
}

/** A line for each source. Upstreams choose the names of their models, so these are printed without control characters. */
function modelLines(
  models: readonly ModelInfo[],
  entries: readonly ModelConfig[],
  found: readonly FoundServer[],
): string[] {
  const upstreams = entries.filter((entry) => entry.kind === "upstream");
  const urls = upstreams.flatMap(({ url }) => [url].flat().map(shownUrl)).join(", ");
  const groups = new Map<string, string[]>();
  for (const { id, device } of models) {
    const own = ownEntry(id, entries);
    const server = serverOf(id, entries, found);
    const source = own
      ? [sourceOf(own), device].filter(Boolean).join("; ")
      : server
        ? `${server.product}, ${server.url}`
        : urls;
    const names = groups.get(source);
    if (names) names.push(printable(id));
    else groups.set(source, [printable(id)]);
  }
  return [...groups].map(([source, names]) => {
    const shown = names.slice(0, maxNames);
    if (names.length > maxNames) shown.push(`and ${names.length - maxNames} more`);
    const label = names.length === 1 ? "Model: " : "Models:";
    return `  ${label}    ${shown.join(", ")}${source === "" ? "" : ` (${source})`}`;
  });
}

/** The entry of a local model or a program with this name. */
function ownEntry(id: string, entries: readonly ModelConfig[]): ModelConfig | undefined {
  return entries.find((entry) => entry.kind !== "upstream" && [nameOf(entry), ...entry.aliases].includes(id));
}

/** The server that was found and has the model, also under a name that tells it from another model: `ollama/demo`. */
function serverOf(id: string, entries: readonly ModelConfig[], found: readonly FoundServer[]): FoundServer | undefined {
  if (ownEntry(id, entries)) return undefined;
  return found.find(({ models }) => models.includes(id) || models.includes(id.slice(id.indexOf("/") + 1)));
}

function sourceOf(entry: ModelConfig): string {
  if (entry.kind === "local") return entry.name === "demo" ? "bundled" : entry.path;
  return entry.kind === "program" && typeof entry.program === "string" ? entry.program : "";
}

/** How to serve the GGUF files of the current folder, which are not served unless they are named. */
export function noteOfFiles([file, ...others]: readonly string[]): readonly string[] {
  if (file === undefined) return [];
  return [
    others.length === 0
      ? `${printable(file)} is in this folder, and is not served: truewire serve ${shellQuoted(printable(file))}`
      : `${others.length + 1} GGUF files are in this folder, and are not served: truewire serve .`,
  ];
}

/** What a newer Node would give, if it would; the numbers are those of docs/deploying.md. `version`: 20.19.0. */
export function noteOfNode(version: string): readonly string[] {
  return Number(version.split(".")[0]) >= 22
    ? []
    : [
        `Node ${version} has had no security fixes since April 2026. Node 24 has them, and streams with up to 40 % less CPU time.`,
      ];
}

/** The lines for a server that answers after the start. `served`: the models that are served now. */
export function lateNoteOf(server: FoundServer, served: readonly ModelInfo[]): string[] {
  const { product, url, state, models } = server;
  if (state !== "open") return noteOf(server, served);
  const shown = models.slice(0, maxNames).map(printable);
  if (models.length > maxNames) shown.push(`and ${models.length - maxNames} more`);
  return [`${capitalized(product)} at ${url} answers now, and its models are served: ${shown.join(", ")}`];
}

/** The beginning of a sentence: products keep their own letters (vLLM). */
function capitalized(product: string): string {
  return product === "a server" ? "A server" : product;
}

/** What is to be said of a server that was found, if its models are not served. */
function noteOf({ product, url, state, models }: FoundServer, served: readonly ModelInfo[]): string[] {
  switch (state) {
    case "locked":
      return [`${capitalized(product)} at ${url} wants a key: truewire serve ${url} --key KEY`];
    case "empty":
      return [`${capitalized(product)} at ${url} has no models yet.`];
    case "truewire":
      return [`Another Truewire is at ${url}; its models are not served here.`];
    case "open":
      return served.some(({ id }) => id === models[0] || id.endsWith(`/${models[0]}`))
        ? []
        : [`${capitalized(product)} at ${url} has not listed its models again yet; they are taken in when it does.`];
  }
}

/** Models whose names others have already. */
function clashes(served: readonly ModelInfo[], entries: readonly ModelConfig[]): string[] {
  const ids = new Set(served.map(({ id }) => id));
  return entries.flatMap((entry) =>
    [...ids]
      .filter((id) => id.startsWith(`${nameOf(entry)}/`) && ids.has(id.slice(nameOf(entry).length + 1)))
      .map((id) => `${printable(id)} has this name because another model has its own.`),
  );
}

function printable(name: string): string {
  return name.replaceAll(/\p{Cc}/gu, "?");
}

/** A request that the model answers: its path, and its body. */
function exampleOf({ id: model, endpoints }: ModelInfo): readonly [path: string, body: object] {
  if (endpoints.includes("chat"))
    return ["chat/completions", { model, stream: true, messages: [{ role: "user", content: "Hello!" }] }];
  if (endpoints.includes("completions")) return ["completions", { model, stream: true, prompt: "Hello" }];
  if (endpoints.includes("embeddings")) return ["embeddings", { model, input: "Hello" }];
  return ["rerank", { model, query: "What is it?", documents: ["A cat.", "A stone."] }];
}

function shellQuoted(text: string): string {
  if (/^\w[\w.-]*$/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
