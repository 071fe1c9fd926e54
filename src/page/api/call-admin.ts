import { savedAdminKey } from "./admin-key.ts";
import { baseUrl } from "./base-url.ts";

/** Posts to the admin API, with its key where there is one. Rejects as `fetch` does. */
export function callAdmin(path: string, body: object, signal: AbortSignal): Promise<Response> {
  const key = savedAdminKey();
  return fetch(new URL(`admin/${path}`, baseUrl), {
    method: "POST",
    headers: { "content-type": "application/json", ...(key !== "" && { authorization: `Bearer ${key}` }) },
    body: JSON.stringify(body),
    signal,
  });
}
