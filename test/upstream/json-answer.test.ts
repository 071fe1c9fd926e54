import { afterEach, describe, expect, test } from "vitest";
import { createServer, type TruewireServer } from "../../src/serve/app/create-server.ts";
import { startGateway } from "./gateway.ts";
import { bodyOf, done, event, finish, role, startScripted } from "./scripted-server.ts";

/*
 * JSON was demanded, and a model has put it in a Markdown fence. Clients of every API parse the text of the answer, and got the fence:
 * no test had demanded JSON of a server that does not enforce it.
 */

const closed: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closed.splice(0).reverse()) await close();
});

const schema = { type: "object", properties: { shelf: { type: "integer" } }, required: ["shelf"] };
const messages = [{ role: "user", content: "Where?" }];
const asked: Readonly<Record<string, readonly [path: string, body: object]>> = {
  chat: ["/v1/chat/completions", { messages, response_format: { type: "json_object" } }],
  responses: ["/v1/responses", { input: "Where?", text: { format: { type: "json_schema", name: "s", schema } } }],
  messages: ["/v1/messages", { messages, max_tokens: 50, output_config: { format: { type: "json_schema", schema } } }],
  ollama: ["/api/chat", { messages, format: schema }],
};

type Json = Readonly<Record<string, unknown>>;

/** The value at a path of an answer; undefined: there is none. */
function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let found = value;
  for (const name of path)
    found = Array.isArray(found) ? found.at(Number(name)) : (found as Json | null | undefined)?.[name];
  return found;
}

/** The text of an answer of any of these APIs. */
function textOf(api: string, body: string, stream: boolean): string {
  const lines = stream ? body.split("\n").map((line) => line.replace(/^data: /, "")) : [body];
  const values = lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as Json);
  const texts = values.map((value) => {
    switch (api) {
      case "chat":
        return at(value, "choices", 0, stream ? "delta" : "message", "content");
      case "responses":
        if (!stream) return at(value, "output", -1, "content", 0, "text");
        return value["type"] === "response.output_text.delta" ? value["delta"] : "";
      case "messages":
        return stream ? at(value, "delta", "text") : at(value, "content", -1, "text");
      default:
        return at(value, "message", "content");
    }
  });
  return texts.filter((text) => typeof text === "string").join("");
}

async function answer(gateway: TruewireServer, model: string, api: string, stream: boolean): Promise<string> {
  const [path, body] = asked[api] ?? ["", {}];
  const response = await fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model, stream, ...body }),
  });
  expect(response.status).toBe(200);
  return textOf(api, await response.text(), stream);
}

const json = '{"shelf": 3, "why": "```"}';
const pieces = ["\n``", "`json\n", '{"shelf": 3, "why', '": "``', '`"}\n', "``", "`\n"];

describe.each(Object.keys(asked))("a client of %s", (api) => {
  test.each([true, false])("of an upstream; streamed: %s", async (stream) => {
    const upstream = await startScripted((response, body) => {
      const deltas = pieces.map((content) => event({ content })).join("");
      if (body["stream"] === true) {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(role + deltas + finish + done);
      } else response.end(bodyOf(pieces.join("")));
    });
    const gateway = await startGateway(upstream.url);
    closed.push(
      () => upstream.close(),
      () => gateway.close(0),
    );
    expect(await answer(gateway, "m", api, stream)).toBe(json);
  });

  test.each([true, false])("of a program; streamed: %s", async (stream) => {
    const program = async function* (): AsyncGenerator<string> {
      yield* pieces;
    };
    const gateway = await createServer({
      port: 0,
      logLevel: "silent",
      models: [{ kind: "program", name: "p", program }],
    });
    closed.push(() => gateway.close(0));
    expect(await answer(gateway, "p", api, stream)).toBe(json);
  });
});
