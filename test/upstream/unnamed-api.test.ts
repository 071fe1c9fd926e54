import { EventEmitter, once } from "node:events";
import { describe, expect, test } from "vitest";
import { startOpenAi } from "../doubles/openai.ts";
import { closeAfterTest, listenInTest } from "../support/close-after-test.ts";
import { post, startGateway } from "./gateway.ts";

/*
 * Servers that speak Responses alone, whose configuration does not name the API. Since nothing is posted to a server before a client asks,
 * they were taken for chat servers, and all requests were answered with their 404. The doubles of the tests were all configured with
 * their API.
 */

type Json = Readonly<Record<string, unknown>>;
/** The status and the body of an answer; a text is sent as it is. */
type Answers = Readonly<Record<string, readonly [status: number, body: unknown]>>;

/** A server with these answers; everything else is `missing`. */
async function serve(answers: Answers, missing: Answers[string] = [404, { detail: "Not Found" }]) {
  const asked: string[] = [];
  const server = await listenInTest((request, response) => {
    const line = `${request.method} ${request.url}`;
    request.resume().on("end", () => {
      asked.push(line);
      const [status, body] = answers[line] ?? missing;
      response.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body));
    });
  });
  return { url: `${server.url}/v1`, posted: () => asked.filter((line) => line.startsWith("POST")) };
}

const list = [200, { object: "list", data: [{ id: "m", object: "model", created: 1, owned_by: "me" }] }] as const;
const response = {
  id: "resp_1",
  object: "response",
  status: "completed",
  output: [
    {
      id: "msg_1",
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "Yes.", annotations: [] }],
    },
  ],
};
const completion = { choices: [{ index: 0, message: { role: "assistant", content: "No." }, finish_reason: "stop" }] };

async function gatewayTo(url: string, options: Parameters<typeof startGateway>[1] = {}) {
  const gateway = await startGateway(url, options);
  closeAfterTest(() => gateway.close(0));
  return async (path: string, members: Json = {}): Promise<{ readonly status: number; readonly text: string }> => {
    const answer = await fetch(gateway.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
      body: JSON.stringify({ model: "m", ...(path === "/v1/responses" ? { input: "Hi" } : conversation), ...members }),
    });
    return { status: answer.status, text: await answer.text() };
  };
}

const conversation = { max_tokens: 500, messages: [{ role: "user", content: "Hi" }] };

