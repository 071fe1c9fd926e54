import type { IncomingMessage, ServerResponse } from "node:http";
import { listen } from "../support/listen.ts";

export interface ScriptedServer {
  /** The base URL, `/v1` included. */
  readonly url: string;
  /** Chat and other generating requests that came, in order; GET requests, and those without a body, are not counted. */
  readonly requests: readonly {
    readonly path: string;
    readonly headers: IncomingMessage["headers"];
    readonly body: Record<string, unknown>;
  }[];
  /** Answers that are not complete and whose connection is open. */
  readonly open: () => number;
  readonly close: () => Promise<void>;
}

type Script = (response: ServerResponse, body: Record<string, unknown>, attempt: number) => void;

/** An upstream that answers as `script` says, on loopback. `GET /models` lists the model "m". */
export async function startScripted(script: Script, port = 0): Promise<ScriptedServer> {
  const requests: { path: string; headers: IncomingMessage["headers"]; body: Record<string, unknown> }[] = [];
  let open = 0;
  const { url, close } = await listen((request, response) => {
    if (request.method === "GET") {
      response.end(JSON.stringify({ object: "list", data: [{ id: "m", object: "model", created: 7, owned_by: "t" }] }));
      return;
    }
    open++;
    response.on("close", () => open--);
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    request.on("end", () => {
      const body = JSON.parse(text) as Record<string, unknown>;
      requests.push({ path: request.url ?? "", headers: request.headers, body });
      script(response, body, requests.length);
    });
  }, port);
  return { url: `${url}/v1`, requests, open: () => open, close };
}

const envelope = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_760_000_000, model: "m" };

/** One event with a choice. */
export function event(delta: object, finish: string | null = null): string {
  return `data: ${JSON.stringify({ ...envelope, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
}

export const role: string = event({ role: "assistant", content: "" });
export const finish: string = event({}, "stop");
export const done = "data: [DONE]\n\n";

/** A whole stream that says `text`. */
export function streamOf(text: string): string {
  return role + event({ content: text }) + finish + done;
}

/** A whole answer that says `text`. */
export function bodyOf(text: string): string {
  const choices = [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }];
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  return JSON.stringify({ ...envelope, object: "chat.completion", choices, usage });
}

/** Answers as asked: a stream or a body that says `text`. */
export function say(response: ServerResponse, body: Record<string, unknown>, text: string): void {
  const isStream = body["stream"] === true;
  response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
  response.end(isStream ? streamOf(text) : bodyOf(text));
}
