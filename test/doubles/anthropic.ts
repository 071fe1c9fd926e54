import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { AnthropicCache } from "./anthropic-cache.ts";
import type { Json, PromptUsage } from "./anthropic-cache.ts";
import { promptBlocks, refusalOf } from "./anthropic-rules.ts";
import { listen, pieces, readBody, sendJson } from "./chat-server.ts";
import type { Refusal } from "./chat-server.ts";

/*
 * A server that speaks Anthropic's Messages API and is as strict: it signs thinking with keys of its own, so that invented and foreign
 * signatures are refused, and it charges for prompts as Anthropic does (see anthropic-rules.ts and anthropic-cache.ts).
 */

/** What the model answers. Blocks come in the order of the members. */
export interface DoubleTurn {
  /** Sent only if the request lets the model think. */
  readonly thinking?: string;
  /** The thinking has no text: a `redacted_thinking` block. */
  readonly redacted?: boolean;
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly input: Json }[];
}

export interface AnthropicDoubleOptions {
  /** Accounts by their keys. Signatures and caches of one account mean nothing to another. */
  readonly accounts: Readonly<Record<string, string>>;
  /** The answer to an accepted request; `index`: how many were accepted before. */
  answer(body: Json, index: number): DoubleTurn;
  /** Default 1,024, as of most models. */
  readonly minCachedTokens?: number;
  /** Milliseconds; default: time stands still. */
  now?(): number;
  /** Members that the platform refuses: `cache_control` for Amazon Bedrock and Vertex AI. */
  readonly refusedMembers?: readonly string[];
  /** What it refuses besides. */
  refusal?(body: Json): Refusal | undefined;
  /** The tokens that it counts of each prompt; default: a token is four characters. `false`: it has no `count_tokens`, as Ollama. */
  readonly counted?: number | false;
}

export interface AnthropicDouble {
  /** The base URL, `/v1` included. */
  readonly url: string;
  /** Bodies that were accepted, in order. */
  readonly requests: readonly Json[];
  /** The text of each body in `requests`. */
  readonly texts: readonly string[];
  /** The words of refusals, in order. */
  readonly refusals: readonly string[];
  /** What each accepted request was charged for its prompt. */
  readonly usages: readonly PromptUsage[];
  /** Bodies of `count_tokens` that were accepted, in order. */
  readonly counts: readonly Json[];
  close(): Promise<void>;
}

/** Starts the server on loopback. */
export async function startAnthropic(options: AnthropicDoubleOptions): Promise<AnthropicDouble> {
  const { accounts, minCachedTokens = 1024, now = () => 0, refusedMembers = [], counted } = options;
  const paths = new Set(["/v1/messages", ...(counted === false ? [] : ["/v1/messages/count_tokens"])]);
  const requests: Json[] = [];
  const texts: string[] = [];
  const refusals: string[] = [];
  const usages: PromptUsage[] = [];
  const counts: Json[] = [];
  const caches = new Map(Object.values(accounts).map((account) => [account, new AnthropicCache(minCachedTokens)]));

  const refuse = (response: ServerResponse, status: number, type: string, message: string): void => {
    refusals.push(message);
    const error = { type: "error", error: { type, message }, request_id: "req_double" };
    sendJson(response, status, error);
  };

  const answer = (request: IncomingMessage, response: ServerResponse, text: string, counting: boolean): void => {
    const account = accounts[String(request.headers["x-api-key"])];
    if (account === undefined) return refuse(response, 401, "authentication_error", "invalid x-api-key");
    if (request.headers["anthropic-version"] === undefined)
      return refuse(response, 400, "invalid_request_error", "anthropic-version: header is required");
    const body = JSON.parse(text) as Json;
    const isValid = (type: string, block: Json): boolean =>
      type === "thinking"
        ? isSignature(account, String(block["thinking"]), String(block["signature"]))
        : isRedacted(account, String(block["data"]));
    const refused = refusalOf(counting ? { max_tokens: 1e6, ...body } : body, { isValid, refusedMembers });
    if (refused !== undefined) return refuse(response, 400, "invalid_request_error", refused);
    if (counting) {
      counts.push(body);
      return sendJson(response, 200, { input_tokens: counted || Math.ceil(text.length / 4) });
    }
    const further = options.refusal?.(body);
    if (further) {
      refusals.push(JSON.stringify(further.body));
      return sendJson(response, further.status, further.body);
    }
    const { thinking, tool_choice: choice, model } = body;
    const usage = caches.get(account)?.charge(promptBlocks(body), model, { thinking, choice }, now());
    if (!usage) return refuse(response, 500, "api_error", "Internal server error");
    const index = requests.push(body) - 1;
    texts.push(text);
    usages.push(usage);
    const message = messageOf(options.answer(body, index), body, { account, index, usage });
    if (body["stream"] === true)
      response.writeHead(200, { "content-type": "text/event-stream" }).end(streamOf(message));
    else sendJson(response, 200, message);
  };

  const http = createServer((request, response) => {
    const path = request.url?.split("?")[0] ?? "";
    if (path === "/v1/models") return sendJson(response, 200, { data: [], has_more: false });
    if (!paths.has(path) || request.method !== "POST")
      return refuse(response, 404, "not_found_error", `Not found: ${path}`);
    void readBody(request).then((text) => answer(request, response, text, path.endsWith("/count_tokens")));
  });
  const { url, close } = await listen(http);
  return { url: `${url}/v1`, requests, texts, refusals, usages, counts, close };
}

