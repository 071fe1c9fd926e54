import { FailureError } from "../core/failure.ts";
import type { GenerationFailure } from "../core/events.ts";
import type { ModelControl, ModelState, ModelStates, Progress, Task } from "../server/admin/model-control.ts";
import { notOfThisMachine, stateOf } from "../server/admin/model-control.ts";
import type { ModelDirectory } from "../server/model-directory.ts";
import { modelDoesNotExist } from "../apis/failures.ts";
import type { Peer } from "./peer.ts";
import { failureOf } from "./engine-messages.ts";
import { primaryGone, RemoteEngine } from "./remote-engines.ts";

/** Which of the primary's engines: the order is that of the configuration in both processes. */
interface SharedModel {
  readonly at: number;
  /** While the configuration changes, one of the processes may have another order. */
  readonly name: string;
}

type Errand =
  | { readonly what: "list" | "reload" }
  | { readonly what: "load" | "unload" | "pull"; readonly model: SharedModel }
  /** `hf:owner/repo[:quant]` */
  | { readonly what: "pull"; readonly repository: string };

interface Asked {
  readonly id: number;
  readonly errand: Errand;
}

type Answered = { readonly value: unknown } | { readonly failure: GenerationFailure };

interface Told {
  readonly id: number;
  readonly progress: Progress;
}

/** A worker's side: the admin API works with the models of the primary, whichever worker it is asked at. */
export class SharedControl implements ModelControl {
  readonly #primary: Peer;
  readonly #directory: () => ModelDirectory;
  readonly #telling = new Map<number, Task["tell"]>();
  #lastId = 0;

  /** `directory`: this worker's, as it is now. */
  constructor(primary: Peer, directory: () => ModelDirectory) {
    this.#primary = primary;
    this.#directory = directory;
    primary.hear("control.progress", (body) => {
      const { id, progress } = body as Told;
      this.#telling.get(id)?.(progress);
    });
  }

  /** The primary tells of its models; of the others, this worker does. */
  async list(): Promise<ModelStates> {
    const { memory, models } = await this.#ask<ModelStates>({ what: "list" });
    const shared = this.#shared();
    return {
      memory,
      models: this.#directory().engines.map((served) => {
        const state = models[shared.indexOf(served)];
        return state?.name === served.name ? state : stateOf(served);
      }),
    };
  }

  load(name: string, task: Task): Promise<ModelState> {
    return this.#change("load", name, task);
  }

  unload(name: string, task: Task): Promise<ModelState> {
    return this.#change("unload", name, task);
  }

  async pull(name: string, task: Task): Promise<{ readonly path: string }> {
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

  async #change(what: "load" | "unload", name: string, task: Task): Promise<ModelState> {
    const model = this.#find(name);
    if (model === "unknown") throw modelDoesNotExist(name);
    if (model === "elsewhere") throw notOfThisMachine(name);
    return this.#ask({ what, model }, task);
  }

  #find(name: string): SharedModel | "elsewhere" | "unknown" {
    const all = this.#directory();
    const from = all.find(name)?.from ?? all.engines.find((each) => each.name === name);
    if (!from) return "unknown";
    const at = this.#shared().indexOf(from);
    return at === -1 ? "elsewhere" : { at, name: from.name };
  }

  #shared(): ModelDirectory["engines"] {
    return this.#directory().engines.filter(({ engine }) => engine instanceof RemoteEngine);
  }

  async #ask<Value>(errand: Errand, task?: Task): Promise<Value> {
    const id = ++this.#lastId;
    const leave = (): void => this.#primary.tell("control.leave", id);
    if (task) this.#telling.set(id, task.tell);
    task?.signal.addEventListener("abort", leave, { once: true });
    try {
      const asked = this.#primary.ask("control", { id, errand } satisfies Asked);
      if (task?.signal.aborted === true) leave();
      const answered = (await asked.catch(() => ({ failure: primaryGone }))) as Answered;
      if ("failure" in answered) throw new FailureError(answered.failure);
      return answered.value as Value;
    } finally {
      task?.signal.removeEventListener("abort", leave);
      this.#telling.delete(id);
    }
  }
}

/** The primary's side: a worker works with `control`. `directory`: of the primary's engines, as it is now. */
export function shareControl(worker: Peer, control: ModelControl, directory: () => ModelDirectory): void {
  const running = new Map<number, AbortController>();
  worker.hear("control.leave", (id) => running.get(id as number)?.abort());
  void worker.closed.then(() => {
    for (const controller of running.values()) controller.abort();
  });
  worker.answer("control", async (body): Promise<Answered> => {
    const { id, errand } = body as Asked;
    const controller = new AbortController();
    running.set(id, controller);
    const task: Task = {
      signal: controller.signal,
      tell: (progress) => worker.tell("control.progress", { id, progress } satisfies Told),
    };
    try {
      return { value: await perform(errand, control, directory(), task) };
    } catch (error) {
      return { failure: failureOf(error) };
    } finally {
      running.delete(id);
    }
  });
}

function perform(errand: Errand, control: ModelControl, directory: ModelDirectory, task: Task): Promise<unknown> {
  switch (errand.what) {
    case "list":
      return control.list();
    case "reload":
      return control.reload();
    case "pull":
      return control.pull("repository" in errand ? errand.repository : nameIn(directory, errand.model), task);
    default:
      return control[errand.what](nameIn(directory, errand.model), task);
  }
}

/** The name under which the primary's directory has a model: another one's may be the same for clients. */
function nameIn(directory: ModelDirectory, { at, name }: SharedModel): string {
  const served = directory.engines[at];
  if (served?.name !== name) throw modelDoesNotExist(name);
  return directory.list().find(({ from }) => from === served)?.info.id ?? name;
}
