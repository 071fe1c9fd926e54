import type { AnswerSettings } from "../../wire/apis/port.ts";
import type { Profile } from "../../wire/apis/profile.ts";
import { modelNotFound } from "../../wire/apis/failures.ts";
import type { Engine, ModelInfo } from "../../wire/core/engine.ts";
import { type FallbackReason, FailureError } from "../../wire/core/failure.ts";
import type { PathPassing } from "../../wire/core/path-passing.ts";
import type { UsageLimits } from "../kv/limits.ts";
import type { Client } from "./keys/key-ring.ts";

/** An engine of the server, and the form of its answers. */
export interface ServedEngine {
  /** Distinguishes engines whose models have the same id: that of the second one, or of an upstream, is listed as `name/id`. */
  readonly name: string;
  readonly engine: Engine;
  readonly kind?: "local" | "upstream" | "program" | "engine";
  /** The file or repository of a local model, the file of a program. */
  readonly source?: string;
  /** Further names for the engine's first model; `*` matches any text. */
  readonly aliases: readonly string[];
  /** Default: the profile of the server. */
  readonly profile?: Profile;
  readonly settings: AnswerSettings;
  /** The APIs whose requests are forwarded to another server, which may support parameters that are refused here. Default: none. */
  readonly forwards?: readonly string[];
  /** Whether the server to which requests are forwarded runs hosted tools (`ServerProfile.hostedTools`). */
  readonly runsHostedTools?: boolean | undefined;
  readonly fallbacks?: Fallbacks;
  /** The paths of an upstream that are passed on. */
  readonly passing?: PathPassing | undefined;
  /** An upstream gets the client's own key; its limits hold for each key. */
  readonly passKey?: { readonly limits?: UsageLimits | undefined } | undefined;
  /** The server ends answers that repeat themselves (`LoopGuard`). Local models do it themselves. */
  readonly guardsLoops?: boolean;
}

/** Models that answer when one fails before its first output. */
export interface Fallbacks {
  /** For all models of an engine, or by model. */
  readonly models: readonly string[] | Readonly<Record<string, readonly string[]>>;
  readonly reasons?: readonly FallbackReason[] | undefined;
}

/** A model under one of the names that clients may use. */
export interface ServedModel {
  /** `id` is the name that clients use. */
  readonly info: ModelInfo;
  /** The engine's name for it. */
  readonly engineModel: string;
  readonly from: ServedEngine;
}

/** All models of all engines, by name. The list of an engine (an upstream) may change at any time; the directory follows it. */
export class ModelDirectory {
  readonly engines: readonly ServedEngine[];
  #lists: (readonly ModelInfo[])[] = [];
  #models = new Map<string, ServedModel>();
  /** Aliases with `*`, which are not listed. */
  #patterns: { readonly alias: string; readonly model: ServedModel }[] = [];

  constructor(engines: readonly ServedEngine[]) {
    this.engines = engines;
  }

  permits(_name: string): boolean {
    return true;
  }

  /** Whether a model of any name may appear later, because an engine does not know its models yet. */
  mayCome(_name: string): boolean {
    return this.engines.some(({ engine }) => engine.models().length === 0);
  }

  find(name: string): ServedModel | undefined {
    const models = this.#current();
    const found = models.get(name) ?? models.get(otherName(name));
    return found ?? this.#patterns.find(({ alias }) => matchesAlias(alias, name))?.model;
  }

  /** The model that a request body (parsed JSON of any shape) names. */
  namedIn(body: unknown): ServedModel | undefined {
    const name = nameIn(body);
    return name === undefined ? undefined : this.find(name);
  }

  /** Whether a model has this name, for any client. */
  isServed(name: string): boolean {
    return this.find(name) !== undefined;
  }

  /** In the order of the engines. */
  list(): readonly ServedModel[] {
    return [...this.#current().values()];
  }

  #current(): ReadonlyMap<string, ServedModel> {
    const lists = this.engines.map(({ engine }) => engine.models());
    if (lists.length !== this.#lists.length || lists.some((list, at) => !sameModels(list, this.#lists[at]))) {
      this.#lists = lists;
      this.#models = this.#gather(lists);
    }
    return this.#models;
  }

