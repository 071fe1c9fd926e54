import { callApi } from "./call-api.ts";
import { messageIn } from "./message-in.ts";
import { adminKey } from "./saved-key.ts";

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
