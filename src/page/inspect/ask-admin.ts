import { baseUrl } from "../api/base-url.ts";
import { isObject } from "../../generation/json.ts";
import { savedAdminKey } from "../api/admin-key.ts";

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
export async function askAdmin(path: string, signal?: AbortSignal): Promise<Response> {
  const key = savedAdminKey();
  const response = await fetch(new URL(`admin/${path}`, baseUrl), {
    headers: key === "" ? {} : { authorization: `Bearer ${key}` },
    ...(signal && { signal }),
  });
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => undefined);
  const error = isObject(body) && isObject(body["error"]) ? body["error"] : {};
  const { message } = error;
  throw new AdminRefusal(
    response.status,
    typeof message === "string" ? message : `The server answers with status ${response.status}.`,
  );
}
