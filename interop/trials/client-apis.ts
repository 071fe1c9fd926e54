/* The four APIs of clients, each as little as a trial needs of it: a conversation is sent, and what came back is read. */

export type Json = Readonly<Record<string, unknown>>;

export interface Call {
  readonly id: string;
  readonly name: string;
  /** Undefined: the text is not a JSON object. */
  readonly input: Json | undefined;
}

/** What an answer says, in any API. */
export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly Call[];
  /** `stop`, `tool_calls`, `end_turn`, `completed` …; undefined: the answer has no end. */
  readonly end: string | undefined;
  /** The message of an error; undefined: there is none. */
  readonly error: string | undefined;
  /** What the client sends back of the answer in its next request. */
  readonly turn: readonly Json[];
}

export interface Ask {
  readonly model: string;
  readonly history: readonly Json[];
  readonly tool?: ToolSchema;
  /** The answer must call the tool. */
  readonly mustCall?: boolean;
  readonly maxTokens: number;
  readonly stream: boolean;
  /** More members of the request. */
  readonly more?: Json;
}

export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  readonly schema: Json;
}

export interface ClientApi {
  readonly id: "chat" | "responses" | "messages" | "ollama";
  readonly path: string;
  user(text: string): Json;
  results(calls: readonly Call[], text: string): readonly Json[];
  body(ask: Ask): Json;
  /** Reads the events of a stream, or the one object of a whole answer. */
  read(events: readonly Json[]): Omit<Answer, "status" | "error">;
}

function inputOf(value: unknown): Json | undefined {
  try {
    const input: unknown = typeof value === "string" ? JSON.parse(value === "" ? "{}" : value) : value;
    return typeof input === "object" && input !== null && !Array.isArray(input) ? (input as Json) : undefined;
  } catch {
    return undefined;
  }
}

const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const object = (value: unknown): Json => (typeof value === "object" && value !== null ? (value as Json) : {});

const chat: ClientApi = {
  id: "chat",
  path: "/v1/chat/completions",
  user: (content) => ({ role: "user", content }),
  results: (calls, content) => calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content })),
  body: ({ model, history, tool, mustCall, maxTokens, stream, more }) => ({
    model,
    messages: history,
    max_tokens: maxTokens,
    stream,
    ...(stream && { stream_options: { include_usage: true } }),
    ...(tool && {
      tools: [
        { type: "function", function: { name: tool.name, description: tool.description, parameters: tool.schema } },
      ],
      tool_choice: mustCall ? "required" : "none",
    }),
    ...more,
  }),
  read(events) {
    const message: { content: string; reasoning: string } = { content: "", reasoning: "" };
    const calls = new Map<number, { id: string; name: string; arguments: string }>();
    let end: string | undefined;
    for (const event of events) {
      for (const choice of list(event["choices"]).slice(0, 1)) {
        const part = object(choice["delta"] ?? choice["message"]);
        message.content += text(part["content"]);
        message.reasoning += text(part["reasoning_content"]);
        for (const [at, piece] of list(part["tool_calls"]).entries()) {
          const index = typeof piece["index"] === "number" ? piece["index"] : at;
          const call = calls.get(index) ?? { id: text(piece["id"]), name: "", arguments: "" };
          const { name, arguments: more } = object(piece["function"]);
          call.name += text(name);
          call.arguments += text(more);
          calls.set(index, call);
        }
        if (typeof choice["finish_reason"] === "string") end = choice["finish_reason"];
      }
    }
    const made = [...calls.values()];
    return {
      text: message.content,
      reasoning: message.reasoning,
      calls: made.map((call) => ({ id: call.id, name: call.name, input: inputOf(call.arguments) })),
      end,
      turn: [
        {
          role: "assistant",
          content: message.content === "" && made.length > 0 ? null : message.content,
          ...(made.length > 0 && {
            tool_calls: made.map((call) => ({
              id: call.id,
              type: "function",
              function: { name: call.name, arguments: call.arguments },
            })),
          }),
        },
      ],
    };
  },
};

const responses: ClientApi = {
  id: "responses",
  path: "/v1/responses",
  user: (content) => ({ role: "user", content }),
  results: (calls, output) => calls.map(({ id }) => ({ type: "function_call_output", call_id: id, output })),
  body: ({ model, history, tool, mustCall, maxTokens, stream, more }) => ({
    model,
    input: history,
    max_output_tokens: maxTokens,
    stream,
    store: false,
    ...(tool && {
      tools: [
        {
          type: "function",
          name: tool.name,
          description: tool.description,
          parameters: tool.schema,
          strict: false,
        },
      ],
      tool_choice: mustCall ? "required" : "none",
    }),
    ...more,
  }),
  read(events) {
    const last = events.findLast(({ type, output }) =>
      typeof type === "string" ? /^response\.(completed|incomplete)$/.test(type) : Array.isArray(output),
    );
    const response = object(last?.["response"] ?? last);
    const items = list(response["output"]);
    const partsOf = (type: string, member: string): string =>
      items
        .filter((item) => item["type"] === type)
        .flatMap((item) => list(item[member]).map((part) => text(part["text"])))
        .join("");
    return {
      text: partsOf("message", "content"),
      reasoning: partsOf("reasoning", "summary") + partsOf("reasoning", "content"),
      calls: items
        .filter(({ type }) => type === "function_call")
        .map((item) => ({ id: text(item["call_id"]), name: text(item["name"]), input: inputOf(item["arguments"]) })),
      end: typeof response["status"] === "string" ? response["status"] : undefined,
      turn: items,
    };
  },
};

