import type { TruewireServer } from "../../src/serve/app/create-server.ts";

export type Json = { [name: string]: unknown };

/** A message as a client has it, whole or put together from a stream, with what a stream must be checked for. */
export interface ReadMessage {
  readonly status: number;
  readonly headers: Headers;
  /** The message; of an answer that is an error, its body. */
  readonly message: Json & { content?: Json[] };
  /** What the stream said in its last event, where that was an error. */
  readonly error: Json | null;
  /** Tools whose blocks were closed: a client runs them. */
  readonly closedCalls: readonly string[];
}

/** Asks for a message and reads it as Anthropic's SDKs do. Throws where a stream is not in order. */
export async function askMessage(
  server: TruewireServer,
  members: Json = {},
  headers: Record<string, string> = {},
): Promise<ReadMessage> {
  const response = await fetch(`${server.url}/v1/messages?beta=true`, {
    method: "POST",
    headers: { "content-type": "application/json", "anthropic-version": "2023-06-01", ...headers },
    body: JSON.stringify({ model: "m", max_tokens: 100, messages: [{ role: "user", content: "Hi" }], ...members }),
  });
  const text = await response.text();
  const { status } = response;
  if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream"))
    return { status, headers: response.headers, message: JSON.parse(text) as Json, error: null, closedCalls: [] };
  return { status, headers: response.headers, ...put(text) };
}

function put(text: string): Pick<ReadMessage, "message" | "error" | "closedCalls"> {
  let message: Json & { content?: Json[] } = {};
  let error: Json | null = null;
  const closedCalls: string[] = [];
  const blocks: Json[] = [];
  let open: Json | null = null;
  let input = "";
  for (const frame of text.split("\n\n").filter(Boolean)) {
    const [, name, data = ""] = /^event: (.*)\ndata: (.*)$/.exec(frame) ?? [];
    const event = JSON.parse(data) as Json;
    if (event["type"] !== name) throw new Error(`The event ${name} says that it is ${String(event["type"])}`);
    if (error) throw new Error("Something follows the error");
    const { delta, index } = event as { delta?: Json; index?: number };
    if (index !== undefined && index !== blocks.length - (name === "content_block_start" ? 0 : 1))
      throw new Error(`Block ${index} comes after ${blocks.length}`);
    if (name === "message_start") message = event["message"] as Json;
    else if (name === "content_block_start") {
      if (open) throw new Error("Two blocks are open");
      open = event["content_block"] as Json;
      blocks.push(open);
      input = "";
    } else if (name === "content_block_delta" && open && delta) {
      for (const member of ["text", "thinking"]) {
        if (typeof delta[member] === "string") open[member] = String(open[member]) + delta[member];
      }
      if (delta["signature"] !== undefined) open["signature"] = delta["signature"];
      input += (delta["partial_json"] as string | undefined) ?? "";
    } else if (name === "content_block_stop" && open) {
      if (input !== "") open["input"] = JSON.parse(input);
      if (open["type"] === "tool_use") closedCalls.push(String(open["name"]));
      open = null;
    } else if (name === "message_delta") {
      Object.assign(message, delta);
      message["usage"] = { ...(message["usage"] as Json), ...(event["usage"] as Json) };
    } else if (name === "error") error = event;
  }
  return { message: { ...message, content: blocks }, error, closedCalls };
}
