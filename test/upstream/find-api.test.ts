import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { openTransport } from "../../src/engines/upstream/undici-transport.ts";
import { findApi } from "../../src/engines/upstream/find-api.ts";
import { ask, startGateway } from "./gateway.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** How a server answers a POST without a body, by its path; 404 elsewhere. `get`: how it answers a GET at all of them. */
type Statuses = Readonly<Record<string, number>>;

/** A server that speaks Responses. Its base URL, and what it was asked, with the length of the body. */
async function serve(statuses: Statuses, get = 404): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      const path = request.url?.replace("/v1", "") ?? "";
      asked.push(`${request.method} ${path} ${body.length}`);
      if (path === "/models") return response.end(JSON.stringify({ data: [{ id: "m" }] }));
      response.statusCode = request.method === "GET" ? get : body === "" ? (statuses[path] ?? 404) : 200;
      if (body === "") return response.end();
      const events = [
        { type: "response.output_text.delta", delta: "Hello" },
        {
          type: "response.completed",
          response: { status: "completed", output: [], usage: { input_tokens: 1, output_tokens: 1 } },
        },
      ];
      return response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked };
}

describe("a server whose API nobody has named", () => {
  test.each<[string, Statuses, string]>([
    ["all three: vLLM, Ollama", { "/chat/completions": 422, "/responses": 400, "/messages": 400 }, "chat"],
    ["chat: an old llama.cpp", { "/chat/completions": 500 }, "chat"],
    ["chat, with the wrong key", { "/chat/completions": 401, "/responses": 401, "/messages": 401 }, "chat"],
    ["a proxy whose server is starting", { "/chat/completions": 503, "/messages": 503 }, "chat"],
    ["anything, with a 200", { "/chat/completions": 200, "/responses": 200, "/messages": 200 }, "chat"],
    ["Responses", { "/responses": 400 }, "responses"],
    ["Responses, with the wrong key", { "/responses": 401 }, "responses"],
    ["Messages", { "/messages": 400 }, "messages"],
    ["Messages, behind a server of files", { "/chat/completions": 405, "/messages": 400 }, "messages"],
    [
      "Messages, where the rest answers 200",
      { "/chat/completions": 404, "/responses": 200, "/messages": 401 },
      "messages",
    ],
    ["no path that is known", {}, "chat"],
    ["no path for certain", { "/messages": 502 }, "chat"],
  ])("that refuses an empty POST as %s", async (_, statuses, api) => {
    // A GET decided: 404 (llama.cpp's answer at paths for POST) was "not there", and 200 (a page at every path) was chat.
    for (const get of [200, 404, 405]) {
      const { url, asked } = await serve(statuses, get);
      expect(await findApi({ urls: [url], name: "test" }, openTransport)).toBe(api);
      // Only Ollama answers these two as Ollama does.
      const others = asked.filter((line) => !/^GET (\/|\/api\/(version|tags)) 0$/.test(line));
      expect(others.every((line) => /^POST \S+ 0$/.test(line))).toBe(true);
    }
  });

  test("is asked with the headers of the configuration", async () => {
    const seen: unknown[] = [];
    const server = createServer((request, response) => {
      seen.push([request.url, request.headers["authorization"]]);
      response.writeHead(request.headers["authorization"] === "Token x" ? 404 : 401).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.push(() => new Promise((resolve) => server.close(resolve)));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await findApi({ urls: [url], name: "test", headers: { Authorization: "Token x" } }, openTransport);
    expect(seen).toEqual(
      ["/", "/api/version", "/chat/completions", "/responses", "/messages"].map((path) => [path, "Token x"]),
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
    const server = createServer(({ method, url = "" }, response) => {
      const page = method === "GET" ? pages[url] : undefined;
      response.writeHead(page === undefined ? (url.endsWith("/chat/completions") ? 400 : 404) : 200).end(page);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.push(() => new Promise((resolve) => server.close(resolve)));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for (const path of ["", "/v1"])
      expect(await findApi({ urls: [url + path], name: "test" }, openTransport)).toBe(api);
  });

  // To Ollama's clients, Truewire says that it is Ollama.
  test("that is another Truewire is no Ollama", async () => {
    const other = await startGateway((await serve({ "/chat/completions": 400 })).url, { api: "chat" });
    closers.push(() => other.close());
    expect(await (await fetch(other.url)).text()).toBe("Ollama is running");
    expect(await findApi({ urls: [other.url], name: "test" }, openTransport)).toBe("chat");
  });

  test("that does not answer is taken for chat", async () => {
    expect(await findApi({ urls: ["http://127.0.0.1:1/v1"], name: "test" }, openTransport)).toBe("chat");
  });

  test("is asked in the API that was found", async () => {
    const { url, asked } = await serve({ "/responses": 400 });
    const gateway = await startGateway(url);
    closers.push(() => gateway.close());
    const { text } = await ask(gateway, { stream: true });
    expect(text).toContain('"content":"Hello"');
    expect(asked).toContainEqual(expect.stringMatching(/^POST \/responses [1-9]/));
  });
});
