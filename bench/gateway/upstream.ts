// The upstream of the gateway bench, a process of its own: answers from prepared bytes. The model's name says how:
// `burst` (all events at once, each a write of its own), `paced-<ms>[-<events>]` (one event every so many milliseconds, so many in
// all, the finish and [DONE] the last two), anything without `stream`: JSON.
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The role, 200 words, the finish, [DONE]. */
const words = 200;
const envelope = (choice: string): string =>
  `data: {"id":"chatcmpl-Bench0123456789Bench0123456789","object":"chat.completion.chunk","created":1760000000,"model":"bench","system_fingerprint":null,"choices":[{"index":0,${choice}}]}\n\n`;
const events = [
  envelope('"delta":{"role":"assistant"},"logprobs":null,"finish_reason":null'),
  ...Array.from({ length: words }, (_, i) =>
    envelope(`"delta":{"content":" word${i % 7 === 0 ? "\\n" : ""}"},"logprobs":null,"finish_reason":null`),
  ),
  envelope('"delta":{},"logprobs":null,"finish_reason":"stop"'),
  "data: [DONE]\n\n",
].map((event) => Buffer.from(event));
const json = JSON.stringify({
  id: "chatcmpl-Bench0123456789Bench0123456789",
  object: "chat.completion",
  created: 1_760_000_000,
  model: "bench",
  choices: [
    { index: 0, message: { role: "assistant", content: " word".repeat(words) }, logprobs: null, finish_reason: "stop" },
  ],
  usage: { prompt_tokens: 10, completion_tokens: words, total_tokens: words + 10 },
});

/** Open paced answers and how far each is; one timer drives all with the same pace. */
const paced = new Map<string, Map<ServerResponse, number>>();

function pace(response: ServerResponse, model: string): void {
  const [, ms, count = events.length] = model.split("-").map(Number);
  let group = paced.get(model);
  if (!group) {
    const fresh = (group = new Map<ServerResponse, number>());
    paced.set(model, fresh);
    setInterval(() => {
      for (const [open, at] of fresh) {
        const left = count - at;
        open.write(events[left > 2 ? at : events.length - left]);
        if (left > 1) fresh.set(open, at + 1);
        else {
          fresh.delete(open);
          open.end();
        }
      }
    }, ms);
  }
  const members = group;
  members.set(response, 1);
  response.on("close", () => members.delete(response));
  response.write(events[0]);
}

const server = createServer((request, response) => {
  if (request.url?.endsWith("/models")) {
    const data = ["burst", "json", "paced-20", "paced-20-50", "paced-1000-30"].map((id) => ({
      id,
      object: "model",
      created: 1,
      owned_by: "bench",
    }));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ object: "list", data }));
    return;
  }
  let body = "";
  request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
  request.on("end", () => {
    // A gateway asks with empty bodies which APIs there are; this upstream has one.
    const isChat = request.url?.endsWith("/chat/completions") === true;
    if (!isChat || body === "") {
      const head = { "content-type": "application/json" };
      response.writeHead(isChat ? 400 : 404, head).end('{"error":{"message":"Not for this upstream"}}');
      return;
    }
    const { model, stream } = JSON.parse(body) as { model: string; stream?: boolean };
    if (stream !== true) {
      response.writeHead(200, { "content-type": "application/json" }).end(json);
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    if (model.startsWith("paced-")) pace(response, model);
    else {
      for (const event of events) response.write(event);
      response.end();
    }
  });
});
server.keepAliveTimeout = 60_000;
server.listen({ port: 0, host: "127.0.0.1", backlog: 8192 }, () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
});
