import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { claudeVersion } from "../../src/wire/apis/messages/claude-versions.ts";
import { errorStatuses } from "../../src/wire/apis/messages/schema.ts";
import { isKnownEvent } from "../../src/judge/check/rules/responses/event-rules.ts";
import { steerEvents, writtenEvents } from "../../src/wire/apis/responses/event-schema.ts";
import { openaiModel } from "../../src/wire/apis/openai-models.ts";
import { routeOf } from "../../src/serve/server/routes.ts";
import { nameReasons } from "./name-reasons.ts";
import { readSdk } from "./read-sdk.ts";
import type { SdkType } from "./read-sdk.ts";

/** What has a name in an SDK, outside of the objects of its APIs. */
export const nameKinds = [
  "endpoint",
  "header",
  "beta",
  "model",
  "event",
  "error type",
  "error code",
  "error class",
] as const;
export type NameKind = (typeof nameKinds)[number];

export interface SdkName {
  readonly kind: NameKind;
  /** `POST /messages`, `anthropic-beta`, `claude-opus-5-5`, `RateLimitError`. */
  readonly name: string;
  /** What the SDK says about it: the class of a code with its doc comment, what a class extends; "" if it says nothing. */
  readonly about: string;
}

/** Returns every name of an installed SDK, once, by kind. `folder`: absolute path of the package. */
export function namesOf(sdk: string, folder: string): readonly SdkName[] {
  const code = textsIn(folder, /(?<!\.d)\.mjs$/);
  const types = textsIn(folder, /\.d\.ts$/);
  const classes = textsIn(folder, /^core\/error\.d\.ts$/);
  const all = [
    ...code.flatMap((text) => (sdk === "ollama" ? ollamaEndpoints(text) : endpoints(text))),
    ...code.flatMap(headers),
    ...literals(sdk, folder),
    ...types.flatMap(errorCodes),
    ...classes.flatMap(errorClasses),
  ];
  const byName = new Map(all.toReversed().map((one) => [`${one.kind} ${one.name}`, one] as const));
  return nameKinds.flatMap((kind) =>
    [...byName.values()].filter((one) => one.kind === kind).sort((a, b) => (a.name < b.name ? -1 : 1)),
  );
}

/** The texts of a package's files, without its sources in TypeScript, and without the packages inside. */
function textsIn(folder: string, ending: RegExp): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => ending.test(path) && !/^(?:src|bin|node_modules)\//.test(path))
    .sort()
    .map((path) => readFileSync(join(folder, path), "utf8"));
}

