import type { GeneratedChoice, Generation } from "../../wire/core/accumulate.ts";
import { isObject } from "../../wire/core/json.ts";
import type { AssistantPart, ContentPart, Message } from "../../wire/core/message.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { Api, Json } from "./facts.ts";

/*
 * Requests and answers in a form that is the same for every API, so that a client's request is compared with what its vendor has received,
 * and the vendor's answer with what the client has received.
 */

/** What a request asks for. Ids of calls are replaced by their order: gateways may rename them, but not mix them up. */
export function neutralRequest(request: GenerationRequest): Json {
  const {
    prompt,
    tools,
    toolChoice,
    parallelToolCalls,
    sampling,
    limits,
    n,
    logprobs,
    output,
    reasoning,
    hostedTools,
  } = request;
  const { prediction, verbosity, extra, stream } = request;
  const messages = prompt.kind === "chat" ? prompt.messages : [];
  const isSystem = ({ role }: Message): boolean => role === "system" || role === "developer";
  const system = messages.filter(isSystem).map(({ content }) => textOf(content));
  const ids = new Map<string, number>();
  return plain({
    system: system.join("\n").replaceAll(/\n+/g, "\n"),
    messages: merged(
      messages.filter((message) => !isSystem(message)).flatMap((message) => neutralMessage(message, ids)),
    ),
    tools: tools?.map(({ name, description, parameters, strict, kind, inputGrammar, cacheMinutes }) => ({
      name,
      description,
      parameters,
      strict: strict === true ? true : undefined,
      kind: kind === "custom" ? kind : undefined,
      inputGrammar: inputGrammar && { syntax: inputGrammar.syntax, definition: inputGrammar.definition },
      cacheMinutes,
    })),
    hostedTools: hostedTools?.map((tool) => (tool as { type?: unknown }).type ?? tool),
    toolChoice: isAuto(toolChoice) ? undefined : toolChoice,
    parallelToolCalls,
    sampling,
    limits: { maxTokens: limits.maxTokens, stop: limits.stop },
    n: n === 1 ? undefined : n,
    logprobs,
    output: output && "schema" in output ? { type: output.type, schema: output.schema, strict: output.strict } : output,
    reasoning: { effort: reasoning?.effort, mode: reasoning?.mode, budgetTokens: reasoning?.budgetTokens },
    prediction,
    verbosity,
    stream,
    cacheMarks: cacheMarks(messages),
    extra,
  });
}

function isAuto(choice: unknown): boolean {
  return choice === "auto" || (isObject(choice) && choice["type"] === "auto");
}

function neutralMessage(message: Message, ids: Map<string, number>): Json[] {
  const order = (id: string): number => {
    const known = ids.get(id) ?? ids.size;
    ids.set(id, known);
    return known;
  };
  if (message.role === "tool")
    return [
      {
        role: "tool",
        call: order(message.toolCallId),
        content: neutralParts(message.content),
        isError: message.isError,
      },
    ];
  const { role, content } = message;
  const parts = typeof content === "string" ? [{ type: "text", text: content } as const] : (content ?? []);
  return [{ role, content: joinedTexts(parts.flatMap((part) => neutralPart(part, order))) }];
}

/** Texts that follow each other are one: some servers take one text in place of a list. */
function joinedTexts(parts: readonly Json[]): Json[] {
  const joined: Json[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (typeof part["text"] === "string" && typeof last?.["text"] === "string")
      joined[joined.length - 1] = { text: `${last["text"]}\n${part["text"]}` };
    else joined.push(part);
  }
  return joined;
}

function neutralParts(content: string | readonly ContentPart[]): Json[] {
  if (typeof content === "string") return [{ text: content }];
  return joinedTexts(content.flatMap((part) => neutralPart(part, () => -1)));
}

function neutralPart(part: ContentPart | AssistantPart, order: (id: string) => number): Json[] {
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [{ text: part.text }];
    case "image":
      return [{ image: part.url, detail: part.detail === "auto" ? undefined : part.detail }];
    case "tool-call":
      return [{ call: order(part.id), name: part.name, arguments: parsed(part.arguments) }];
    case "reasoning":
      return [{ reasoning: part.text, state: part.state && { kind: part.state.kind, value: part.state.value } }];
    case "file":
      return [{ file: part.name, data: part.data?.replace(/^data:[^,]*,/, ""), text: part.text, url: part.url }];
    default:
      return [{ ...part }];
  }
}

/** Consecutive messages of one role are one turn: some APIs need that, and some cannot have it. */
function merged(messages: readonly Json[]): Json[] {
  const turns: { role: unknown; content: Json[] }[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    const content = message["role"] === "tool" ? [message] : ((message["content"] as Json[] | undefined) ?? []);
    if (last && last.role === message["role"] && last.role !== "tool")
      for (const part of content) last.content.push(part);
    else turns.push({ role: message["role"], content: [...content] });
  }
  return turns.map(({ role, content }) => ({ role, content: joinedTexts(content) }));
}

