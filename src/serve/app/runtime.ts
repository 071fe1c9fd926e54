import type { UpstreamOptions } from "../../engines/upstream/options.ts";
import type { ProfileStore } from "../../engines/upstream/learned-profiles.ts";
import type { Store } from "../kv/store.ts";
import type { OpenOptions } from "./open-options.ts";

/** The parts of a server that need Node, each loaded when a configuration asks for it. */
export const nodeRuntime = {
  localModels: () => import("./models/local-models.ts"),
  programEngine: () => import("../../engines/program/open-program-engine.ts"),
  transport: () => import("../../engines/upstream/undici-transport.ts"),
  background: () => import("../../engines/upstream/background/background.ts"),
  awsKeys: () => import("../../engines/upstream/aws-keys.ts"),
  commands: () => import("../../engines/upstream/run-command.ts"),
  certificates: () => import("./configured-files.ts"),
  clientFiles: () => import("./configured-files.ts"),
  stores: () => import("../kv/open.ts"),
  hostedTools: () => import("../hosted/open-hosted-tools.ts"),
  hook: () => import("../hosted/program/open-hook.ts"),
  metrics: () => import("../server/metrics/open-metrics.ts"),
};

export type Runtime = Readonly<Omit<typeof nodeRuntime, "background">> & {
  /** `openBackground` is absent in runtimes without processes. */
  readonly background: () => Promise<{ readonly openBackground?: UpstreamOptions["openBackground"] }>;
};

export interface PoolOptions extends OpenOptions {
  readonly runtime: Runtime;
  /** Keeps what was learned about upstreams; absent: each upstream keeps it in memory. */
  readonly profiles?: ProfileStore;
  /** The store that instances share, once it is open. */
  readonly store?: () => Store;
  /** Of every upstream. */
  readonly turns?: UpstreamOptions["turns"];
  readonly sourceId?: UpstreamOptions["sourceId"];
}
