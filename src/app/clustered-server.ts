import type { Peer } from "../workers/peer.ts";
import { WorkerProcesses } from "../workers/worker-processes.ts";
import type { WorkerProcess } from "../workers/worker-processes.ts";
import type { TruewireConfig } from "../config/config.ts";
import { parseConfig } from "../config/schema.ts";
import type { Config } from "../config/schema.ts";
import type { ModelInfo } from "../core/engine.ts";
import { ModelDirectory } from "../server/model-directory.ts";
import { openLog } from "../server/logger.ts";
import { maskedLog } from "../server/mask.ts";
import type { ServerOptions, TruewireServer } from "./create-server.ts";
import { EnginePool, isShared } from "./engine-pool.ts";
import { oneAfterAnother, PoolControl } from "./pool-control.ts";
import { openTurnKey } from "./open-turn-key.ts";
import { nodeRuntime } from "./runtime.ts";
import { readServerFiles } from "./server-files.ts";
import { openPrimarySide } from "./primary-side.ts";
import {
  isForThisMachine,
  settingsOf,
  warnOfFixedSettings,
  warnOfOpenAddress,
  withFixedSettings,
} from "./settings-of-config.ts";
import { workerTopics } from "./worker-messages.ts";
import type { WorkerConfig, WorkerFailed, WorkerReady, WorkerStart } from "./worker-messages.ts";

/**
 * The same as `createServer` with several processes: this one, which has the local models and the programs, and `count` workers, which
 * answer. Throws what `createServer` throws.
 */
export async function createClusteredServer(
  config: TruewireConfig,
  count: number,
  options: ServerOptions,
): Promise<TruewireServer> {
  let current = parseConfig(config);
  let newest: WorkerConfig = { config, files: await readServerFiles(current, nodeRuntime) };
  let settings = settingsOf(current, newest.files.keys, false);
  const log = maskedLog(options.log ?? openLog(current.logLevel, current.logFormat, {}), () => settings.mask);
  warnOfOpenAddress(current, settings, log);

  const pool = new EnginePool({
    log,
    runtime: nodeRuntime,
    ...(options.onProgress && { onProgress: options.onProgress }),
  });
  const { readConfig } = options;
  let directory = new ModelDirectory([]);
  const side = await openPrimarySide(current, log, {
    async find(key) {
      await opened;
      return pool.engineUnder(key);
    },
    control: new PoolControl({
      pool,
      directory: () => directory,
      reload: readConfig && (async () => reload(await readConfig())),
    }),
    directory: () => directory,
  });
  const turnKey = await openTurnKey(current, log, nodeRuntime).catch(async (error: unknown) => {
    await side.close();
    throw error;
  });
  const opened = pool.use(sharedOf(current), isForThisMachine(current, settings.keys));
  opened.catch(() => {});
  let url: string | undefined;
  let { port } = current;
  /** Workers that listen, or are about to. */
  const listening = new Set<Peer>();
  let models: readonly ModelInfo[] = [];

  const begin = async (worker: WorkerProcess): Promise<void> => {
    const { number, peer } = worker;
    side.join(worker);
    let begun: WorkerConfig | undefined;
    peer.onRequest(workerTopics.start, (): WorkerStart => {
      begun = newest;
      // Workers that listen on the same port number share it. With port 0, later workers use the number that the first one got, if none
      // listens now. Other ports are not read from the URL, which omits the default port of its scheme.
      if (port === 0 && url !== undefined && listening.size === 0) port = Number(new URL(url).port);
      listening.add(peer);
      return { number, count, turnKey, files: begun.files, config: { ...begun.config, port } };
    });
    void peer.closed.then(() => listening.delete(peer));
    const ready = await new Promise<WorkerReady>((resolve, reject) => {
      peer.onNotification(workerTopics.ready, (body) => resolve(body as WorkerReady));
      peer.onNotification(workerTopics.failed, (body) => reject(errorOf(body as WorkerFailed)));
    });
    url ??= ready.url;
    if (ready.url !== url) throw new Error(`It listens on ${ready.url} in place of ${url}.`);
    models = ready.models;
    // The configuration may have been read again meanwhile, and again while the worker goes over to it.
    while (begun !== newest) {
      begun = newest;
      models = await goOver(worker, models);
    }
  };
  const isAlive = ({ peer }: WorkerProcess): Promise<unknown> => peer.request(workerTopics.alive, null);
  const release = async (): Promise<void> => {
    await pool.close(0);
    await side.close();
  };
  const workers = new WorkerProcesses({
    script: new URL("./worker-main.js", import.meta.url),
    count,
    log,
    begin,
    isAlive,
  });
  try {
    [directory] = await Promise.all([opened, workers.start()]);
  } catch (error) {
    await workers.stop(0);
    await release();
    throw error;
  }

  const reload = oneAfterAnother(async (next: TruewireConfig): Promise<void> => {
    const parsed = parseConfig(next);
    const goesOn = withFixedSettings(next, config);
    const files = await readServerFiles(parseConfig(goesOn), nodeRuntime);
    const before = newest;
    const nextSettings = settingsOf(parsed, files.keys, false);
    directory = await pool.use(sharedOf(parsed), isForThisMachine(current, nextSettings.keys), async () => {
      const [first, ...others] = workers.ready;
      newest = { config: goesOn, files };
      try {
        // What one of them cannot do, such as open an upstream that refuses its list, none of them can.
        if (first) models = await askToGoOver(first);
      } catch (error) {
        newest = before;
        throw error;
      }
      settings = nextSettings;
      for (const worker of others) models = await goOver(worker, models);
    });
    warnOfFixedSettings(parsed, current, log);
    current = { ...parsed, host: current.host, port: current.port };
    log.info({ models: models.map(({ id }) => id) }, "configuration read again");
  });
  const askToGoOver = async ({ peer }: WorkerProcess): Promise<readonly ModelInfo[]> =>
    (await peer.request(workerTopics.reload, newest)) as readonly ModelInfo[];
  const goOver = async (worker: WorkerProcess, before: readonly ModelInfo[]): Promise<readonly ModelInfo[]> => {
    try {
      return await askToGoOver(worker);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.error({ worker: worker.number, error: reason }, "a worker has not gone over to the new configuration");
      return before;
    }
  };
  let closing: Promise<void> | undefined;
  const close = async (graceMs: number): Promise<void> => {
    await workers.stop(graceMs);
    await release();
  };
  return {
    url: url ?? "",
    models: () => models,
    reload,
    close: (graceMs = current.grace) => (closing ??= close(graceMs)),
  };
}

/** What is opened in the primary process. */
function sharedOf(config: Config): Config {
  return { ...config, models: config.models.filter((model) => isShared(model)) };
}

function errorOf({ message, code, syscall }: WorkerFailed): Error {
  return Object.assign(new Error(message), code !== undefined && { code }, syscall !== undefined && { syscall });
}
