import type { UpstreamModelConfig } from "../config/model-schema.ts";
import { findApi } from "../engines/upstream/find-api.ts";
import { openUpstreamEngine } from "../engines/upstream/open-upstream-engine.ts";
import type { UpstreamOptions } from "../engines/upstream/options.ts";
import type { SourceApi } from "../wire/source-api.ts";
import { formatOf } from "./format-of.ts";
import type { Engine } from "../generation/engine.ts";
import { observerOf } from "./observer-of.ts";
import type { OpenOptions } from "./open-options.ts";

/**
 * Opens a configured upstream, and says which API it speaks. Rejects with an Error when
 * its models are neither given nor listed.
 */
export async function openUpstreamModel(
  model: UpstreamModelConfig,
  name: string,
  options: OpenOptions,
): Promise<{ readonly engine: Engine; readonly api: SourceApi }> {
  const { url, toolFormat, tls } = model;
  const settings: UpstreamOptions = {
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
  };
  // Where the models are given, nothing is asked before the first request: the server need not be up.
  const api = settings.api ?? (settings.models ? "chat" : await findApi(settings));
  return { engine: await openUpstreamEngine({ ...settings, api }), api };
}
