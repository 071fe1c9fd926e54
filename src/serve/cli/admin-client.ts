import { withScheme } from "../config/target.ts";
import { stateAfter } from "../../judge/inspect/model-states.ts";
import type { ModelStates, ModelStatesEvent } from "../../judge/inspect/model-states.ts";
import type { ControlledModels, Progress } from "../server/admin/model-control.ts";

/** Where the server is, and how to enter. */
export interface ServerFlags {
  readonly url?: string;
  readonly adminKey?: string;
}

/** The end of a task: what the server says of the model. */
export interface Done {
  readonly name?: string;
  readonly state?: string;
  readonly path?: string;
  /** The lessons that were forgotten. */
  readonly forgotten?: readonly string[];
}

type TaskEvent = ({ readonly type: "progress" } & Progress) | ({ readonly type: "done" } & Done) | FailedEvent;

interface FailedEvent {
  readonly type: "error";
  readonly error: { readonly message: string };
}

/** Speaks the admin API of a running server. Every method throws an Error of one sentence. */
export class AdminClient {
  readonly #url: string;
  readonly #key: string | undefined;
  /** There is a key, and the server was not named. */
  readonly #isKeyWithheld: boolean;

  constructor(flags: ServerFlags) {
    const named = flags.url ?? process.env.TRUEWIRE_URL;
    const url = withScheme(named ?? "http://127.0.0.1:8080");
    if (!URL.canParse(url))
      throw new Error(`--url must be the address of a server, such as http://127.0.0.1:8080, not ${url}.`);
    this.#url = url.replace(/\/+$/, "").replace(/\/v1$/, "");
    const key = flags.adminKey ?? process.env.TRUEWIRE_ADMIN_KEY;
    // What listens on the usual port may be another program, or another user's.
    this.#isKeyWithheld = named === undefined && key !== undefined;
    this.#key = this.#isKeyWithheld ? undefined : key;
  }

  async list(): Promise<ControlledModels> {
    const response = await this.#fetch("/admin/models");
    return (await response.json()) as ControlledModels;
  }

  /** Yields the states of all models: immediately, and after each change. Ends when the server stops. */
  async *watch(): AsyncGenerator<ModelStates> {
    let states: ModelStates | undefined;
    for await (const event of eventsOf<ModelStatesEvent | FailedEvent>(await this.#fetch("/admin/models/live"))) {
      if (event.type === "error") throw new Error(event.error.message);
      states = stateAfter(states, event);
      if (states) yield states;
    }
  }

  /** Loads, unloads, pulls or keeps a model, or forgets what was learned about it, and reports the progress. `more`: further members of the request. */
  async change(
    verb: "load" | "unload" | "pull" | "keep" | "forget",
    model: string,
    onProgress: (progress: Progress) => void,
    more: object = {},
  ): Promise<Done> {
    const response = await this.#fetch(`/admin/models/${verb}`, { model, ...more });
    for await (const event of eventsOf<TaskEvent>(response)) {
      if (event.type === "progress") onProgress(event);
      else if (event.type === "error") throw new Error(event.error.message);
      else return event;
    }
    throw new Error(`${this.#url} closed the connection before it was done.`);
  }

  async ask(method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<unknown> {
    return (await this.#fetch(path, body, method)).json();
  }

  async #fetch(path: string, body?: object, method = body ? "POST" : "GET"): Promise<Response> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (this.#key !== undefined) headers["authorization"] = `Bearer ${this.#key}`;
    const request = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(this.#url + path, request).catch((cause: Error) => {
      const inner: unknown = cause.cause;
      const why = inner instanceof Error && inner.message !== "" ? inner.message : cause.message;
      throw new Error(`${this.#url} does not answer: ${why}. Is truewire serve running there? (--url)`, { cause });
    });
    if (response.ok) return response;
    if (this.#isKeyWithheld && (response.status === 401 || response.status === 403))
      throw new Error(
        `${this.#url} requires its admin key. A key is sent only to a server that you name: --url ${this.#url}, or TRUEWIRE_URL=${this.#url}.`,
      );
    throw new Error(messageIn(await response.text()) ?? `${this.#url}${path} answered with status ${response.status}.`);
  }
}

/** The `data:` lines of the server's events. */
async function* eventsOf<Event>(response: Response): AsyncGenerator<Event> {
  if (!response.body) return;
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6)) as Event;
  }
}

function messageIn(body: string): string | undefined {
  try {
    const { error } = JSON.parse(body) as { error?: { message?: string } };
    return error?.message;
  } catch {
    return undefined;
  }
}
