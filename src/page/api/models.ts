import { isObject, type JsonObject } from "../../wire/core/json.ts";
import { Changing } from "../parts/changing.ts";
import { callApi, clientKey, messageIn } from "./call-api.ts";

/** How long to wait before a server is asked again that is still loading its models, or is not there. */
const againMs = 1500;

/** The value that applies to requests without a parameter, and where it is set. */
export interface KnownDefault {
  readonly value: string | number;
  readonly origin: string;
}

/** The models that the server has, as far as is known. */
export class Models extends Changing {
  state: "asking" | "ready" | "key-needed" | "key-refused" | "waiting" = "asking";
  names: readonly string[] = [];
  /** Those that take no images. Of others, the server may not know. */
  blind: ReadonlySet<string> = new Set();
  /** The names of the tools that the server runs; undefined: it does not say. */
  hostedTools: readonly string[] | undefined;
  /** Those that this server runs itself: they read no PDF and Office files. */
  local: ReadonlySet<string> = new Set();
  /** By model and name of the parameter. */
  defaults: ReadonlyMap<string, ReadonlyMap<string, KnownDefault>> = new Map();
  /** Why it waits, or refused the key, in the server's words. */
  message = "";
  /** The server answers only who has a key. */
  keyNeeded = clientKey.value !== "";

  /** Asks until there is an answer that another try would not change. */
  async ask(): Promise<void> {
    this.state = "asking";
    this.changed();
    while (!(await this.#tried())) await new Promise((resolve) => setTimeout(resolve, againMs));
    this.changed();
  }

  async #tried(): Promise<boolean> {
    try {
      const response = await callApi("models");
      const body: unknown = await response.json();
      if (response.status === 401) {
        this.state = clientKey.value === "" ? "key-needed" : "key-refused";
        this.keyNeeded = true;
        this.message = messageIn(body) ?? "The server does not know this key.";
        return true;
      }
      if (response.ok) {
        const entries = entriesIn(body);
        this.hostedTools = hostedToolsIn(body);
        this.names = entries.map(({ id }) => id);
        this.blind = new Set(entries.flatMap(({ id, blind }) => (blind ? [id] : [])));
        this.local = new Set(entries.flatMap(({ id, defaults }) => (isLocal(defaults) ? [id] : [])));
        this.defaults = new Map(entries.map(({ id, defaults }) => [id, defaults]));
        this.state = "ready";
        return true;
      }
      this.#wait(messageIn(body) ?? `The server answers with status ${response.status}.`);
    } catch {
      this.#wait("The server does not answer.");
    }
    return false;
  }

  #wait(message: string): void {
    this.state = "waiting";
    this.message = message;
    this.changed();
  }
}

function entriesIn(body: unknown): {
  readonly id: string;
  readonly blind: boolean;
  readonly defaults: ReadonlyMap<string, KnownDefault>;
}[] {
  const list: readonly unknown[] = isObject(body) && Array.isArray(body["data"]) ? body["data"] : [];
  return list.flatMap((model) => {
    if (!isObject(model) || typeof model["id"] !== "string") return [];
    const { input_modalities: modalities } = isObject(model["architecture"]) ? model["architecture"] : {};
    return [
      {
        id: model["id"],
        blind: Array.isArray(modalities) && !modalities.includes("image"),
        defaults: defaultsIn(model),
      },
    ];
  });
}

function hostedToolsIn(body: unknown): readonly string[] | undefined {
  const { hosted_tools: names } = isObject(body) && isObject(body["truewire"]) ? body["truewire"] : {};
  return Array.isArray(names) ? names.filter((name) => typeof name === "string") : undefined;
}

function defaultsIn(model: JsonObject): ReadonlyMap<string, KnownDefault> {
  const { default_parameters: parameters, context_length: context, truewire } = model;
  const { default_origins: origins } = isObject(truewire) ? truewire : {};
  const known = Object.entries(isObject(parameters) ? parameters : {}).flatMap(([name, value]) => {
    const origin = isObject(origins) ? origins[name] : undefined;
    const isKnown = (typeof value === "number" || typeof value === "string") && typeof origin === "string";
    return isKnown ? [[name, { value, origin }] as const] : [];
  });
  return new Map([...(isLocal(new Map(known)) ? impliedDefaults(context) : []), ...known]);
}

function isLocal(defaults: ReadonlyMap<string, KnownDefault>): boolean {
  return [...defaults.values()].some(({ origin }) => origin === "engine");
}

/** The defaults of a local model that are no values of their parameters. `context`: its context size in tokens. */
function impliedDefaults(context: unknown): readonly (readonly [name: string, known: KnownDefault])[] {
  const length = typeof context === "number" ? `: ${context.toLocaleString("en")} tokens` : "";
  return [
    ["max_completion_tokens", { value: `up to the context${length}`, origin: "" }],
    ["seed", { value: "random", origin: "" }],
  ];
}
