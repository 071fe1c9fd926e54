import { baseUrl } from "./base-url.ts";
import { clientKey } from "./saved-key.ts";

/** Asks the API below its base URL, with a key where there is one. Rejects as `fetch` does. */
export function callApi(path: string, init: RequestInit = {}, key = clientKey): Promise<Response> {
  const headers = new Headers(init.headers);
  if (key.value !== "") headers.set("authorization", `Bearer ${key.value}`);
  return fetch(new URL(path, baseUrl), { ...init, headers });
}
