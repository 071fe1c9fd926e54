import type { ModelEntry } from "../../src/serve/config/model-schema.ts";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";

type UpstreamEntry = Extract<ModelEntry, { kind: "upstream" }>;

/** Truewire before these URLs, silent, on a free port. */
export function startGateway(
  url: string | readonly string[],
  options: Partial<UpstreamEntry> = {},
): Promise<TruewireServer> {
  return createServer({
    port: 0,
    logLevel: "silent",
    models: [{ kind: "upstream", url, name: "upstream", ...options }],
  });
}

export interface Asked {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Asks for a chat answer and reads it to its end. */
export async function ask(gateway: TruewireServer, members: Record<string, unknown> = {}): Promise<Asked> {
  const response = await post(gateway, members);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

export function post(
  gateway: TruewireServer,
  members: Record<string, unknown>,
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], ...members }),
    ...(signal && { signal }),
  });
}