/** The paths that the methods of resources request. */
function endpoints(code: string): readonly SdkName[] {
  const calls = code.matchAll(/_client\.(get|post|delete|put|patch|getAPIList)\((?:path)? ?(["'`])(.*?)\2/g);
  return Array.from(calls, ([, method = "", , path = ""]) => {
    const plain = path.replace(/\?.*$/, "").replace(/^\/v1(?=\/)/, "");
    const verb = method === "getAPIList" ? "GET" : method.toUpperCase();
    return { kind: "endpoint", name: `${verb} ${plain.replaceAll(/\$\{.*?\}/g, "{id}")}`, about: "" };
  });
}

/** Ollama's client has the last part of the path, and few methods. */
function ollamaEndpoints(code: string): readonly SdkName[] {
  const calls = code.matchAll(/\b(get|post|del)\(\s*this\.fetch,\s*`\$\{this\.config\.host\}(\/api\/[a-z_-]+)/g);
  return Array.from(calls, ([, method = "", path = ""]) => {
    const verb = method === "del" ? "DELETE" : method.toUpperCase();
    return { kind: "endpoint", name: `${verb} ${path}`, about: "" };
  });
}

/** Headers that are quoted in code. */
function headers(code: string): readonly SdkName[] {
  const quoted = code.matchAll(
    /(["'`])((?:anthropic|openai|x-stainless|x-api|x-should|x-request|x-client|retry|request|idempotency)-[a-z0-9-]+)\1/gi,
  );
  const named = Array.from(quoted, ([, , name = ""]): SdkName => {
    return { kind: "header", name: name.toLowerCase(), about: "" };
  });
  const betas = code.matchAll(/["'`]OpenAI-Beta["'`]\s*:\s*["'`]([a-z0-9_=-]+)["'`]/gi);
  return [...named, ...Array.from(betas, ([, name = ""]): SdkName => ({ kind: "beta", name, about: "OpenAI-Beta" }))];
}

/** The types that are lists of names. */
const listTypes: Readonly<Record<string, readonly (SdkType & { readonly kind: NameKind })[]>> = {
  openai: [
    { module: "resources/shared", type: "AllModels", kind: "model" },
    { module: "resources/responses/responses", type: 'ResponsesServerEvent["type"]', kind: "event" },
    { module: "resources/responses/responses", type: 'ResponseError["code"]', kind: "error code" },
  ],
  "@anthropic-ai/sdk": [
    { module: "resources/messages/messages", type: "Model", kind: "model" },
    { module: "resources/beta/beta", type: "AnthropicBeta", kind: "beta" },
    { module: "resources/shared", type: "ErrorType", kind: "error type" },
  ],
};

function literals(sdk: string, folder: string): readonly SdkName[] {
  const types = listTypes[sdk] ?? [];
  if (types.length === 0) return [];
  return readSdk(folder, types).flatMap((shape, at) => {
    const { kind, type } = types[at] ?? { kind: "model" as const, type: "" };
    return Array.from(shape?.literals ?? [], (name) => ({ kind, name, about: type }));
  });
}

/** Anthropic has a class for each code, with a doc comment. */
function errorCodes(types: string): readonly SdkName[] {
  const found = types.matchAll(/class (\w+) extends (\w+) \{\s*readonly errorCode: '(\w+)'/g);
  return Array.from(found, (match): SdkName => {
    const [, name = "", base = "", code = ""] = match;
    const before = types.slice(0, match.index).match(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*export declare $/)?.[1] ?? "";
    const doc = before.replaceAll(/\s*\n\s*\*\s?/g, " ").trim();
    return { kind: "error code", name: code, about: `${name} (${base})${doc === "" ? "" : ` – ${doc}`}` };
  });
}

/** Classes of errors, without those of one code. */
function errorClasses(types: string): readonly SdkName[] {
  const found = types.matchAll(/class (\w+Error) extends (\w+(?:<[^{]*>)?) \{(?!\s*readonly errorCode: ')/g);
  return Array.from(found, ([, name = "", base = ""]) => ({ kind: "error class", name, about: `extends ${base}` }));
}

/** The source code of Truewire: which file has a name in quotes, in lower case. */
export type Source = ReadonlyMap<string, string>;

/** Reads `src/` of the current folder. */
export function readSource(): Source {
  const paths = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((path) =>
    /(?<!\.test)\.tsx?$/.test(path),
  );
  return new Map(paths.sort().map((path) => [`src/${path}`, readFileSync(join("src", path), "utf8").toLowerCase()]));
}

/**
 * Returns what Truewire does with a name: from the routes, tables and files that have it, or from `nameReasons`. `undefined` if it is in none
 * of them.
 */
export function treatmentOfName(sdk: string, one: SdkName, source: Source): string | undefined {
  const { kind, name } = one;
  const listed = nameReasons[sdk]?.[kind]?.find(({ names }) => names.some((each) => means(each, one)));
  if (listed) return listed.reason;
  switch (kind) {
    case "endpoint":
      return isServed(name) ? "served" : undefined;
    case "model":
      return sdk === "openai" ? ofOpenaiModel(name) : ofClaude(name);
    case "error class":
      return /^extends (?:API|InternalServerError)/.test(one.about)
        ? "made by the SDK from an error's status"
        : undefined;
    case "error type":
      return errorStatuses[name] && `status ${errorStatuses[name].join(", ")}`;
    case "event":
      if (writtenEvents.has(name) || steerEvents.has(name)) return "written and read";
      return isKnownEvent(name) ? "of OpenAI's own tools: passed on" : undefined;
    case "error code":
      return inSource(name, source) ?? "passed on as it is, with its status and its details";
    case "header":
    case "beta":
      return inSource(name, source);
  }
}

function ofOpenaiModel(name: string): string | undefined {
  const { kind, efforts } = openaiModel(name);
  return kind === "chat" ? efforts && `reasons; efforts ${efforts.join(", ")}` : `${kind} only`;
}

function ofClaude(name: string): string | undefined {
  const version = claudeVersion(name);
  return version && `thinking: ${version.thinking.join(", ") || "none"}`;
}

function inSource(name: string, source: Source): string | undefined {
  const [file] =
    [...source].find(([, text]) => [`"${name}"`, `\`${name}\``].some((quoted) => text.includes(quoted))) ?? [];
  return file && `in ${file}`;
}

function isServed(endpoint: string): boolean {
  const [method = "", path = ""] = endpoint.split(" ");
  const route = routeOf(path.startsWith("/api/") ? path : `/v1${path}`)?.route;
  return route !== undefined && method in route.methods;
}

/** Whether a listed name of `nameReasons` means a name. */
export function means(listed: string, { kind, name }: SdkName): boolean {
  if (kind !== "endpoint") return name === listed || name.startsWith(`${listed}-`);
  const path = name.split(" ")[1] ?? "";
  return [name, path].includes(listed) || path.startsWith(`${listed}/`);
}
