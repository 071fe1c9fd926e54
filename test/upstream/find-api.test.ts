import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { findApi } from "../../src/engines/upstream/find-api.ts";
import { ask, startGateway } from "./gateway.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A server that answers these paths with this status to GET, any other with 404; its base URL, and the paths that were asked. */
async function serve(statuses: Readonly<Record<string, number>>): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const status = statuses[request.url?.replace("/v1", "") ?? ""] ?? 404;
    response.statusCode = request.method === "POST" ? 200 : status;
    const events = [
      { type: "response.output_text.delta", delta: "Hello" },
      {
        type: "response.completed",
        response: { status: "completed", output: [], usage: { input_tokens: 1, output_tokens: 1 } },
      },
    ];
    if (request.method === "POST") response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
    else response.end(JSON.stringify({ data: [{ id: "m" }] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked };
}

describe("a server whose API nobody has named", () => {
  test.each([
    [{ "/chat/completions": 405, "/responses": 405 }, "chat"],
    [{ "/chat/completions": 500, "/responses": 405 }, "chat"],
    [{ "/responses": 405 }, "responses"],
    [{ "/responses": 401 }, "responses"],
    [{ "/messages": 405 }, "messages"],
    [{ "/responses": 200, "/messages": 503 }, "chat"],
    [{}, "chat"],
  ])("%j speaks %s", async (statuses, api) => {
    const { url, asked } = await serve(statuses);
    expect(await findApi({ urls: [url], name: "test" })).toBe(api);
    expect(asked.every((line) => line.startsWith("GET "))).toBe(true);
  });

  test("that does not answer is taken for chat", async () => {
    expect(await findApi({ urls: ["http://127.0.0.1:1/v1"], name: "test" })).toBe("chat");
  });

  test("is asked in the API that was found", async () => {
    const { url, asked } = await serve({ "/responses": 405, "/models": 200 });
    const gateway = await startGateway(url);
    closers.push(() => gateway.close());
    const { text } = await ask(gateway, { stream: true });
    expect(text).toContain('"content":"Hello"');
    expect(asked).toContain("POST /v1/responses");
  });
});
