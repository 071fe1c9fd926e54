import { describe, expect, test } from "vitest";
import { responseWriter } from "../../../test/support/response-stream.ts";
import { hostileBodies, validAnswers, validBodies, validForms } from "../../../test/support/hostile-bodies.ts";
import { dailyPart } from "../../../test/support/runs.ts";
import { accumulate } from "../core/accumulate.ts";
import type { GenerationEvent } from "../core/events.ts";
import { FailureError } from "../core/failure.ts";
import { runSync } from "../core/steps.ts";
import { readGeminiEmbed } from "./gemini/models.ts";
import { requiredBetas } from "./messages/request-schema.ts";
import { completionsSource } from "./completions/port.ts";
import { readEmbeddingsRequest } from "./embeddings/embeddings.ts";
import { readOllamaEmbed, readOllamaEmbeddings } from "./ollama/embed.ts";
import { readOllamaShow } from "./ollama/models.ts";
import type { AnswerContext, ReadRequest } from "./port.ts";
import { ports, sourcePorts } from "./ports.ts";
import { exact, lean } from "./profile.ts";
import { readRerankRequest } from "./rerank/rerank.ts";
import { responsesSocket } from "./responses/socket.ts";
import type { EventReader } from "./source-port.ts";
import { readResponseBody } from "./tolerant/read-response.ts";
import { objectBody, readDetokenizeRequest, readPromptRequest, readTokenizeRequest } from "./tokens/tokens.ts";

const context: AnswerContext = { profile: lean, created: 1, model: "m", settings: {}, random: () => 0.5 };
const answer: readonly GenerationEvent[] = [
  { type: "start", choice: 0 },
  { type: "text-delta", choice: 0, text: "a" },
  { type: "finish", choice: 0, reason: "stop" },
  { type: "usage", usage: { promptTokens: 1, completionTokens: 1 } },
  { type: "end", end: { kind: "done" } },
];

let lists = 0;
/** By day, each place of a body has some of the hostile values. */
const part = <Body>(bodies: Iterable<Body>): Body[] => dailyPart([...bodies], 10, lists++);

/** Reads a body as the path does; a request that is accepted is answered, and sent to another server of each API. */
function readAt(path: string, body: unknown): void {
  const port = ports.find((port) => `/v1${port.path}` === path);
  const header = (name: string): string | undefined =>
    ({ "anthropic-version": "2023-06-01", "anthropic-beta": Object.values(requiredBetas).join() })[name];
  for (const profile of [lean, exact]) {
    const options = { profile, forwards: false, header };
    if (port) {
      try {
        use(runSync(port.readRequest(body, "req_1", options)), profile.name === "lean");
      } catch (error) {
        // Profile `exact` refuses the extensions of other servers.
        if (!(error instanceof FailureError) || error.failure.code !== "unknown_parameter") throw error;
      }
      use(runSync(port.readRequest(body, "req_1", { ...options, forwards: true })), profile.name === "lean");
      continue;
    }
    switch (path) {
      case "/v1/messages/count_tokens":
      case "/v1/v1beta/models:countTokens":
        for (const { tokenCounter } of ports)
          if (tokenCounter && `/v1${tokenCounter.path}` === path)
            runSync(tokenCounter.readRequest(body, "req_1", options));
        break;
      case "/v1/v1beta/models:embedContent":
      case "/v1/v1beta/models:batchEmbedContents":
        readGeminiEmbed(body, "req_1", profile, path.endsWith("s"));
        break;
      case "/v1/responses/input_tokens":
      case "/v1/responses/compact":
        readAt("/v1/responses", body);
        break;
      case "/v1/embeddings":
        readEmbeddingsRequest(body, "req_1");
        break;
      case "/v1/api/embed":
        readOllamaEmbed(body, "req_1", profile);
        break;
      case "/v1/api/embeddings":
        readOllamaEmbeddings(body, "req_1", profile);
        break;
      case "/v1/api/show":
        readOllamaShow(body, profile);
        break;
      case "/v1/rerank":
        readRerankRequest(body, "req_1");
        break;
      case "/tokenize":
        runSync(readTokenizeRequest(objectBody(body), "m", "req_1", options));
        break;
      case "/detokenize":
        readDetokenizeRequest(objectBody(body), "m", "req_1");
        break;
      case "/apply-template":
        runSync(readPromptRequest(objectBody(body), "m", "req_1", options));
        break;
      default:
        throw new TypeError(`There is no reader for ${path}`);
    }
  }
}

