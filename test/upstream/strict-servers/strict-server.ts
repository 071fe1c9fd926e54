import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export type Json = Readonly<Record<string, unknown>>;

/** What a server answers in place of the model's words. */
export interface Refusal {
  readonly status: number;
  readonly body: unknown;
}

/** One server: how it is known, and what it refuses. */
export interface StrictServer {
  readonly name: string;
  /** `owned_by` in its list of models. */
  readonly owner: string;
  /** Why it refuses a body; undefined: it does not. */
  refusal(body: Json): Refusal | undefined;
  /** The `prompt_tokens` that it reports; default 10. */
  promptTokens?(body: Json): number;
  /** What it says at other paths below its root, such as `/api/show`. */
  readonly others?: Readonly<Record<string, unknown>>;
  /** Its streams report usage in any case; default: if `stream_options` asks for it. */
  readonly alwaysReportsUsage?: true;
  /** Its calls arrive whole. */
  readonly wholeCalls?: boolean;
  /** Starts a server of another API, in place of the one below. */
  start?(turn: Turns, models: readonly string[]): Promise<RunningStrictServer>;
}

/** One turn of the model: a text, or a call with the JSON of its arguments. */
export type Turn = string | { readonly call: string; readonly arguments: string };
type Turns = Turn | ((body: Json) => Turn);

export interface RunningStrictServer {
  /** The base URL, `/v1` included. */
  readonly url: string;
  /** Bodies that were answered or refused, in order. */
  readonly requests: readonly Json[];
  readonly refusals: readonly Refusal[];
  close(): Promise<void>;
}

/**
 * Starts a server on loopback with the model `m`. It answers chat requests that it does not refuse with the turns, in order; the last one
 * repeats. Calls come in pieces of five characters, as from a model.
 */
export async function startStrict(
  server: StrictServer,
  turn: Turns,
  models: readonly string[] = ["m"],
): Promise<RunningStrictServer> {
  if (server.start) return server.start(turn, models);
  const requests: Json[] = [];
  const refusals: Refusal[] = [];
  const http = createServer((request, response) => {
    const { url = "" } = request;
    const send = (status: number, body: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (url === "/v1/models")
      return send(200, {
        object: "list",
        data: models.map((id) => ({ id, object: "model", created: 1_760_000_000, owned_by: server.owner })),
      });
    const other = server.others?.[url];
    if (other !== undefined) return send(200, other);
    if (url !== "/v1/chat/completions" || request.method !== "POST") return send(404, { error: "not found" });
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    request.on("end", () => {
      const body = jsonObject(text);
      // Truewire finds the API that a server speaks by POST requests without a body.
      if (!body)
        return send(400, {
          error: { message: "The request body is not a JSON object.", type: "invalid_request_error" },
        });
      requests.push(body);
      const refused = server.refusal(body);
      if (refused) {
        refusals.push(refused);
        return send(refused.status, refused.body);
      }
      // Nine characters, as Mistral's own ids; each is new, as clients know calls by them.
      const callId = `call${String(requests.length).padStart(5, "0")}`;
      const answer = typeof turn === "function" ? turn(body) : turn;
      if (body["stream"] === true)
        response
          .writeHead(200, { "content-type": "text/event-stream" })
          .end(
            streamOf(
              answer,
              callId,
              usageOf(server.promptTokens?.(body)),
              server.alwaysReportsUsage || usageIsWanted(body),
            ),
          );
      else send(200, bodyOf(answer, callId, usageOf(server.promptTokens?.(body))));
    });
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1`,
    requests,
    refusals,
    async close() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

function jsonObject(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}

const envelope = { id: "chatcmpl-1", created: 1_760_000_000, model: "m" };

function usageOf(promptTokens = 10): Json {
  return { prompt_tokens: promptTokens, completion_tokens: 5, total_tokens: promptTokens + 5 };
}

/** A double that reports its own counts sends them in streams only if asked, as the real servers do. */
function usageIsWanted(body: Json): boolean {
  return objectOf(body["stream_options"])["include_usage"] === true;
}

function bodyOf(turn: Turn, callId: string, usage: Json): unknown {
  const message =
    typeof turn === "string"
      ? { role: "assistant", content: turn }
      : { role: "assistant", content: null, tool_calls: [callOf(turn, callId)] };
  const choice = { index: 0, message, finish_reason: typeof turn === "string" ? "stop" : "tool_calls" };
  return { ...envelope, object: "chat.completion", choices: [choice], usage };
}

function callOf({ call, arguments: text }: Exclude<Turn, string>, id: string): Json {
  return { index: 0, id, type: "function", function: { name: call, arguments: text } };
}

function streamOf(turn: Turn, callId: string, usage: Json, hasUsage: boolean): string {
  const chunk = (delta: unknown, finish: string | null = null): string =>
    `data: ${JSON.stringify({
      ...envelope,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: finish }],
    })}\n\n`;
  const last = `data: ${JSON.stringify({ ...envelope, object: "chat.completion.chunk", choices: [], usage })}\n\n`;
  const begin = chunk({ role: "assistant", content: "" });
  const end = `${hasUsage ? last : ""}data: [DONE]\n\n`;
  if (typeof turn === "string") return `${begin}${chunk({ content: turn })}${chunk({}, "stop")}${end}`;
  const pieces = turn.arguments.match(/.{1,5}/gsu) ?? [];
  return [
    begin,
    chunk({ tool_calls: [callOf({ ...turn, arguments: "" }, callId)] }),
    ...pieces.map((piece) => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
    chunk({}, "tool_calls"),
    end,
  ].join("");
}

/** The objects of a list that a body has. */
export function listOf(body: Json, name: string): readonly Json[] {
  const list = body[name];
  return Array.isArray(list) ? (list as readonly Json[]) : [];
}

export function objectOf(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : {};
}
