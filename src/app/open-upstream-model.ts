import type { UpstreamModelConfig } from "../config/model-schema.ts";
import { openUpstreamEngine } from "../engines/upstream/open-upstream-engine.ts";
import { formatOf } from "./format-of.ts";
import type { Engine } from "../generation/engine.ts";
import { observerOf } from "./observer-of.ts";
import type { OpenOptions } from "./open-options.ts";

/** Opens a configured upstream. Rejects with an Error when its models are neither given nor listed. */
export async function openUpstreamModel(
  model: UpstreamModelConfig,
  name: string,
  options: OpenOptions,
): Promise<Engine> {
  const { url, toolFormat, tls } = model;
  return openUpstreamEngine({
    urls: typeof url === "string" ? [url] : url,
    name,
    api: model.api,
    key: model.key,
    headers: model.headers,
    models: model.models,
    fallbacks: model.fallbacks,
    dialect: model.requests,
    singleChoice: model.singleChoice,
    format: toolFormat === undefined || toolFormat === "auto" ? toolFormat : formatOf(toolFormat),
    timeouts: model.timeouts,
    retries: model.retries,
    tls: tls && (await (await import("./read-certificates.ts")).readCertificates(tls)),
    answerLimit: model.answerLimit,
    descriptorLimit: options.descriptorLimit,
    log: observerOf(options.log, name),
  });
}