/** The numbers of the parts up to which the prompt is to be cached, from 1, with their times. A text in place of a list is one part. */
function cacheMarks(messages: readonly Message[]): readonly Json[] | undefined {
  const marks: Json[] = [];
  let at = 0;
  for (const message of messages) {
    const parts = Array.isArray(message.content) ? (message.content as readonly ContentPart[]) : [{}];
    for (const part of parts) {
      at++;
      const { cacheMinutes } = part as { cacheMinutes?: number };
      if (cacheMinutes !== undefined) marks.push({ part: at, minutes: cacheMinutes });
    }
    const { cacheMinutes } = message as { cacheMinutes?: number };
    if (cacheMinutes !== undefined) marks.push({ part: at, minutes: cacheMinutes });
  }
  return marks.length === 0 ? undefined : marks;
}

function textOf(content: Message["content"]): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => ("text" in part && typeof part.text === "string" ? part.text : "")).join("\n");
}

/** What an answer contains. */
export function neutralAnswer({ choices, usage }: Generation): Json {
  const [choice] = choices;
  return plain({
    text: choice?.text ?? "",
    reasoning: choice?.reasoning ?? "",
    states: choice && statesOf(choice),
    refusal: choice?.refusal ?? undefined,
    calls: choice?.toolCalls.map(({ name, arguments: json }) => ({ name, arguments: parsed(json) })),
    finish: choice?.finish?.reason,
    stop: choice?.finish?.stop,
    usage: usage && {
      promptTokens: usage.promptTokens,
      completionTokens: usage.completionTokens,
      cached: usage.promptDetails?.["cached_tokens"] || undefined,
      written: usage.promptDetails?.["cache_write_tokens"] || undefined,
      reasoning: usage.completionDetails?.["reasoning_tokens"] || undefined,
    },
  });
}

function statesOf({ parts }: GeneratedChoice): readonly Json[] | undefined {
  const states = parts.flatMap((part) =>
    part.type === "reasoning" && part.state ? [{ kind: part.state.kind, value: part.state.value }] : [],
  );
  return states.length === 0 ? undefined : states;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

/** Without members that are undefined, in any depth. */
function plain(value: Readonly<Record<string, unknown>>): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}

/**
 * What an API cannot express, by the beginnings of paths in the neutral form: a gateway to it cannot keep that. Sources: the request schemas
 * of OpenAI (https://platform.openai.com/docs/api-reference) and Anthropic (https://platform.claude.com/docs/en/api/messages).
 */
const missingInRequests: Readonly<Record<Api, readonly string[]>> = {
  chat: [
    "sampling.topK",
    "messages[].content[].reasoning",
    "messages[].content[].state",
    "messages[].content[].isError",
    "messages[].content[].content[].image",
    "cacheMarks",
    "tools[].cacheMinutes",
    "reasoning.budgetTokens",
    "reasoning.mode",
    "hostedTools",
    "extra",
  ],
  responses: [
    "sampling.topK",
    "sampling.seed",
    "sampling.frequencyPenalty",
    "sampling.presencePenalty",
    "sampling.logitBias",
    "limits.stop",
    "n",
    "prediction",
    "messages[].content[].reasoning",
    "messages[].content[].state",
    "messages[].content[].isError",
    "cacheMarks",
    "tools[].cacheMinutes",
    "reasoning.budgetTokens",
    "reasoning.mode",
    "hostedTools",
    "extra",
  ],
  messages: [
    "sampling.seed",
    "sampling.frequencyPenalty",
    "sampling.presencePenalty",
    "sampling.logitBias",
    "n",
    "logprobs",
    "prediction",
    "verbosity",
    "tools[].kind",
    "tools[].inputGrammar",
    "messages[].content[].detail",
    "messages[].content[].reasoning",
    "messages[].content[].state",
    "hostedTools",
    "extra",
  ],
};

const missingInAnswers: Readonly<Record<Api, readonly string[]>> = {
  chat: ["reasoning", "states", "stop", "usage.written"],
  responses: ["states", "stop", "usage.written"],
  messages: ["usage.reasoning", "states"],
};

/** Whether the other side can have a value of this path. Indices are replaced by `[]`. */
export function isExpressible(side: "request" | "answer", api: Api, path: string): boolean {
  const general = path.replaceAll(/\[\d+\]/g, "[]");
  const missing = (side === "request" ? missingInRequests : missingInAnswers)[api];
  return !missing.some(
    (beginning) => general === beginning || general.startsWith(`${beginning}.`) || general.startsWith(`${beginning}[`),
  );
}
