import { existsSync } from "node:fs";
import { dirname, isAbsolute, resolve } from "node:path";
import { ConfigError, type ConfigProblem } from "./config-error.ts";
import { checkWorkers } from "./check-workers.ts";
import type { ModelEntry } from "./model-schema.ts";
import type { TruewireConfig } from "./schema.ts";
import { checkHostedTools, withHostedPathsFrom } from "./hosted-tools-schema.ts";
import { parseConfig } from "./schema.ts";
import { isFolder, modelsInFolder } from "./folder.ts";
import { modelOfTarget } from "./target.ts";

/**
 * Reads `truewire.yaml`: YAML (or JSON, which is YAML), with `${NAME}` for environment variables. Paths in it are relative to it.
 * Throws `ConfigError` whose every line begins with `file:line:`.
 */
export async function readConfigFile(
  file: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<TruewireConfig> {
  // Imported here, so that a server without a file starts without the YAML library (72 modules).
  const { readYamlFile } = await import("./read-yaml-file.ts");
  const value = await readYamlFile(file, environment, (read) => void parseConfig((read ?? {}) as TruewireConfig));
  return withPathsFrom((value ?? {}) as TruewireConfig, dirname(resolve(file)));
}

/**
 * Finds the mistakes of a configuration file that `readConfigFile` finds, and those that only `serve` would notice: no model, and model files
 * that do not exist on this machine. Returns the number of entries in `models`. Throws `ConfigError` whose every line begins with
 * `file:line:`.
 */
export async function checkConfigFile(
  file: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const folder = dirname(resolve(file));
  const { readYamlFile } = await import("./read-yaml-file.ts");
  await readYamlFile(file, environment, (read) => {
    const config = (read ?? {}) as TruewireConfig;
    const parsed = parseConfig(config);
    const missing = (config.models ?? []).flatMap((model, at) => missingFilesOf(model, at, folder));
    if (missing.length > 0) throw new ConfigError(missing);
    checkWorkers(config, parsed.keys);
    checkHostedTools(parsed.hostedTools);
  });
  const { models = [] } = await readConfigFile(file, environment);
  if (models.length === 0) throw noModels(file);
  return models.length;
}

/** Returns the error with `file:line:` for each problem, if all of its settings are in the configuration file; else the error itself. */
export async function errorInFile(
  error: ConfigError,
  file: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<unknown> {
  const { readYamlFile } = await import("./read-yaml-file.ts");
  try {
    await readYamlFile(file, environment, (read) => {
      const settings = (read ?? {}) as object;
      if (error.problems.every(({ path }) => Object.hasOwn(settings, String(path[0])))) throw error;
    });
    return error;
  } catch (placed) {
    return placed;
  }
}

function missingFilesOf(model: string | ModelEntry, at: number, folder: string): ConfigProblem[] {
  const parsed = typeof model === "string" ? modelOfTarget(model) : model;
  if (parsed.kind !== "local") return [];
  const { draft } = parsed;
  const files = [
    { file: parsed.path, path: ["models", at, ...(typeof model === "string" ? [] : ["path"])] },
    { file: typeof draft === "string" ? draft : draft?.path, path: ["models", at, "draft"] },
  ];
  return files.flatMap(({ file, path }) => {
    if (file === undefined || file.startsWith("hf:") || existsSync(resolve(folder, file))) return [];
    return [{ path, message: `the model file ${resolve(folder, file)} does not exist` }];
  });
}

/** The error for a configuration that serves no model. */
export function noModels(file: string | undefined): ConfigError {
  return new ConfigError(
    [{ path: ["models"], message: "is empty; expected a model to serve, such as [model.gguf]" }],
    file,
  );
}

function hookWithPath(hook: TruewireConfig["hook"], path: (text: string) => string): Pick<TruewireConfig, "hook"> {
  if (typeof hook === "string") return { hook: path(hook) };
  return hook && "module" in hook && typeof hook.module === "string"
    ? { hook: { ...hook, module: path(hook.module) } }
    : {};
}

function withPathsFrom(config: TruewireConfig, folder: string): TruewireConfig {
  const path = (text: string): string => (isAbsolute(text) || text.startsWith("hf:") ? text : resolve(folder, text));
  const entry = (model: string | ModelEntry): ModelEntry => {
    const parsed = typeof model === "string" ? modelOfTarget(model) : model;
    if (parsed.kind === "program" && typeof parsed.program === "string") {
      return { ...parsed, program: path(parsed.program) };
    }
    if (parsed.kind !== "local") return parsed;
    const { chatTemplate, draft, mmproj, llamaLibraries } = parsed;
    return {
      ...parsed,
      path: path(parsed.path),
      ...(draft !== undefined && {
        draft: typeof draft === "string" ? path(draft) : { ...draft, path: path(draft.path) },
      }),
      ...(chatTemplate !== undefined && { chatTemplate: path(chatTemplate) }),
      ...(mmproj !== undefined && mmproj !== "off" && { mmproj: path(mmproj) }),
      ...(llamaLibraries !== undefined && { llamaLibraries: path(llamaLibraries) }),
    };
  };
  const entries = (model: string | ModelEntry): ModelEntry[] =>
    typeof model === "string" && isFolder(path(model)) ? modelsInFolder(path(model)) : [entry(model)];
  const store = (place: string): string => (place === "memory" || place.includes("://") ? place : path(place));
  const models = config.models?.flatMap(entries);
  return {
    ...config,
    ...(typeof config.store === "string" && { store: store(config.store) }),
    ...(typeof config.store === "object" &&
      config.store.at !== undefined && { store: { ...config.store, at: store(config.store.at) } }),
    ...(config.pricesFile !== undefined && { pricesFile: path(config.pricesFile) }),
    ...hookWithPath(config.hook, path),
    ...(config.keysFile !== undefined && { keysFile: path(config.keysFile) }),
    ...(models?.some(({ kind }) => kind === "upstream") && {
      profilesFile: path(config.profilesFile ?? "truewire.profiles.json"),
    }),
    ...(config.logStream !== undefined && { logStream: path(config.logStream) }),
    ...(config.tlsCert !== undefined && { tlsCert: path(config.tlsCert) }),
    ...(config.tlsKey !== undefined && { tlsKey: path(config.tlsKey) }),
    ...(config.hostedTools && { hostedTools: withHostedPathsFrom(config.hostedTools, path) }),
    ...(models && { models }),
  };
}
