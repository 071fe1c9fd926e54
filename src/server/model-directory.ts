import type { AnswerSettings } from "../apis/port.ts";
import type { Profile } from "../apis/profile.ts";
import type { Engine, ModelInfo } from "../core/engine.ts";
import type { Client } from "./keys/key-ring.ts";

/** One engine that the server answers from, and how its answers look. */
export interface ServedEngine {
  /** Tells two engines apart whose models have the same id: the second one's model is then `name/id`. */
  readonly name: string;
  readonly engine: Engine;
  /** Further names for the engine's first model; `*` stands for any text. */
  readonly aliases: readonly string[];
  /** Absent: the server's. */
  readonly profile?: Profile;
  readonly settings: AnswerSettings;
  /** The APIs whose requests go on to another server, which may know parameters that are refused here. Default: none. */
  readonly forwards?: readonly string[];
}

/** A model under one of the names that clients may use. */
export interface ServedModel {
  /** As listed: `id` is the name that clients use. */
  readonly info: ModelInfo;
  /** What its engine calls it. */
  readonly engineModel: string;
  readonly from: ServedEngine;
}

/** All models of all engines, by name. An engine's list may change while it runs (an upstream's), so the directory follows it. */
export class ModelDirectory {
  readonly engines: readonly ServedEngine[];
  #lists: (readonly ModelInfo[])[] = [];
  #models = new Map<string, ServedModel>();
  /** Aliases that stand for many names. They are not listed. */
  #patterns: { readonly alias: string; readonly model: ServedModel }[] = [];

  constructor(engines: readonly ServedEngine[]) {
    this.engines = engines;
  }

  /** Whether a model that is not here now may be there later, of this name as of any: an engine has not told its models yet. */
  mayCome(_name: string): boolean {
    return this.engines.some(({ engine }) => engine.models().length === 0);
  }

  find(name: string): ServedModel | undefined {
    return this.#current().get(name) ?? this.#patterns.find(({ alias }) => standsFor(alias, name))?.model;
  }

  /** The model that a request's body (parsed JSON of any shape) asks for. */
  namedIn(body: unknown): ServedModel | undefined {
    if (typeof body !== "object" || body === null || !("model" in body)) return undefined;
    return typeof body.model === "string" ? this.find(body.model) : undefined;
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
    const add = (name: string, info: ModelInfo, from: ServedEngine): void => {
      const free = models.has(name) ? `${from.name}/${name}` : name;
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

/** Whether an alias with `*` in it, such as `claude-*`, stands for a name. Looks at each character once. */
export function standsFor(alias: string, name: string): boolean {
  const [first = "", ...others] = alias.split("*");
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

/** The models that a client sees: any other is to it as one that does not exist. */
export type ModelView = Pick<ModelDirectory, "find" | "namedIn" | "list" | "mayCome">;

/** `client`: undefined where nobody needs a key. */
export function modelsOf(client: Client | undefined, directory: ModelDirectory): ModelView {
  const allowed = client?.models;
  if (!allowed) return directory;
  const may = (name: string): boolean => allowed.some((pattern) => standsFor(pattern, name));
  return {
    find: (name) => (may(name) ? directory.find(name) : undefined),
    namedIn(body) {
      const name = typeof body === "object" && body !== null && "model" in body ? body.model : undefined;
      return typeof name === "string" && may(name) ? directory.find(name) : undefined;
    },
    mayCome: (name) => may(name) && directory.mayCome(name),
    list: () => directory.list().filter(({ info }) => may(info.id)),
  };
}
