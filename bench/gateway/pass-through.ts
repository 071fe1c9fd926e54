// Two gateways to compare with, in Node without a library. Arguments: the upstream's base URL, and `rewrite` for the second one.
//
// - It copies bytes between two node:http connections, and reads nothing: the floor for a gateway in Node.
// - `rewrite`: it parses every event of a stream, or the body, and writes it again: the floor for a gateway that knows what it sends.
import { Agent, createServer, request as send } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const [, , base = "", kind] = process.argv;
const upstream = new URL(base);
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const server = createServer((request, response) => {
  const options = {
    host: upstream.hostname,
    port: upstream.port,
    agent,
    method: request.method ?? "GET",
    path: request.url,
    headers: request.headers,
  };
  const out = send(options, (answer) => {
    if (kind === "rewrite") rewrite(answer, response);
    else answer.pipe(response.writeHead(answer.statusCode ?? 502, answer.headers));
  });
  out.on("error", () => response.destroy());
  response.on("close", () => out.destroy());
  request.pipe(out);
});

function rewrite(answer: IncomingMessage, response: ServerResponse): void {
  const isStream = answer.headers["content-type"]?.startsWith("text/event-stream") === true;
  const { "content-length": _, ...headers } = answer.headers;
  let text = "";
  if (isStream) response.writeHead(answer.statusCode ?? 502, headers);
  answer.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    if (!isStream) return;
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    // What was read together is written together.
    if (events.length > 0) response.write(events.map(rewriteEvent).join(""));
  });
  answer.on("end", () => {
    if (isStream) response.end();
    else response.writeHead(answer.statusCode ?? 502, headers).end(JSON.stringify(JSON.parse(text)));
  });
}

function rewriteEvent(event: string): string {
  const data = event.slice("data: ".length);
  return data === "[DONE]" ? `${event}\n\n` : `data: ${JSON.stringify(JSON.parse(data))}\n\n`;
}

server.keepAliveTimeout = 60_000;
server.listen({ port: 0, host: "127.0.0.1", backlog: 8192 }, () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
});
