import type { UpstreamModelConfig } from "../config/model-schema.ts";
import { apiOfUrls, platformOfUrls, findApi, geminiRoot, ollamaRoot } from "../../engines/upstream/find-api.ts";
import { mayComeUp } from "../../engines/upstream/list-models.ts";
import { shownUrl } from "../../engines/upstream/targets.ts";
import { UnnamedApiEngine } from "../../engines/upstream/unnamed-api.ts";
import { openPathPassing } from "../../engines/upstream/pass-paths.ts";
import { openUpstreamEngine } from "../../engines/upstream/upstream-engine.ts";
import type { OpenTransport } from "../../engines/upstream/transport.ts";
import { platforms, type SourceApi } from "../../wire/apis/source-port.ts";
import type { Engine } from "../../wire/core/engine.ts";
import type { ServerProfile } from "../../wire/apis/adapt/server-profile.ts";
import { commandToken } from "../../engines/upstream/credential.ts";
import type { TokenCommand } from "../../engines/upstream/credential.ts";
import type { Credential, PoolKey, UpstreamOptions } from "../../engines/upstream/options.ts";
import { routeOf } from "../server/routes.ts";
import { formatOf } from "./format-of.ts";
import { LateEngine } from "./late-engine.ts";
import { observerOf } from "./open-options.ts";
import type { OpenedEngine } from "./open-options.ts";
import type { PoolOptions } from "./runtime.ts";

/**
 * Opens a configured upstream. Where its models are not given and it does not answer, it is taken in when it comes. Rejects with an
 * Error when it answers, and refuses its list; but not with `upstreamPatienceMs`: then it is asked again.
 */
export async function openUpstreamModel(
  model: UpstreamModelConfig,
  name: string,
  options: PoolOptions,
): Promise<OpenedEngine> {
  const { url, toolFormat, tls, passKey } = model;
  const keys = await keysOf(model, name, options);
  const [first] = keys;
  const urls = typeof url === "string" ? [url] : url;
  const named = platforms.find((one) => one === model.api);
  const platform = named ?? platformOfUrls(urls);
  const isMessages = platform !== undefined && platform !== "azure";
  const settings: UpstreamOptions = {
    ...model,
    api: isMessages ? "messages" : (model.api as SourceApi | undefined),
    platform,
    key: typeof first?.key === "string" ? first.key : undefined,
    credential: typeof first?.key === "object" ? first.key : undefined,
    ...(keys.length > 1 && { keys }),
    passKey: passKey !== undefined && passKey !== false,
    urls,
    name,
    openBackground: (await options.runtime.background()).openBackground,
    profile: { ...model.requests, ...(model.adapt && { adapt: definedSwitches(model.adapt) }) },
    profiles: options.profiles,
    format: toolFormat === undefined || toolFormat === "auto" ? toolFormat : formatOf(toolFormat),
    tls: tls && (await (await options.runtime.certificates()).readCertificates(tls)),
    descriptorLimit: options.descriptorLimit,
    log: observerOf(options.log, name),
    turns: options.turns,
    sourceId: options.sourceId,
  };
  const { openTransport } = await options.runtime.transport();
  const opened = await openPatiently(settings, openTransport, options);
  const { passPaths } = model;
  if (!passPaths) return opened;
  const own = passPaths.find((path) => {
    const known = routeOf(path);
    return known && known.route.upstreamFirst !== true;
  });
  if (own !== undefined)
    throw new Error(`${name}: passPaths has ${own}, which Truewire answers itself. Remove it from the list.`);
  const apiOf = (): SourceApi => settings.api ?? ((opened.forwards?.[0] ?? "chat") as SourceApi);
  return Object.assign(opened, { passing: openPathPassing(passPaths, settings, openTransport, apiOf) });
}

