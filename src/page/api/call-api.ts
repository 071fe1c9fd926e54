import { baseUrl } from "./base-url.ts";
import { savedKey } from "./key.ts";

/** Asks the API below its base URL, with the key where there is one. Rejects as `fetch` does. */
export function callApi(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const key = savedKey();
  if (key !== "") headers.set("authorization", `Bearer ${key}`);
  return fetch(new URL(path, baseUrl), { ...init, headers });
}
