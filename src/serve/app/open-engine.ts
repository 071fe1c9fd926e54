import { knownServer } from "../../wire/apis/adapt/known-servers.ts";
import type { LocalModelConfig, ModelConfig, UpstreamModelConfig } from "../config/model-schema.ts";
import type { ServedEngine } from "../server/model-directory.ts";
import { exact, lean } from "../../wire/apis/profile.ts";
import type { OpenedEngine } from "./open-options.ts";
import type { PoolOptions } from "./runtime.ts";

/** An engine with how the answers of one configured model look. */
export function servedEngine(model: ModelConfig, opened: OpenedEngine): ServedEngine {
  const { aliases, wire, systemFingerprint, serviceTier, logprobsKey, reasoningFields, standsFor } = model;
  const { fallbacks, fallbackOn } = model;
  return {
    name: nameOf(model),
    engine: opened.engine,
    kind: model.kind,
    ...(model.kind === "local" && { source: model.path }),
    ...(model.kind === "program" && typeof model.program === "string" && { source: model.program }),
    // The API of an upstream that does not answer yet is not known.
    get forwards() {
      return opened.forwards ?? [];
    },
    aliases,
    passing: opened.passing,
    ...(model.kind === "upstream" && { runsHostedTools: runsHostedTools(model) }),
    ...(model.kind === "upstream" && model.passKey && { passKey: passedKeyOf(model.passKey) }),
    ...(model.kind !== "local" && model.loopGuard === "on" && { guardsLoops: true }),
    ...(fallbacks && { fallbacks: { models: fallbacks, reasons: fallbackOn } }),
    ...(wire && { profile: wire === "exact" ? exact : lean }),
    settings: {
      systemFingerprint,
      serviceTier,
      logprobsKey,
      standsFor,
      reasoningFields,
      passExtra: model.kind === "upstream" ? model.passExtra : undefined,
    },
  };
}

function passedKeyOf(passKey: NonNullable<UpstreamModelConfig["passKey"]>): ServedEngine["passKey"] {
  return passKey === true ? {} : passKey === false ? undefined : { limits: passKey };
}

/** Whether an upstream runs hosted tools itself; undefined: not known. */
function runsHostedTools({ url, requests }: UpstreamModelConfig): boolean | undefined {
  const known = [url].flat().map((one) => knownServer(one, undefined)?.profile.hostedTools === true);
  return requests?.hostedTools ?? (known.every(Boolean) || undefined);
}

/** Opens the engine of one configured model. What each kind of engine needs is loaded only here. */
export async function openEngine(
  model: Exclude<ModelConfig, LocalModelConfig>,
  options: PoolOptions,
): Promise<OpenedEngine> {
  const name = nameOf(model);
  switch (model.kind) {
    case "engine":
      return { engine: model.engine };
    case "upstream": {
      const { openUpstreamModel } = await import("./open-upstream-model.ts");
      return openUpstreamModel(model, name, options);
    }
    case "program": {
      const { openProgramModel } = await import("./open-program-model.ts");
      return { engine: await openProgramModel(model, name, options) };
    }
  }
}

/** The model's name in logs and messages; for a local model also its id. */
export function nameOf(model: ModelConfig): string {
  if (model.name !== undefined) return model.name;
  switch (model.kind) {
    case "local":
      return fileName(model.path).replace(/\.gguf$/i, "");
    case "upstream":
      return new URL(typeof model.url === "string" ? model.url : (model.url[0] ?? "")).host;
    case "program":
      return typeof model.program === "string" ? fileName(model.program).replace(/\.[cm]?[jt]s$/i, "") : "program";
    case "engine":
      return model.engine.models()[0]?.id ?? "engine";
  }
}

function fileName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}
