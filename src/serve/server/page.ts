import type { HeaderFields } from "./exchange.ts";
import type { Reply } from "./reply.ts";
import type { PageFile, Service } from "./service.ts";

/**
 * Only files of this server are loaded, connected to, or may frame the page. Images may also be the user's own, which are sent to a model.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const pageHeaders: HeaderFields = {
  "content-security-policy": policy,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  // The browser validates each file on each use, so that all files are of one version.
  "cache-control": "no-cache",
  vary: "Accept",
};

/** Whether the client is a browser that navigates to the page. */
function wantsPage(reply: Reply): boolean {
  const { exchange } = reply;
  return exchange.path === "/" && /\btext\/html\b/i.test(exchange.header("accept") ?? "");
}

/** Whether the client takes any type: clients of Ollama look for its words at the root. */
function isOllamaProbe({ exchange }: Reply): boolean {
  const accept = exchange.header("accept") ?? "*/*";
  return exchange.path === "/" && accept.includes("*/*") && !/\btext\/html\b/i.test(accept);
}

/** Sends a file of the page, or 304. No other origin may read it, even if it may use the API. */
export function sendPageFile(reply: Reply, file: PageFile): void {
  reply.replaceHeaders(pageHeaders);
  sendUnlessKnown(reply, file);
}

/** Sends a file, or 304 if the client has it. */
export function sendUnlessKnown(reply: Reply, { contentType, text, etag }: PageFile): void {
  const known = (reply.exchange.header("if-none-match") ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  if (known.includes(etag)) reply.send(304, null, "", { etag });
  else reply.send(200, contentType, text, { etag });
}

/** `GET /`: the page for a browser, if the server has one; what Ollama's clients expect; otherwise a short text. */
export async function answerWelcome(reply: Reply, { directory, page }: Service): Promise<void> {
  const file = wantsPage(reply) ? (await page?.())?.get("index.html") : undefined;
  if (file) return sendPageFile(reply, file);
  const headers: HeaderFields = page ? { vary: [reply.addedHeader("vary") ?? [], "Accept"].flat().join(", ") } : {};
  if (isOllamaProbe(reply)) return reply.send(200, "text/plain; charset=utf-8", "Ollama is running", headers);
  const host = reply.exchange.header("host") ?? "localhost";
  const models = directory.list().map(({ info }) => info.id);
  const text = [
    "Truewire: the OpenAI API, exactly.",
    "",
    `Base URL for clients:  http://${host}/v1`,
    ...(reply.caller.isStranger ? [] : [`Models:                ${models.join(", ") || "none yet"}`]),
    `Health:                http://${host}/health`,
    "",
  ];
  reply.send(200, "text/plain; charset=utf-8", text.join("\n"), headers);
}
