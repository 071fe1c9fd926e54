import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";

/** `GET /`: for the person who opens the address in a browser. */
export function answerWelcome(reply: Reply, { directory }: Service): void {
  const host = reply.exchange.header("host") ?? "localhost";
  const models = directory.list().map(({ info }) => info.id);
  const text = [
    "Truewire: the OpenAI API, exactly.",
    "",
    `Base URL for clients:  http://${host}/v1`,
    ...(reply.isStranger ? [] : [`Models:                ${models.join(", ") || "none yet"}`]),
    `Health:                http://${host}/health`,
    "",
  ];
  reply.send(200, "text/plain; charset=utf-8", text.join("\n"));
}
