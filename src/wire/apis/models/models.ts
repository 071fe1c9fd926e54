import { isObject, type JsonObject, nonEmpty } from "../../core/json.ts";
import { parseTolerantly } from "../tolerant/read-response.ts";
import { RepairLog } from "../tolerant/repairs.ts";
import type { ModelDefaults, ModelInfo } from "../../core/engine.ts";
import type { Sampling } from "../../core/request.ts";
import type { Profile } from "../profile.ts";
import { orderedMembers } from "../members.ts";
import { openaiModel } from "./schema.ts";

/** A model in the list of a server. */
export interface ListedModel {
  readonly id: string;
  /** Unix time in seconds; 0 if unknown. */
  readonly created: number;
  readonly ownedBy: string | null;
  /** The date of an announced shutdown, as OpenAI writes it. */
  readonly shutdownDate?: string;
  /** The maximum of prompt and answer tokens together, or `null` if unknown. */
  readonly contextLength: number | null;
  /** Whether the server refuses requests whose prompt and token limit exceed `contextLength` together. */
  readonly contextIsEnforced: boolean;
  /** Whether it accepts images; `null` if unknown. */
  readonly sees: boolean | null;
  /** Whether it accepts audio; `null` if unknown. */
  readonly hears: boolean | null;
  readonly defaults?: readonly ModelDefaults[];
}

/**
 * Reads the answer of `GET /models`: OpenAI's list, Anthropic's, a bare array (Together), or `models` by name (Ollama's own API,
 * Gemini's, llama.cpp). Returns `null` if it is not a list of models.
 */