function use(read: ReadRequest, writes: boolean): void {
  if (!writes) return;
  read.streamWriter(context).write(answer);
  read.writeResponse(accumulate(answer), context);
  const sources = read.request.prompt.kind === "text" ? [completionsSource] : Object.values(sourcePorts);
  for (const source of sources) {
    try {
      JSON.stringify(source.writeRequest(read.request, { model: "m" }));
    } catch (error) {
      if (!(error instanceof FailureError)) throw error;
    }
  }
}

describe("objects whose members hide what every object inherits", () => {
  // `"type": {"toString": 1}` in a request of Messages was answered with 500: the message of the error converted the object to a string.
  // The tests had values of wrong types, but each of them could be converted.
  test.each([...validBodies("m"), ...validForms("m")].map(({ path, body }) => [path, body] as const))(
    "at every place of a request to %s are read or refused",
    (path, body) => {
      readAt(path, body);
      for (const { name, text } of part(hostileBodies(body))) {
        try {
          readAt(path, JSON.parse(text));
        } catch (error) {
          if (!(error instanceof FailureError)) throw new Error(name, { cause: error });
          expect(error.failure.status, name).toBeLessThan(500);
          expect(error.failure.message).not.toBe("");
        }
      }
    },
  );

  test("at every place of a message of a WebSocket are read or refused", () => {
    const readSocketMessage = (message: unknown): unknown => {
      const received = responsesSocket.connect(() => 0).receive(message, 1);
      return typeof received === "string" ? JSON.parse(received.slice("data: ".length)) : received.readBody();
    };
    const body = { type: "response.create", model: "m", input: "Hi", stream_options: { include_obfuscation: false } };
    for (const { name, text } of hostileBodies(body)) {
      try {
        readAt("/v1/responses", readSocketMessage(JSON.parse(text)));
      } catch (error) {
        if (!(error instanceof FailureError)) throw new Error(name, { cause: error });
        expect(error.failure.status, name).toBeLessThan(500);
      }
    }
  });

  test("at every place of a steer are accepted or refused", () => {
    const connection = responsesSocket.connect(() => 0);
    const request = connection.receive({ type: "response.create", stream_id: "a" }, 1);
    if (typeof request === "string") throw new Error(request);
    const writer = responseWriter(lean);
    request.answering(writer, true);
    writer.open();
    const content = [{ type: "input_text", text: "Hi" }];
    const input = [{ type: "message", role: "user", content }];
    const steer = { type: "response.steer", previous_response_id: writer.responseId, input };
    for (const { name, text } of [{ name: "valid", text: JSON.stringify(steer) }, ...hostileBodies(steer)]) {
      const received = connection.receive(JSON.parse(text), 1);
      if (typeof received === "string")
        expect(received, name).toMatch(/^data: \{"type":"(response\.steer\.(accepted|failed)|error)"/);
      else expect(() => received.readBody(), name).toThrow(FailureError);
    }
  });
});

describe("objects whose members hide what every object inherits, in the answers of other servers", () => {
  const sources = { ...sourcePorts, completions: completionsSource };
  const apis = Object.keys(validAnswers) as (keyof typeof validAnswers)[];
  const read = (api: keyof typeof validAnswers, take: (reader: EventReader) => readonly GenerationEvent[]): void => {
    const reader = sources[api].reader({ newCallId: () => "call_new", choices: 1 });
    const generation = accumulate(take(reader));
    const { end } = generation;
    if ("failure" in end && end.failure.cause instanceof TypeError) throw end.failure.cause;
    for (const port of ports) {
      const { body } = [...validBodies("m"), ...validForms("m")].find(({ path }) => path === `/v1${port.path}`) ?? {};
      const request = runSync(port.readRequest(body, "req_1", {}));
      if (end.kind === "done") request.writeResponse(generation, context);
    }
  };

  test.each(apis)("%s: at every place of a whole answer", (api) => {
    for (const { name, text } of part(hostileBodies(validAnswers[api].whole))) {
      try {
        read(api, (reader) => readResponseBody(text, reader));
      } catch (error) {
        throw new Error(name, { cause: error });
      }
    }
  });

  test.each(apis)("%s: at every place of each event of a stream", (api) => {
    const { stream } = validAnswers[api];
    for (const [at, event] of stream.entries()) {
      for (const { name, text } of part(hostileBodies(event))) {
        const texts = stream.map((one) => JSON.stringify(one)).with(at, text);
        try {
          read(api, (reader) => [...reader.push(texts.map((one) => `data: ${one}\n\n`).join("")), ...reader.end()]);
        } catch (error) {
          throw new Error(`${at}: ${name}`, { cause: error });
        }
      }
    }
  });
});
