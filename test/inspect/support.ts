import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect } from "vitest";
import type {
  InspectedRequest,
  InspectedRequestList,
  RequestSummary,
} from "../../src/judge/inspect/inspected-request.ts";
import { builtMain } from "../support/serve.ts";
import { json } from "../support/transports.ts";

/** What the server at `url` keeps of its requests. */
export async function listed(url: string, query = "", init: RequestInit = {}): Promise<InspectedRequestList> {
  const response = await fetch(`${url}/admin/requests${query}`, init);
  expect(response.status).toBe(200);
  return (await response.json()) as InspectedRequestList;
}

export async function inspected(url: string, { id }: { readonly id: string }): Promise<InspectedRequest> {
  const response = await fetch(`${url}/admin/requests/${id}`);
  expect(response.status).toBe(200);
  return (await response.json()) as InspectedRequest;
}

/** The newest request, when it is over. */
export async function newest(url: string): Promise<InspectedRequest> {
  let last: RequestSummary | undefined;
  await expect
    .poll(async () => {
      last = (await listed(url)).requests.at(-1);
      return last?.outcome;
    })
    .not.toBe("open");
  return inspected(url, last ?? { id: "" });
}

export function textOf(tape: { readonly chunks: readonly { readonly text: string }[] }): string {
  return tape.chunks.map(({ text }) => text).join("");
}

/** What `truewire replay` answers to a chat request from a recording. */
export async function replayed(file: string, body: object): Promise<string> {
  const replay = spawn(process.execPath, [builtMain, "replay", file, "--speed", "max", "--port", "0"]);
  try {
    const [line] = (await once(createInterface({ input: replay.stdout }), "line")) as [string];
    const response = await fetch(`${/http:\/\/[^/\s]+/.exec(line)?.[0]}/v1/chat/completions`, json(body));
    return await response.text();
  } finally {
    replay.kill();
  }
}
