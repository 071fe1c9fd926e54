// The cheapest possible gateway in Node: it copies bytes between two node:http connections. Argument: the upstream's base URL.
import { Agent, createServer, request as send } from "node:http";
import type { AddressInfo } from "node:net";

const upstream = new URL(process.argv[2] ?? "");
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
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  out.on("error", () => response.destroy());
  response.on("close", () => out.destroy());
  request.pipe(out);
});
server.keepAliveTimeout = 60_000;
server.listen({ port: 0, host: "127.0.0.1", backlog: 8192 }, () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
});
