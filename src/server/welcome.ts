import type { Reply } from "./reply.ts";
import { sendPageFile, wantsPage } from "./send-page-file.ts";
import type { Service } from "./service.ts";

/** `GET /`: the page for a browser, where the server has one; two lines for whoever else looks. */
export function answerWelcome(reply: Reply, { directory, page }: Service): void {
  const file = wantsPage(reply) ? page?.get("index.html") : undefined;
  if (file) return sendPageFile(reply, file);
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
  reply.send(
    200,
    "text/plain; charset=utf-8",
    text.join("\n"),
    page ? { vary: [reply.headers["vary"] ?? [], "Accept"].flat().join(", ") } : {},
  );
}