/** The keys of an upstream, with those that commands print as credentials. */
async function keysOf(
  { key, auth, url }: UpstreamModelConfig,
  name: string,
  options: PoolOptions,
): Promise<readonly PoolKey[]> {
  if (auth) {
    const { awsCredential } = await options.runtime.awsKeys();
    const { runCommand: run } = await options.runtime.commands();
    const [first] = [url].flat();
    return [
      { weight: 1, key: awsCredential({ ...auth, url: first ?? "", name, log: observerOf(options.log, name), run }) },
    ];
  }
  const keys = typeof key === "string" ? [{ key, weight: 1 }] : [key ?? []].flat();
  const credentialOf = async (command: TokenCommand & { readonly share?: string | undefined }): Promise<Credential> => {
    const { runCommand: run } = await options.runtime.commands();
    const log = observerOf(options.log, name);
    const { share: secret } = command;
    const store = options.store?.();
    if (secret === undefined || store === undefined) return commandToken(command, { name, log, run });
    const { sharedValue } = await options.runtime.stores();
    const failed = (why: string): void => log("a credential is not shared", "warn", { error: why });
    const sharing = { store, secret, id: JSON.stringify(command.command), failed };
    return commandToken(command, { name, log, run, shared: (obtain) => sharedValue(obtain, sharing) });
  };
  return Promise.all(
    keys.map(async (one) => {
      const weight = "weight" in one ? one.weight : 1;
      return { weight, key: "command" in one ? await credentialOf(one) : one.key };
    }),
  );
}

async function openPatiently(
  settings: UpstreamOptions,
  openTransport: OpenTransport,
  options: PoolOptions,
): Promise<OpenedEngine> {
  const { name } = settings;
  const open = async (): Promise<OpenedEngine> => openNow(settings, openTransport);
  const { upstreamPatienceMs: patienceMs } = options;
  let first: Promise<OpenedEngine> | undefined = open();
  try {
    return await (patienceMs === undefined ? first : Promise.race([first, refusalAfter(patienceMs)]));
  } catch (error) {
    if (patienceMs === undefined && !mayComeUp(error)) throw error;
    // The first attempt may still succeed.
    const again = (): Promise<OpenedEngine> => {
      const attempt = first ?? open();
      first = undefined;
      return attempt;
    };
    first.catch(() => {});
    const late = new LateEngine({ name, log: options.log, urls: settings.urls.map(shownUrl), open: again }, error);
    return {
      engine: late,
      get forwards() {
        return late.forwards;
      },
    };
  }
}

function definedSwitches(adapt: NonNullable<UpstreamModelConfig["adapt"]>): ServerProfile["adapt"] {
  return Object.fromEntries(Object.entries(adapt).filter(([, isOn]) => isOn !== undefined));
}

async function refusalAfter(ms: number): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, ms));
  throw new Error(`no answer within ${ms} ms`);
}

async function openNow(settings: UpstreamOptions, transport: OpenTransport): Promise<OpenedEngine> {
  // Where the models are given, nothing is asked before the first request: the server need not be up.
  const api =
    settings.api ?? apiOfUrls(settings.urls) ?? (settings.models ? "chat" : await findApi(settings, transport));
  const forwards = api === "chat" ? ["chat", "completions"] : api === "ollama" ? ["ollama", "ollama-generate"] : [api];
  if (settings.ollama && api !== "ollama")
    settings.log?.("the setting `ollama` has no effect: its API is not Ollama's", "warn", { api });
  const rootOf = { ollama: ollamaRoot, gemini: geminiRoot }[api as string];
  const urls = rootOf ? settings.urls.map(rootOf) : settings.urls;
  const openAs = (one: SourceApi): Promise<Engine> => openUpstreamEngine({ ...settings, urls, api: one }, transport);
  const engine = await openAs(api);
  if (settings.api !== undefined || api !== "chat") return { engine, forwards };
  const unnamed = new UnnamedApiEngine(settings, engine, () => openAs("responses"));
  return {
    engine: unnamed,
    get forwards() {
      return unnamed.forwards;
    },
  };
}
