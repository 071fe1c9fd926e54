import { readFile } from "node:fs/promises";
import { ConfigError } from "./config/config-error.ts";
import type { UpstreamTls } from "./config/config.ts";
import type { UpstreamModelConfig } from "./config/model-schema.ts";
import { openUpstreamEngine } from "./engines/upstream/open-upstream-engine.ts";
import { formatOf } from "./format-of.ts";
import type { Engine } from "./generation/engine.ts";
import type { OpenOptions } from "./open-engine.ts";

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
    key: model.key,
    headers: model.headers,
    models: model.models,
    fallbacks: model.fallbacks,
    dialect: model.requests,
    singleChoice: model.singleChoice,
    format: toolFormat === undefined || toolFormat === "auto" ? toolFormat : formatOf(toolFormat),
    timeouts: model.timeouts,
    retries: model.retries,
    tls: tls && (await withTexts(tls)),
    answerLimit: model.answerLimit,
    log: (line, fields) => options.log.info({ model: name, ...fields }, line),
  });
}

/** The certificates themselves in place of their files' names. */
async function withTexts(tls: UpstreamTls): Promise<UpstreamTls> {
  const text = async (member: "ca" | "cert" | "key"): Promise<string | undefined> => {
    const file = tls[member];
    if (file === undefined) return undefined;
    return readFile(file, "utf8").catch((cause: Error) => {
      throw new ConfigError([{ path: ["tls", member], message: cause.message }], undefined, { cause });
    });
  };
  const [ca, cert, key] = await Promise.all([text("ca"), text("cert"), text("key")]);
  return { ...tls, ca, cert, key };
}
