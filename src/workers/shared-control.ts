import { FailureError } from "../core/failure.ts";
import type { GenerationFailure } from "../core/events.ts";
import type {
  ModelControl,
  ControlledModel,
  ControlledModels,
  Progress,
  ControlTask,
} from "../server/admin/model-control.ts";
import { notLocalModel, modelStateOf } from "../server/admin/model-control.ts";
import type { ModelDirectory } from "../server/model-directory.ts";
import { modelDoesNotExist } from "../apis/failures.ts";
import type { Peer } from "./peer.ts";
import { portableFailureOf } from "./engine-messages.ts";
import { primaryGone, RemoteEngine } from "./remote-engines.ts";

/** An engine of the primary process, by its position in the configuration. */
interface SharedModel {
  readonly at: number;
  /** Checked as well, because one of the processes may still have the old configuration. */
  readonly name: string;
}

type ControlRequest =
  | { readonly what: "list" | "reload" }
  | { readonly what: "load" | "unload" | "pull"; readonly model: SharedModel }
  /** `ms`: null for `Infinity`. */
  | { readonly what: "keep"; readonly model: SharedModel; readonly keep: boolean }
  | { readonly what: "keep-loaded"; readonly model: SharedModel; readonly ms: number | null }
  /** `hf:owner/repo[:quant]` */
  | { readonly what: "pull"; readonly repository: string };

interface ControlMessage {
  readonly id: number;
  readonly request: ControlRequest;
}

type ControlAnswer = { readonly value: unknown } | { readonly failure: GenerationFailure };

interface ProgressMessage {
  readonly id: number;
  readonly progress: Progress;
}

/** In a worker: controls the models of the primary process. */
export class SharedControl implements ModelControl {
  readonly #primary: Peer;
  readonly #directory: () => ModelDirectory;
  readonly #reporting = new Map<number, ControlTask["report"]>();
  #lastId = 0;

  /** `directory` returns the current directory of this worker. */
  constructor(primary: Peer, directory: () => ModelDirectory) {
    this.#primary = primary;
    this.#directory = directory;
    primary.onNotification("control.progress", (body) => {
      const { id, progress } = body as ProgressMessage;
      this.#reporting.get(id)?.(progress);
    });
  }

  /** The states of local models come from the primary process, those of others from this worker. */
  async list(): Promise<ControlledModels> {
    const { models, ...others } = await this.#ask<ControlledModels>({ what: "list" });
    const shared = this.#shared();
    return {
      ...others,
      models: this.#directory().engines.map((served) => {
        const state = models[shared.indexOf(served)];
        return state?.name === served.name ? state : modelStateOf(served);
      }),
    };
  }

  load(name: string, task: ControlTask): Promise<ControlledModel> {
    return this.#change("load", name, task);
  }

  unload(name: string, task: ControlTask): Promise<ControlledModel> {
    return this.#change("unload", name, task);
  }

  async keepLoaded(name: string, ms: number): Promise<void> {
    const model = this.#find(name);
    if (typeof model === "object") await this.#ask({ what: "keep-loaded", model, ms: Number.isFinite(ms) ? ms : null });
  }

  async keep(name: string, keep: boolean): Promise<ControlledModel> {
    return this.#ask({ what: "keep", model: this.#local(name), keep });
  }

  async pull(name: string, task: ControlTask): Promise<{ readonly path: string }> {
    const model = this.#find(name);
    if (typeof model === "object") return this.#ask({ what: "pull", model }, task);
    if (!/^hf:/i.test(name)) throw modelDoesNotExist(name);
    return this.#ask({ what: "pull", repository: name }, task);
  }

  async reload(): Promise<{ readonly models: readonly string[] }> {
    await this.#ask({ what: "reload" });
    return {
      models: this.#directory()
        .list()
        .map(({ info }) => info.id),
    };
  }

  async #change(what: "load" | "unload", name: string, task: ControlTask): Promise<ControlledModel> {
    return this.#ask({ what, model: this.#local(name) }, task);
  }

  /** Throws `FailureError`. */
  #local(name: string): SharedModel {
    const model = this.#find(name);
    if (model === "unknown") throw modelDoesNotExist(name);
    if (model === "not-local") throw notLocalModel(name);
    return model;
  }

  #find(name: string): SharedModel | "not-local" | "unknown" {
    const all = this.#directory();
    const from = all.find(name)?.from ?? all.engines.find((each) => each.name === name);
    if (!from) return "unknown";
    const at = this.#shared().indexOf(from);
    return at === -1 ? "not-local" : { at, name: from.name };
  }

  #shared(): ModelDirectory["engines"] {
    return this.#directory().engines.filter(({ engine }) => engine instanceof RemoteEngine);
  }

  async #ask<Value>(request: ControlRequest, task?: ControlTask): Promise<Value> {
    const id = ++this.#lastId;
    const leave = (): void => this.#primary.notify("control.leave", id);
    if (task) this.#reporting.set(id, task.report);
    task?.signal.addEventListener("abort", leave, { once: true });
    try {
      const answer = this.#primary.request("control", { id, request } satisfies ControlMessage);
      if (task?.signal.aborted === true) leave();
      const result = (await answer.catch(() => ({ failure: primaryGone }))) as ControlAnswer;
      if ("failure" in result) throw new FailureError(result.failure);
      return result.value as Value;
    } finally {
      task?.signal.removeEventListener("abort", leave);
      this.#reporting.delete(id);
    }
  }
}

/** In the primary process: lets a worker use `control`. `directory` returns the current directory of the primary process. */
export function shareControl(worker: Peer, control: ModelControl, directory: () => ModelDirectory): void {
  const running = new Map<number, AbortController>();
  worker.onNotification("control.leave", (id) => running.get(id as number)?.abort());
  void worker.closed.then(() => {
    for (const controller of running.values()) controller.abort();
  });
  worker.onRequest("control", async (body): Promise<ControlAnswer> => {
    const { id, request } = body as ControlMessage;
    const controller = new AbortController();
    running.set(id, controller);
    const task: ControlTask = {
      signal: controller.signal,
      report: (progress) => worker.notify("control.progress", { id, progress } satisfies ProgressMessage),
    };
    try {
      return { value: await perform(request, control, directory(), task) };
    } catch (error) {
      return { failure: portableFailureOf(error) };
    } finally {
      running.delete(id);
    }
  });
}

function perform(
  request: ControlRequest,
  control: ModelControl,
  directory: ModelDirectory,
  task: ControlTask,
): Promise<unknown> {
  switch (request.what) {
    case "list":
      return control.list();
    case "reload":
      return control.reload();
    case "keep":
      return control.keep(nameIn(directory, request.model), request.keep);
    case "keep-loaded":
      return control.keepLoaded(nameIn(directory, request.model), request.ms ?? Infinity);
    case "pull":
      return control.pull("repository" in request ? request.repository : nameIn(directory, request.model), task);
    default:
      return control[request.what](nameIn(directory, request.model), task);
  }
}

/** The name of a model in the directory of the primary process, which may list other models of the same name. */
function nameIn(directory: ModelDirectory, { at, name }: SharedModel): string {
  const served = directory.engines[at];
  if (served?.name !== name) throw modelDoesNotExist(name);
  return directory.list().find(({ from }) => from === served)?.info.id ?? name;
}