export function readModelList(body: string): readonly ListedModel[] | null {
  const value = parseTolerantly(body, new RepairLog());
  const list = Array.isArray(value) ? value : isObject(value) ? (value["data"] ?? value["models"]) : undefined;
  if (!Array.isArray(list)) return null;
  // llama.cpp lists the models twice; the second list has their capabilities.
  const withCapabilities = isObject(value) && Array.isArray(value["models"]) ? value["models"].filter(isObject) : [];
  return list.filter(isObject).flatMap((entry) => {
    const given = entry["id"] ?? entry["name"] ?? entry["model"];
    if (typeof given !== "string" || given === "") return [];
    // Gemini's own API, whose paths have the names so.
    const id = "supportedGenerationMethods" in entry ? given.replace(/^models\//, "") : given;
    const { created = secondsOf(entry["created_at"]), owned_by: owner, shutdown_date: shutdownDate } = entry;
    return [
      {
        id,
        created: typeof created === "number" && created > 0 ? Math.floor(created) : 0,
        ownedBy: nonEmpty(isCached(entry, id) ? id.split(/[@:]/)[0] : owner) ?? null,
        ...(typeof shutdownDate === "string" && { shutdownDate }),
        ...context(entry),
        ...defaultsIn(entry),
        hears: hearing(entry),
        sees: sight(entry) ?? sight(withCapabilities.find(({ name }) => name === id) ?? {}),
      },
    ];
  });
}

/**
 * Whether an entry is of Transformers, which lists the cache of Hugging Face: the author of a repository, in older versions in a list with its
 * name, and a time with a fraction. The repository is taken as the owner.
 */
function isCached({ created, owned_by: owner }: JsonObject, id: string): boolean {
  return typeof created === "number" && created % 1 !== 0 && id.startsWith(`${String([owner].flat()[0])}/`);
}

/** Returns Anthropic's time of creation (RFC 3339) in Unix seconds, or 0 if it is missing. */
function secondsOf(time: unknown): number {
  const ms = typeof time === "string" ? Date.parse(time) : 0;
  return Number.isNaN(ms) ? 0 : ms / 1000;
}

/**
 * The members with the context size that a server enforces: vLLM and SGLang, OpenRouter and Together, Groq, LM Studio. Members that
 * describe the model, or only its prompts, are not enforced: those of Mistral and LM Studio, Anthropic's and Gemini's, and llama.cpp's `n_ctx_train` (a
 * server may run a model with a larger context).
 */
const enforced = ["max_model_len", "context_length", "context_window", "loaded_context_length"] as const;
const described = ["max_context_length", "max_input_tokens", "inputTokenLimit"] as const;

function context(entry: JsonObject): Pick<ListedModel, "contextLength" | "contextIsEnforced"> {
  const isLength = (value: unknown): value is number => typeof value === "number" && value > 0;
  const limit = enforced.map((name) => entry[name]).find(isLength);
  if (limit !== undefined) return { contextLength: limit, contextIsEnforced: true };
  const meta = isObject(entry["meta"]) ? entry["meta"] : {};
  const known = [...described.map((name) => entry[name]), meta["n_ctx"], meta["n_ctx_train"]].find(isLength);
  return { contextLength: known ?? null, contextIsEnforced: false };
}

/**
 * Returns whether a model accepts images, or `null` if its entry does not say: OpenRouter's modalities (a list, and in older answers
 * "text+image->text"), Mistral's and Anthropic's capabilities, LM Studio's type of model, and the capabilities of Ollama and llama.cpp. A
 * "multimodal" model of llama.cpp may accept audio only.
 */
function sight(entry: JsonObject): boolean | null {
  const { architecture, capabilities, type } = entry;
  const { input_modalities: modalities, modality } = isObject(architecture) ? architecture : {};
  if (Array.isArray(modalities)) return modalities.includes("image");
  if (typeof modality === "string") return modality.replace(/->.*/, "").includes("image");
  if (Array.isArray(capabilities)) {
    if (capabilities.includes("vision")) return true;
    return capabilities.includes("completion") && !capabilities.includes("multimodal") ? false : null;
  }
  if (isObject(capabilities)) {
    const { vision, image_input: image } = capabilities;
    if (typeof vision === "boolean") return vision;
    if (isObject(image) && typeof image["supported"] === "boolean") return image["supported"];
  }
  return type === "vlm" ? true : type === "llm" ? false : null;
}

/** Returns whether a model accepts audio, or `null` if its entry does not say: OpenRouter's modalities, and our own. */
function hearing({ architecture }: JsonObject): boolean | null {
  const { input_modalities: modalities } = isObject(architecture) ? architecture : {};
  return Array.isArray(modalities) ? modalities.includes("audio") : null;
}

/**
 * Writes the body of `GET /v1/models`. `hostedTools`: the names of those that the client may use, which profile `exact` does not show.
 * `more`: members for another client, after OpenAI's.
 */
export function writeModelList(
  models: readonly ModelInfo[],
  profile: Profile,
  hostedTools: readonly string[] = [],
  more: object = {},
): string {
  const own = forms[profile.name].extended && hostedTools.length > 0 && { truewire: { hosted_tools: hostedTools } };
  return write({ object: "list", data: models.map((model) => modelObject(model, profile)), ...own, ...more }, profile);
}

/** Writes the body of `GET /v1/models/{id}`. */
export function writeModel(model: ModelInfo, profile: Profile): string {
  return write(modelObject(model, profile), profile);
}

function modelObject(info: ModelInfo, { name }: Profile): object {
  const { id, created, ownedBy, shutdownDate, contextLength, takesImages: sees, takesAudio: hears } = info;
  const members = { id, object: "model", created, owned_by: ownedBy, shutdown_date: shutdownDate };
  const model = orderedMembers<unknown>(openaiModel, members);
  if (!forms[name].extended) return model;
  return {
    ...model,
    // The names of vLLM and of OpenRouter.
    ...(contextLength !== undefined && { max_model_len: contextLength, context_length: contextLength }),
    // OpenRouter's name.
    ...((sees ?? hears) !== undefined && {
      architecture: { input_modalities: ["text", ...(sees ? ["image"] : []), ...(hears ? ["audio"] : [])] },
    }),
    ...(info.defaults && defaultMembers(info.defaults)),
  };
}

/** The effective defaults under OpenRouter's name, and the origin of each in a member of our own. */
function defaultMembers(defaults: readonly ModelDefaults[]): object {
  const origins = defaults.flatMap(({ origin, parameters }) => Object.keys(parameters).map((name) => [name, origin]));
  return {
    default_parameters: Object.assign({}, ...defaults.map(({ parameters }) => parameters)) as object,
    truewire: { default_origins: Object.fromEntries(origins) as object },
  };
}

/** Sampling by the names of chat requests. Values that are no numbers are left out. */
export function samplingParameters({ xtc, dry, ...sampling }: Sampling): ModelDefaults["parameters"] {
  const values: readonly (readonly [name: string, value: unknown])[] = [
    ...Object.entries(sampling).map(([name, value]) => [snakeCase(name), value] as const),
    ["xtc_probability", xtc?.probability],
    ["xtc_threshold", xtc?.threshold],
    ["dry_multiplier", dry?.multiplier],
    ["dry_base", dry?.base],
    ["dry_allowed_length", dry?.allowedLength],
    ["dry_penalty_last_n", dry?.lastN],
  ];
  return Object.fromEntries(values.filter((entry): entry is [string, number] => typeof entry[1] === "number"));
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The defaults in an entry of OpenRouter's list or ours; OpenRouter lists unknown values as `null`. */
function defaultsIn({ default_parameters: listed }: JsonObject): Pick<ListedModel, "defaults"> {
  const known = Object.entries(isObject(listed) ? listed : {}).filter(
    (entry): entry is [string, string | number] => typeof entry[1] === "number" || typeof entry[1] === "string",
  );
  if (known.length === 0) return {};
  return { defaults: [{ origin: "server", parameters: Object.fromEntries(known.slice(0, maxDefaults)) }] };
}

const maxDefaults = 100;

function write(value: object, { name }: Profile): string {
  return JSON.stringify(value, null, forms[name].indent);
}

interface Form {
  readonly indent: number;
  /** Has members that OpenAI does not have: the context size, and whether the model accepts images. */
  readonly extended: boolean;
}

/** OpenAI's list is indented, currently without a final line feed (recordings of 2025 and 2026). */
const forms: Readonly<Record<Profile["name"], Form>> = {
  lean: { indent: 0, extended: true },
  exact: { indent: 2, extended: false },
};

/**
 * The entry of a model in the list that Codex reads (`GET /models?client_version=…`): `models`, next to OpenAI's `data`. Codex drops the
 * whole list if an entry lacks one of the members up to `truncation_policy`, or has an unknown `shell_type`. Other members have defaults
 * that fit OpenAI's models by name. Source: Codex CLI 0.169.0 and its requests.
 */
interface CodexModel {
  readonly slug: string;
  readonly display_name: string;
  readonly visibility: "list";
  readonly supported_in_api: true;
  /** The order in its menu, the lowest first. */
  readonly priority: number;
  readonly base_instructions: string;
  readonly shell_type: "unified_exec";
  readonly experimental_supported_tools: readonly string[];
  readonly support_verbosity: boolean;
  readonly supported_reasoning_levels: readonly { readonly effort: string; readonly description: string }[];
  /** How the output of tools is cut. */
  readonly truncation_policy: { readonly mode: "tokens"; readonly limit: number };
  /** Codex compacts its history before the context is full. */
  readonly context_window?: number;
  readonly input_modalities: readonly ("text" | "image")[];
  readonly apply_patch_tool_type: "freeform";
  readonly supports_search_tool: boolean;
  readonly supports_parallel_tool_calls: boolean;
  readonly supports_reasoning_summaries: boolean;
  readonly supports_reasoning_summary_parameter: boolean;
  readonly default_reasoning_summary: "auto";
}

/** Returns the models that Codex can use, which are those with conversations. */
export function codexCatalog(models: readonly ModelInfo[]): readonly CodexModel[] {
  return models.filter(({ endpoints }) => endpoints.includes("chat")).map(codexModel);
}

function codexModel({ id, contextLength, takesImages }: ModelInfo, index: number): CodexModel {
  return {
    slug: id,
    display_name: id,
    visibility: "list",
    supported_in_api: true,
    priority: index + 1,
    base_instructions: "You are a coding agent. You work in the user's folder with the tools that you have.",
    shell_type: "unified_exec",
    experimental_supported_tools: [],
    support_verbosity: false,
    supported_reasoning_levels: [],
    truncation_policy: { mode: "tokens", limit: 10_000 },
    ...(contextLength !== undefined && { context_window: contextLength }),
    input_modalities: takesImages === false ? ["text"] : ["text", "image"],
    apply_patch_tool_type: "freeform",
    supports_search_tool: false,
    supports_parallel_tool_calls: true,
    supports_reasoning_summaries: true,
    supports_reasoning_summary_parameter: true,
    default_reasoning_summary: "auto",
  };
}
