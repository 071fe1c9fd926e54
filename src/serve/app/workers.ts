import { checkWorkers } from "../config/check-workers.ts";
import type { TruewireConfig } from "../config/schema.ts";
import { parseConfig } from "../config/schema.ts";
import type { ModelInfo } from "../../wire/core/engine.ts";
import { openLog } from "../server/logger.ts";
import { maskedLog } from "../server/mask.ts";
import { mergeMetrics } from "../server/metrics/merge-metrics.ts";
import type { ServerOptions, TruewireServer } from "./create-server.ts";
import { openTurnKey } from "./open-turn-key.ts";
import { oneAfterAnother } from "./pool-control.ts";
import { nodeRuntime } from "./runtime.ts";
import { readServerFiles } from "./server-files.ts";
import { settingsOf, warnOfFixedSettings, warnOfOpenAddress, withFixedSettings } from "./settings-of-config.ts";
import { WorkerProcesses } from "./worker-processes.ts";
import type { WorkerProcess } from "./worker-processes.ts";

/**
 * The same as `createServer` with several processes: `workers` independent servers that share a port. This process starts them, replaces
 * those that end, and passes reloads and the stop on. Throws what `createServer` throws, and `ConfigError` if several processes cannot serve
 * the configuration.
 */
export async function createWorkers(config: TruewireConfig, options: ServerOptions): Promise<TruewireServer> {
  let current = parseConfig(config);
  let files = await readServerFiles(current, nodeRuntime);
  checkWorkers(config, files.keys);
  let settings = settingsOf(current, files, false);
  const log = maskedLog(options.log ?? openLog(current.logLevel, current.logFormat, {}), () => settings.mask);
  warnOfOpenAddress(current, settings, log);

  // Values that one process has sealed must be valid at the others, also if the key is random.
  const turnKey = Buffer.from(await openTurnKey(current, log, nodeRuntime)).toString("base64");
  let newest = config;
  let url: string | undefined;
  let { port } = current;
  let models: readonly ModelInfo[] = [];
  /** Workers that listen, or are about to. */
  const listening = new Set<WorkerProcess>();

  const serve = async (worker: WorkerProcess): Promise<void> => {
    const { number } = worker;
    const ofProcess = { port, inspect: false, resumeStreams: "0s" };
    const served = await worker.serve({ kind: "serve", number, turnKey, config: { ...newest, ...ofProcess } });
    url ??= served.url;
    if (served.url !== url) throw new Error(`It listens on ${served.url} in place of ${url}.`);
    models = served.models;
  };
  const begin = (worker: WorkerProcess): Promise<void> => {
    // Workers that listen on the same port number share it. With port 0, later workers use the number that the first one got, if none
    // listens now. Other ports are not read from the URL, which omits the default port of its scheme.
    if (port === 0 && url !== undefined && listening.size === 0) port = Number(new URL(url).port);
    listening.add(worker);
    void worker.ended.then(() => listening.delete(worker));
    return serve(worker);
  };
  const workers = new WorkerProcesses({
    script: new URL("./worker-main.js", import.meta.url),
    count: current.workers,
    log,
    begin,
    async allMetrics() {
      const texts = await Promise.all(
        workers.begun.map(async (worker) => ({ worker: worker.number, text: await worker.metrics() })),
      );
      return mergeMetrics(texts);
    },
  });
  await workers.start();

  const reload = oneAfterAnother(async (next: TruewireConfig): Promise<void> => {
    const parsed = parseConfig(next);
    const goesOn = withFixedSettings(next, config);
    // Read here first: no worker may go over to what another one cannot.
    files = await readServerFiles(parseConfig(goesOn), nodeRuntime);
    checkWorkers(goesOn, files.keys);
    const before = newest;
    newest = goesOn;
    const [first, ...others] = workers.begun;
    try {
      // What one of them cannot do, such as open an upstream that refuses its list, none of them can.
      if (first) await serve(first);
    } catch (error) {
      newest = before;
      throw error;
    }
    await Promise.all(
      others.map((worker) =>
        serve(worker).catch((error: unknown) => {
          const reason = error instanceof Error ? error.message : String(error);
          log.error({ worker: worker.number, error: reason }, "a worker keeps its earlier configuration");
        }),
      ),
    );
    settings = settingsOf(parsed, files, false);
    warnOfFixedSettings(parsed, current, log);
    current = { ...parsed, host: current.host, port: current.port };
    log.info({ models: models.map(({ id }) => id) }, "configuration read again");
  });
  let closing: Promise<void> | undefined;
  return {
    url: url ?? "",
    models: () => models,
    reload,
    close: (graceMs = current.grace) => (closing ??= workers.stop(graceMs)),
  };
}
