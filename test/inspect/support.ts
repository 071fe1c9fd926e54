import { expect } from "vitest";
import type { InspectedRequest, InspectedRequestList, RequestSummary } from "../../src/inspect/inspected-request.ts";

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
