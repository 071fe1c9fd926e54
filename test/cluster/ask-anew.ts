import { request } from "node:http";

export interface Answered {
  readonly status: number;
  readonly text: string;
}

export interface Asking {
  readonly method?: string;
  readonly key?: string;
  /** Sent as JSON. */
  readonly body?: object;
  readonly signal?: AbortSignal;
}

/** A request by a connection of its own: workers get connections in turn, so the next request is another worker's. */
export function askAnew(url: string, { method, key, body, signal }: Asking = {}): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(body && { "content-type": "application/json" }),
    };
    const asked = request(
      url,
      { agent: false, method: method ?? (body ? "POST" : "GET"), headers, ...(signal && { signal }) },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
        response.on("error", reject);
      },
    );
    asked.on("error", reject).end(body && JSON.stringify(body));
  });
}

/** The same, as JSON. */
export async function askJson<Value>(url: string, asking: Asking = {}): Promise<Value> {
  return JSON.parse((await askAnew(url, asking)).text) as Value;
}