const messages: ClientApi = {
  id: "messages",
  path: "/v1/messages",
  user: (content) => ({ role: "user", content }),
  results: (calls, content) => [
    { role: "user", content: calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content })) },
  ],
  body: ({ model, history, tool, mustCall, maxTokens, stream, more }) => ({
    model,
    messages: history,
    max_tokens: maxTokens,
    stream,
    ...(tool && {
      tools: [{ name: tool.name, description: tool.description, input_schema: tool.schema }],
      tool_choice: { type: mustCall ? "any" : "none" },
    }),
    ...more,
  }),
  read(events) {
    const blocks: Record<string, unknown>[] = [];
    let end: string | undefined;
    for (const event of events) {
      if (Array.isArray(event["content"])) {
        blocks.push(...list(event["content"]));
        end = text(event["stop_reason"]);
      } else if (event["type"] === "content_block_start") blocks.push({ ...object(event["content_block"]) });
      else if (event["type"] === "content_block_delta") {
        const delta = object(event["delta"]);
        const block = blocks.at(-1);
        for (const member of ["text", "thinking", "signature"])
          if (block && typeof delta[member] === "string") block[member] = text(block[member]) + delta[member];
        if (block && typeof delta["partial_json"] === "string")
          block["json"] = text(block["json"]) + delta["partial_json"];
      } else if (event["type"] === "message_delta") end = text(object(event["delta"])["stop_reason"]);
    }
    const whole = blocks.map(({ json, ...block }) =>
      block["type"] === "tool_use" && json !== undefined ? { ...block, input: inputOf(json) } : block,
    );
    const partsOf = (member: string): string => whole.map((block) => text((block as Json)[member])).join("");
    return {
      text: partsOf("text"),
      reasoning: partsOf("thinking"),
      calls: whole
        .filter(({ type }: Json) => type === "tool_use")
        .map((block: Json) => ({ id: text(block["id"]), name: text(block["name"]), input: inputOf(block["input"]) })),
      end,
      turn: [{ role: "assistant", content: whole }],
    };
  },
};

const ollama: ClientApi = {
  id: "ollama",
  path: "/api/chat",
  user: (content) => ({ role: "user", content }),
  results: (calls, content) => calls.map(({ name }) => ({ role: "tool", tool_name: name, content })),
  // Ollama's API has no choice of tools: the model decides.
  body: ({ model, history, tool, mustCall, maxTokens, stream, more }) => ({
    model,
    messages: history,
    stream,
    options: { num_predict: maxTokens },
    ...(tool &&
      mustCall && {
        tools: [
          { type: "function", function: { name: tool.name, description: tool.description, parameters: tool.schema } },
        ],
      }),
    ...more,
  }),
  read(events) {
    const message = { content: "", thinking: "", calls: [] as Json[] };
    let end: string | undefined;
    for (const event of events) {
      const part = object(event["message"]);
      message.content += text(part["content"]);
      message.thinking += text(part["thinking"]);
      message.calls.push(...list(part["tool_calls"]));
      if (event["done"] === true) end = text(event["done_reason"]);
    }
    return {
      text: message.content,
      reasoning: message.thinking,
      calls: message.calls.map((call) => {
        const { name, arguments: input } = object(call["function"]);
        return { id: text(call["id"]), name: text(name), input: inputOf(input) };
      }),
      end,
      turn: [
        {
          role: "assistant",
          content: message.content,
          ...(message.calls.length > 0 && { tool_calls: message.calls }),
        },
      ],
    };
  },
};

export const clientApis: readonly ClientApi[] = [chat, responses, messages, ollama];

/** Sends a request to `url` (without `/v1`) and reads the answer, whole or streamed. */
export async function ask(url: string, api: ClientApi, request: Ask, signal?: AbortSignal): Promise<Answer> {
  const response = await fetch(`${url}${api.path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "anthropic-version": "2023-06-01", authorization: "Bearer none" },
    body: JSON.stringify(api.body(request)),
    ...(signal && { signal }),
  });
  const body = await response.text();
  const events = eventsOf(body);
  const failed = events.find(
    (event) =>
      (event["error"] ?? undefined) !== undefined || event["type"] === "error" || event["type"] === "response.failed",
  );
  const error = object(failed?.["error"] ?? object(failed?.["response"])["error"]);
  const message =
    text(error["message"]) || text(failed?.["error"]) || (failed ? JSON.stringify(failed).slice(0, 300) : "");
  return {
    status: response.status,
    error: message !== "" ? message : response.ok ? undefined : body.slice(0, 300),
    ...api.read(events),
  };
}

/** The objects of an answer: of each event, each line, or the one of the body. */
function eventsOf(body: string): Json[] {
  const whole = inputOf(body);
  if (whole) return [whole];
  return body.split("\n").flatMap((line) => {
    const event = inputOf(line.startsWith("data:") ? line.slice(5) : line);
    return event && line.trim() !== "" ? [event] : [];
  });
}