  #gather(lists: readonly (readonly ModelInfo[])[]): Map<string, ServedModel> {
    const models = new Map<string, ServedModel>();
    this.#patterns = [];
    // A model of another server does not take the name of one of this server, whichever comes first.
    const ofServer = new Set(
      this.engines.flatMap(({ kind }, at) => (kind === "upstream" ? [] : (lists[at] ?? []).map(({ id }) => id))),
    );
    const add = (name: string, info: ModelInfo, from: ServedEngine): void => {
      const isTaken = models.has(name) || (from.kind === "upstream" && ofServer.has(name));
      const free = isTaken ? `${from.name}/${name}` : name;
      if (!models.has(free)) models.set(free, { info: { ...info, id: free }, engineModel: info.id, from });
    };
    for (const [at, from] of this.engines.entries()) {
      for (const info of lists[at] ?? []) add(info.id, info, from);
    }
    // Aliases come last: a model's own name wins over an alias.
    for (const [at, from] of this.engines.entries()) {
      const [first] = lists[at] ?? [];
      if (!first) continue;
      for (const alias of from.aliases) {
        if (!alias.includes("*")) add(alias, first, from);
        else this.#patterns.push({ alias, model: { info: first, engineModel: first.id, from } });
      }
    }
    return models;
  }
}

const latest = ":latest";

/** `name` and `name:latest` mean the same model, as in Ollama. */
export function otherName(name: string): string {
  return name.endsWith(latest) ? name.slice(0, -latest.length) : name + latest;
}

/** An engine may return a new array each time, so the entries are compared, not the arrays. */
function sameModels(list: readonly ModelInfo[], before: readonly ModelInfo[] | undefined): boolean {
  if (list === before) return true;
  if (before === undefined || list.length !== before.length) return false;
  return list.every((model, at) => {
    const other = before[at];
    return model === other || (other !== undefined && sameModel(model, other));
  });
}

function sameModel(model: ModelInfo, other: ModelInfo): boolean {
  const names = new Set([...Object.keys(model), ...Object.keys(other)]) as ReadonlySet<keyof ModelInfo>;
  for (const name of names) {
    if (name !== "endpoints" && model[name] !== other[name]) return false;
  }
  return model.endpoints.join() === other.endpoints.join();
}

/** Whether an alias, in which `*` stands for any text (`claude-*`), matches a name. Linear in the length of the name. */
export function matchesAlias(alias: string, name: string): boolean {
  const [first = "", ...others] = alias.split("*");
  if (others.length === 0) return name === alias;
  const last = others.pop() ?? "";
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of others) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}

/** The models that a client may use. To the client, all others do not exist. */
export type ModelView = Pick<ModelDirectory, "find" | "namedIn" | "list" | "mayCome" | "isServed" | "permits">;

/** `client`: undefined if no key is required. */
export function modelsOf(client: Client | undefined, directory: ModelDirectory): ModelView {
  const allowed = client?.models;
  if (!allowed) return directory;
  const may = (name: string): boolean =>
    allowed.some((pattern) => matchesAlias(pattern, name) || matchesAlias(pattern, otherName(name)));
  return {
    permits: may,
    find: (name) => (may(name) ? directory.find(name) : undefined),
    namedIn(body) {
      const name = nameIn(body);
      return name !== undefined && may(name) ? directory.find(name) : undefined;
    },
    isServed: (name) => directory.isServed(name),
    mayCome: (name) => may(name) && directory.mayCome(name),
    list: () => directory.list().filter(({ info }) => may(info.id)),
  };
}

export function nameIn(body: unknown): string | undefined {
  const name = typeof body === "object" && body !== null && "model" in body ? body.model : undefined;
  return typeof name === "string" ? name : undefined;
}

/** Finds a model by name. Throws `FailureError` 404 or 503, as `modelNotServed`. */
export function modelNamed(name: string, directory: ModelView, profile: Profile): ServedModel {
  const model = directory.find(name);
  if (model) return model;
  throw modelNotServed(name, directory, profile);
}

/**
 * The failure for a request whose model the directory does not have. If the profile lists the available models: those with `endpoint`, by
 * default all.
 */
export function modelNotServed(
  name: string,
  directory: ModelView,
  profile: Profile,
  endpoint?: ModelInfo["endpoints"][number],
): FailureError {
  const all = profile.listsModels ? directory.list() : [];
  const known = endpoint === undefined ? all : all.filter(({ info }) => info.endpoints.includes(endpoint));
  const ids = known.map(({ info }) => info.id);
  return unknownModel(name, directory, modelNotFound(name, ids));
}

/**
 * The failure for a model that the directory does not have: `otherwise`, or 503 while the models of an upstream are not known yet, so that
 * the client may try again.
 */
export function unknownModel(name: string, directory: ModelView, otherwise: FailureError): FailureError {
  if (!directory.mayCome(name)) return otherwise;
  return new FailureError({
    kind: "unavailable",
    message: `The model '${name}' is not there now. It may be one of a server that does not answer yet. Please try again later.`,
    status: 503,
    param: null,
    code: "model_not_available",
    model: name,
    retryAfterSeconds: 5,
  });
}
