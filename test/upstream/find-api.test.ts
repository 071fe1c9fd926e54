import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, test } from "vitest";
import { openTransport } from "../../src/engines/upstream/undici-transport.ts";
import { findApi } from "../../src/engines/upstream/find-api.ts";
import { closeAfterTest, listenInTest } from "../support/close-after-test.ts";
import { startGateway } from "./gateway.ts";

/** A server with these answers to its GET requests; everything else is 404. What it was asked. */
async function serve(answers: Readonly<Record<string, readonly [status: number, body: unknown]>>) {
  const asked: { readonly line: string; readonly headers: IncomingHttpHeaders }[] = [];
  const { url } = await listenInTest((request, response) => {
    const line = `${request.method} ${request.url}`;
    asked.push({ line, headers: request.headers });
    const [status, said] = answers[line] ?? [404, { detail: "Not Found" }];
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(said));
  });
  return { url: `${url}/v1`, asked };
}

const openAis = { object: "list", data: [{ id: "m", object: "model", created: 1, owned_by: "me" }] };
const anthropics = { data: [{ type: "model", id: "m", display_name: "M", created_at: "2026-01-01T00:00:00Z" }] };

describe("a server whose API nobody has named", () => {
  test.each<[string, number, unknown, string]>([
    ["OpenAI's list", 200, openAis, "chat"],
    ["a list with names alone", 200, { data: [{ id: "m" }] }, "chat"],
    ["Anthropic's list", 200, anthropics, "messages"],
    ["a list that is empty", 200, { data: [] }, "chat"],
    ["no list", 404, {}, "chat"],
    ["a page", 200, "<html>", "chat"],
    ["an error, as a proxy whose server is starting", 503, {}, "chat"],
  ])("that has %s", async (_, status, list, api) => {
    const { url } = await serve({ "GET /v1/models": [status, list] });
    expect(await findApi({ urls: [url], name: "test" }, openTransport)).toBe(api);
  });

  test("that lists its models only for the header of Anthropic's clients", async () => {
    const server = await listenInTest(({ headers, url }, response) => {
      const isAllowed =
        url === "/v1/models" && headers["x-api-key"] === "k" && headers["anthropic-version"] !== undefined;
      response.writeHead(isAllowed ? 200 : 401).end(JSON.stringify(isAllowed ? anthropics : {}));
    });
    expect(await findApi({ urls: [`${server.url}/v1`], name: "test", key: "k" }, openTransport)).toBe("messages");
  });

  // The API was found out by POST requests without a body, which no client sends: a server that parses what it gets, and catches nothing,
  // ended at `JSON.parse("")`. The doubles of the tests answered an empty body like any other.
  test("is asked for its models, and nothing is posted to it, until a client asks", async () => {
    const { url, asked } = await serve({ "GET /v1/models": [200, openAis] });
    const gateway = await startGateway(url);
    closeAfterTest(() => gateway.close());
    expect(new Set(asked.map(({ line }) => line))).toEqual(new Set(["GET /v1/models"]));
  });

  test("is asked with the headers of the configuration", async () => {
    const { url, asked } = await serve({});
    await findApi({ urls: [url], name: "test", headers: { Authorization: "Token x" } }, openTransport);
    expect(asked.map(({ line, headers }) => [line, headers.authorization])).toEqual(
      ["/v1/models", "/", "/api/version", "/v1/models"].map((path) => [`GET ${path}`, "Token x"]),
    );
  });

  // Others have some of Ollama's paths: KoboldCpp, Truewire itself.
  test.each<[string, Readonly<Record<string, string>>, string]>([
    ["Ollama", { "/": "Ollama is running" }, "ollama"],
    [
      "Ollama behind a proxy that has no page",
      { "/api/version": '{"version":"0.33.0"}', "/api/tags": "[".repeat(9999) },
      "ollama",
    ],
    ["a server with a version alone", { "/api/version": '{"version":"0.33.0"}' }, "chat"],
    ["a server with a page and a version", { "/": "<html>", "/api/version": '{"version":"1.0"}' }, "chat"],
    ["a server with a version of another form", { "/api/version": '{"version":"1.0","name":"x"}' }, "chat"],
    ["a server with an endless page", { "/": "Ollama is running".repeat(10_000) }, "chat"],
  ])("that is %s", async (_, pages, api) => {
    const server = await listenInTest(({ method, url = "" }, response) => {
      const page = method === "GET" ? pages[url] : undefined;
      response.writeHead(page === undefined ? (url.endsWith("/chat/completions") ? 400 : 404) : 200).end(page);
    });
    for (const path of ["", "/v1"])
      expect(await findApi({ urls: [server.url + path], name: "test" }, openTransport)).toBe(api);
  });

  // To Ollama's clients, Truewire says that it is Ollama.
  test("that is another Truewire is no Ollama", async () => {
    const other = await startGateway((await serve({ "GET /v1/models": [200, openAis] })).url, { api: "chat" });
    closeAfterTest(() => other.close());
    expect(await (await fetch(other.url)).text()).toBe("Ollama is running");
    expect(await findApi({ urls: [other.url], name: "test" }, openTransport)).toBe("chat");
  });

  test("that does not answer is taken for chat", async () => {
    expect(await findApi({ urls: ["http://127.0.0.1:1/v1"], name: "test" }, openTransport)).toBe("chat");
  });
});
