import { isObject } from "../../wire/core/json.ts";

/** URL of the API of the page's own server, `…/v1/`, including a prefix that a proxy adds: this script is in `…/page/`. */
export const baseUrl: URL = new URL("../v1/", import.meta.url);

/** Asks the API below its base URL, with a key where there is one. Rejects as `fetch` does. */
export function callApi(path: string, init: RequestInit = {}, key = clientKey): Promise<Response> {
  const headers = new Headers(init.headers);
  if (key.value !== "") headers.set("authorization", `Bearer ${key.value}`);
  return fetch(new URL(path, baseUrl), { ...init, headers });
}

/** A key that a person has entered, kept for this tab and no longer. */
class SavedKey {
  readonly #name: string;

  /** `name`: in the tab's storage. */
  constructor(name: string) {
    this.#name = name;
  }

  /** "" if no key is saved. */
  get value(): string {
    return sessionStorage.getItem(this.#name) ?? "";
  }

  set value(key: string) {
    if (key === "") sessionStorage.removeItem(this.#name);
    else sessionStorage.setItem(this.#name, key);
  }
}

/** Of a client of the API. */
export const clientKey: SavedKey = new SavedKey("truewire.key");
/** The admin key. */
export const adminKey: SavedKey = new SavedKey("truewire.admin-key");

/** The message of an error object, where a body or an event of the API has one. */
export function messageIn(body: unknown): string | undefined {
  const error = isObject(body) ? body["error"] : undefined;
  return isObject(error) && typeof error["message"] === "string" ? error["message"] : undefined;
}

/** The admin API refused. */
export class AdminRefusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "AdminRefusal";
    this.status = status;
  }
}

/** Asks the admin API, with its key where one was entered. Rejects with `AdminRefusal`, in the server's words, and as `fetch` does. */
export async function askAdmin(path: string, init: RequestInit): Promise<Response> {
  const response = await callApi(`admin/${path}`, init, adminKey);
  if (response.ok) return response;
  const { status } = response;
  const body: unknown = await response.json().catch(() => undefined);
  throw new AdminRefusal(status, messageIn(body) ?? `The server answers with status ${status}.`);
}

/**
 * The JSON of each event of an answer of the admin API, as it comes. Rejects when the connection breaks. `onChunk` is called when something
 * arrives, keep-alive comments included.
 */
export async function* readEvents(response: Response, onChunk = (): void => {}): AsyncGenerator<unknown> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const chunk = await reader?.read();
    if (!chunk || chunk.done) return;
    onChunk();
    text += decoder.decode(chunk.value, { stream: true });
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) if (event.startsWith("data: ")) yield JSON.parse(event.slice("data: ".length));
  }
}
