import type { ModelStates, ModelStatesEvent } from "../../judge/inspect/model-states.ts";
import { stateAfter } from "../../judge/inspect/model-states.ts";
import { AdminRefusal, adminKey, askAdmin, messageIn, readEvents } from "../api/call-api.ts";
import { announcement, Changing } from "../parts/changing.ts";

/** How long to wait before the server is asked again, in milliseconds. */
const againMs = 1500;
/** A stream without a keep-alive comment for this time is taken for lost, in milliseconds. The server's default is 10 seconds. */
const silentMs = 60_000;

type Verb = "load" | "unload" | "pull" | "keep";

/** A change that this page has requested and that has not ended. */
export interface ModelTask {
  readonly verb: Verb;
  readonly model: string;
  readonly phase: "begun" | "wait" | "download" | "load";
  /** 0 to 1. */
  readonly fraction?: number;
  readonly cancel: () => void;
}

/** The events of a task, as the admin API sends them. */
type TaskEvent =
  | { readonly type: "progress"; readonly phase: "wait" | "download" | "load"; readonly fraction?: number }
  | { readonly type: "done"; readonly path?: string }
  | { readonly type: "error"; readonly error: unknown };

/** The models of the server and the changes that this page has requested. The states are live while the view is shown. */
export class ServedModels extends Changing {
  access: "asking" | "on" | "off" | "key-needed" | "key-refused" = "asking";
  /** Why there is nothing to see, or why the states are not live, in the server's words; "": they are live. */
  message = "";
  states: ModelStates | undefined;
  /** By model. */
  readonly tasks = new Map<string, ModelTask>();
  /** Why the last change of a model failed, in the server's words, by model. */
  readonly problems = new Map<string, string>();
  /** The files that this page has downloaded, by model. */
  readonly pulled = new Map<string, string>();
  #watching: AbortController | undefined;

  /** Watches until the returned function is called. */
  watch(): () => void {
    this.#watching?.abort();
    const watching = (this.#watching = new AbortController());
    void this.#follow(watching.signal);
    return () => watching.abort();
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#listen(signal);
        this.#lost("The server has ended the connection.");
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof AdminRefusal && error.status < 500) return this.#refused(error);
        this.#lost(error instanceof AdminRefusal ? error.message : "The server does not answer.");
      }
      await new Promise((resolve) => setTimeout(resolve, againMs));
    }
  }

  /** Returns when the server ends the stream. */
  async #listen(signal: AbortSignal): Promise<void> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), silentMs);
    try {
      const response = await askAdmin("models/live", { signal: AbortSignal.any([signal, silence.signal]) });
      const heard = (): void => {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), silentMs);
      };
      for await (const event of readEvents(response, heard)) this.#take(event);
    } finally {
      clearTimeout(timer);
    }
  }

  #take(event: unknown): void {
    const problem = messageIn(event);
    if (problem !== undefined) throw new AdminRefusal(503, problem);
    this.states = stateAfter(this.states, event as ModelStatesEvent);
    if (this.message !== "") announcement.say("Connected to the server again.");
    this.access = "on";
    this.message = "";
    this.changed();
  }

  #lost(message: string): void {
    if (this.message === "" && this.states) announcement.say(message);
    this.message = message;
    this.changed();
  }

  #refused({ status, message }: AdminRefusal): void {
    this.access = status !== 401 ? "off" : adminKey.value === "" ? "key-needed" : "key-refused";
    this.states = undefined;
    this.message = message;
    this.changed();
  }

  load(model: string): Promise<void> {
    return this.#change("load", model, `${model} is loaded.`);
  }

  unload(model: string): Promise<void> {
    return this.#change("unload", model, `${model} is unloaded.`);
  }

  keep(model: string, keep: boolean): Promise<void> {
    return this.#change("keep", model, `${model} is ${keep ? "kept in memory" : "no longer kept"}.`, { keep });
  }

  pull(model: string): Promise<void> {
    return this.#change("pull", model, `${model} is downloaded.`);
  }

  /** The server reads its configuration file again. */
  reload(): Promise<void> {
    return this.#request("reload", {}, new AbortController().signal, () => {}).then(
      () => announcement.say("The configuration was read again."),
      (error: unknown) => this.#failed("", error),
    );
  }

  forget(model: string): void {
    this.problems.delete(model);
    this.pulled.delete(model);
    this.changed();
  }

  async #change(verb: Verb, model: string, done: string, more: object = {}): Promise<void> {
    if (this.tasks.has(model)) return;
    const controller = new AbortController();
    const task: ModelTask = { verb, model, phase: "begun", cancel: () => controller.abort() };
    this.forget(model);
    this.tasks.set(model, task);
    this.changed();
    try {
      const { path } = await this.#request(`models/${verb}`, { model, ...more }, controller.signal, (progress) => {
        this.tasks.set(model, { ...task, ...progress });
        this.changed();
      });
      if (verb === "pull" && path !== undefined) this.pulled.set(model, path);
      announcement.say(done);
    } catch (error) {
      if (controller.signal.aborted) announcement.say("Cancelled.");
      else this.#failed(model, error);
    } finally {
      this.tasks.delete(model);
      this.changed();
    }
  }

  #failed(model: string, error: unknown): void {
    const message = error instanceof AdminRefusal ? error.message : "The connection to the server broke off.";
    this.problems.set(model, message);
    announcement.say(message);
    this.changed();
  }

  async #request(
    path: string,
    body: object,
    signal: AbortSignal,
    onProgress: (progress: Pick<ModelTask, "phase" | "fraction">) => void,
  ): Promise<{ readonly path?: string }> {
    const headers = { "content-type": "application/json" };
    const response = await askAdmin(path, { method: "POST", headers, body: JSON.stringify(body), signal });
    for await (const event of readEvents(response)) {
      const step = event as TaskEvent;
      if (step.type === "done") return step;
      if (step.type === "error") throw new AdminRefusal(500, messageIn(step) ?? "It failed.");
      onProgress(step);
    }
    throw new AdminRefusal(503, "The server closed the connection before it was done.");
  }
}