describe("a server that has Responses alone", () => {
  test.each([
    ["/v1/chat/completions", false],
    ["/v1/chat/completions", true],
    ["/v1/messages", true],
    ["/v1/responses", false],
    ["/v1/responses", true],
    ["/api/chat", true],
  ])("answers %s from the first request on; streamed: %s", async (path, stream) => {
    const server = await startOpenAi({ turn: () => ({ reasoning: "A greeting.", text: "Hello there." }) });
    closeAfterTest(() => server.close());
    const ask = await gatewayTo(server.url);
    for (let turn = 1; turn <= 3; turn++) {
      const { status, text } = await ask(path, { model: "gpt-5", stream });
      expect(status, text).toBe(200);
      expect(text).toMatch(/Hello/);
      expect(server.requests.length - server.refusals.length).toBe(turn);
    }
  });

  test("is sent one chat request, and from then on the members that only Responses has", async () => {
    const { url, posted } = await serve({ "GET /v1/models": list, "POST /v1/responses": [200, response] });
    const ask = await gatewayTo(url);
    const strange = { previous_response_id: "resp_of_the_server" };
    // Nothing is known yet: a response that is not stored here is refused.
    expect((await ask("/v1/responses", strange)).status).toBe(400);
    expect((await ask("/v1/chat/completions")).text).toContain("Yes.");
    expect((await ask("/v1/responses", strange)).text).toContain("Yes.");
    expect(posted()).toEqual(["POST /v1/chat/completions", "POST /v1/responses", "POST /v1/responses"]);
  });

  test("needs no list of models, and may answer 405", async () => {
    const { url } = await serve({ "POST /v1/responses": [200, response] }, [405, ""]);
    const ask = await gatewayTo(url, { models: ["m"] });
    expect((await ask("/v1/chat/completions")).text).toContain("Yes.");
  });

  test("is found by requests that come together", async () => {
    const { url, posted } = await serve({ "GET /v1/models": list, "POST /v1/responses": [200, response] });
    const ask = await gatewayTo(url);
    const answers = await Promise.all(Array.from({ length: 5 }, () => ask("/v1/chat/completions")));
    for (const { text } of answers) expect(text).toContain("Yes.");
    expect(posted().filter((line) => line === "POST /v1/responses")).toHaveLength(5);
  });

  test("is left by a client that leaves", async () => {
    const upstream = new EventEmitter();
    const [begun, left] = [once(upstream, "begun"), once(upstream, "left")];
    const server = await listenInTest(({ method, url }, answer) => {
      if (method === "GET") answer.end(JSON.stringify(list[1]));
      else if (url !== "/v1/responses") answer.writeHead(404).end();
      else {
        upstream.emit("begun");
        answer.on("close", () => upstream.emit("left"));
      }
    });
    const gateway = await startGateway(`${server.url}/v1`);
    closeAfterTest(() => gateway.close(0));
    const leaving = new AbortController();
    const answer = post(gateway, {}, leaving.signal);
    await begun;
    leaving.abort();
    await expect(answer).rejects.toThrow();
    await left;
  });

  test("says itself what is wrong with a request", async () => {
    const error = { message: "Unsupported value", type: "invalid_request_error", param: "input", code: null };
    const { url } = await serve({ "GET /v1/models": list, "POST /v1/responses": [400, { error }] });
    const { status, text } = await (await gatewayTo(url))("/v1/chat/completions");
    expect(status).toBe(400);
    expect(text).toContain("Unsupported value");
  });
});

describe("a server that has chat", () => {
  const unknownModel = { error: { message: "The model `m` does not exist.", type: "NotFoundError", code: 404 } };

  test.each<[string, Answers[string]]>([
    ["does not know the model", [404, unknownModel]],
    ["refuses the key", [401, { error: { message: "No key" } }]],
    ["is out of order", [500, "broken"]],
  ])("and %s is sent no Responses", async (_, refusal) => {
    const { url, posted } = await serve({
      "GET /v1/models": list,
      "POST /v1/chat/completions": refusal,
      "POST /v1/responses": [200, response],
    });
    const { status } = await (await gatewayTo(url, { retries: 0 }))("/v1/chat/completions");
    expect(status).toBe(refusal[0]);
    expect(posted()).toEqual(["POST /v1/chat/completions"]);
  });

  test("and has answered stays one, also when it loses the path", async () => {
    const answers: Record<string, Answers[string]> = {
      "GET /v1/models": list,
      "POST /v1/chat/completions": [200, completion],
      "POST /v1/responses": [200, response],
    };
    const { url } = await serve(answers);
    const ask = await gatewayTo(url);
    expect((await ask("/v1/chat/completions")).text).toContain("No.");
    answers["POST /v1/chat/completions"] = [404, "404 page not found"];
    const { status, text } = await ask("/v1/chat/completions");
    expect(status).toBe(404);
    expect(text).toContain("page not found");
  });
});

test.each([false, true])("of a server that has neither, the error names both paths; streamed: %s", async (stream) => {
  const { url } = await serve({ "GET /v1/models": list });
  const ask = await gatewayTo(url);
  for (let turn = 1; turn <= 2; turn++) {
    const { status, text } = await ask("/v1/chat/completions", { stream });
    expect(status).toBe(404);
    expect(text).toContain(`${url}/chat/completions (status 404)`);
    expect(text).toContain(`${url}/responses (status 404)`);
  }
});

test("a server whose API is named is sent nothing else", async () => {
  const { url, posted } = await serve({ "GET /v1/models": list, "POST /v1/responses": [200, response] });
  const { status } = await (await gatewayTo(url, { api: "chat" }))("/v1/chat/completions");
  expect(status).toBe(404);
  expect(posted()).toEqual(["POST /v1/chat/completions"]);
});