const secret = "the double's own key, which no client and no gateway knows";

function codeOf(account: string, kind: string, text: string): string {
  return createHmac("sha256", secret)
    .update(JSON.stringify([account, kind, text]))
    .digest("base64");
}

/** A signature contains the thinking, as the real one does: a block may come back without its text (`display: "omitted"`). */
function signatureOf(account: string, text: string): string {
  const content = Buffer.from(text).toString("base64");
  return Buffer.from(`${content}.${codeOf(account, "thinking", text)}`).toString("base64");
}

function isSignature(account: string, text: string, signature: string): boolean {
  const [content = ""] = Buffer.from(signature, "base64").toString().split(".");
  const signed = Buffer.from(content, "base64").toString();
  return signature === signatureOf(account, signed) && (text === signed || text === "");
}

function redactedOf(account: string, text: string): string {
  const content = Buffer.from(text).toString("base64");
  return Buffer.from(`${content}.${codeOf(account, "redacted", text)}`).toString("base64");
}

function isRedacted(account: string, data: string): boolean {
  const [content = ""] = Buffer.from(data, "base64").toString().split(".");
  return data === redactedOf(account, Buffer.from(content, "base64").toString());
}

interface Answered {
  readonly account: string;
  readonly index: number;
  readonly usage: PromptUsage;
}

interface Message {
  readonly content: readonly Json[];
  readonly usage: Json;
  readonly [name: string]: unknown;
}

function messageOf(turn: DoubleTurn, body: Json, { account, index, usage }: Answered): Message {
  const { thinking: text, redacted = false, calls = [] } = turn;
  const thinking = (body["thinking"] ?? { type: "disabled" }) as Json;
  const content: Json[] = [];
  if (text !== undefined && thinking["type"] !== "disabled") {
    if (redacted) content.push({ type: "redacted_thinking", data: redactedOf(account, text) });
    else {
      const shown = thinking["display"] === "omitted" ? "" : text;
      content.push({ type: "thinking", thinking: shown, signature: signatureOf(account, text) });
    }
  }
  if (turn.text !== undefined) content.push({ type: "text", text: turn.text });
  for (const [at, { name, input }] of calls.entries()) {
    const id = `toolu_01${codeOf(account, "id", `${index} ${at}`)
      .replace(/[^a-zA-Z0-9]/g, "")
      .slice(0, 22)}`;
    content.push({ type: "tool_use", id, name, input });
  }
  return {
    id: `msg_01${codeOf(account, "id", String(index))
      .replace(/[^a-zA-Z0-9]/g, "")
      .slice(0, 22)}`,
    type: "message",
    role: "assistant",
    model: body["model"],
    content,
    stop_reason: calls.length > 0 ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: { ...usage, output_tokens: Math.ceil(JSON.stringify(content).length / 4), service_tier: "standard" },
  };
}

/** The events of a message. */
function streamOf(message: Message): string {
  const { content, stop_reason, stop_sequence, usage, ...head } = message;
  const event = (data: Json): string => `event: ${String(data["type"])}\ndata: ${JSON.stringify(data)}\n\n`;
  const start = { ...head, content: [], stop_reason: null, stop_sequence: null, usage: { ...usage, output_tokens: 1 } };
  const blocks = content.flatMap((block, index) => {
    const { shown, deltas } = piecesOf(block);
    return [
      event({ type: "content_block_start", index, content_block: shown }),
      ...deltas.map((delta) => event({ type: "content_block_delta", index, delta })),
      event({ type: "content_block_stop", index }),
    ];
  });
  return [
    event({ type: "message_start", message: start }),
    ...blocks,
    event({ type: "message_delta", delta: { stop_reason, stop_sequence }, usage }),
    event({ type: "message_stop" }),
  ].join("");
}

function piecesOf(block: Json): { readonly shown: Json; readonly deltas: readonly Json[] } {
  switch (block["type"]) {
    case "text":
      return {
        shown: { ...block, text: "" },
        deltas: pieces(String(block["text"])).map((text) => ({ type: "text_delta", text })),
      };
    case "thinking":
      return {
        shown: { type: "thinking", thinking: "", signature: "" },
        deltas: [
          ...pieces(String(block["thinking"])).map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature: block["signature"] },
        ],
      };
    case "tool_use":
      return {
        shown: { ...block, input: {} },
        deltas: pieces(JSON.stringify(block["input"])).map((partial_json) => ({
          type: "input_json_delta",
          partial_json,
        })),
      };
    default:
      return { shown: block, deltas: [] };
  }
}
