import type { GeneratedChoice, Generation } from "../../wire/core/accumulate.ts";
import type { AssistantPart, ContentPart, Message, ToolChoice } from "../../wire/core/message.ts";
import type { GenerationRequest, OutputConstraint, ReasoningOptions } from "../../wire/core/request.ts";
import type { TurnState } from "../../wire/core/turn-state.ts";
import { takesKeyword } from "../../wire/apis/adapt/simplify-schema.ts";
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
    toolChoice: neutralChoice(toolChoice),
    parallelToolCalls,
    sampling: sorted(sampling),
    limits: { maxTokens: limits.maxTokens, stop: limits.stop },
    n: n === 1 ? undefined : n,
    logprobs,
    ...neutralOutput(output),
    reasoning: neutralReasoning(reasoning),
    prediction,
    verbosity,
    stream,
    cacheMarks: cacheMarks(messages),
    extra: extra && sorted(extra),
  });
}

function isSystem({ role }: Message): boolean {
  return role === "system" || role === "developer";
}

/** The system texts that follow a turn. */
export function laterRules({ prompt }: GenerationRequest): string[] {
  const messages = prompt.kind === "chat" ? prompt.messages : [];
  const start = messages.findIndex((message) => !isSystem(message));
  return messages
    .slice(start === -1 ? messages.length : start)
    .flatMap((message) => (isSystem(message) ? [textOf(message.content)] : []));
}

function sorted(members: object): Json {
  return Object.fromEntries(Object.entries(members).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** The request without reasoning and the vendor's states, which are of one API. */
export function withoutStates(request: Json): Json {
  const own = (part: Json): Json => {
    const { state: _, ...rest } = part;
    return rest;
  };
  const messages = (request["messages"] as { role: unknown; content: Json[] }[]).flatMap(({ role, content }) => {
    const parts = content.filter((part) => part["reasoning"] === undefined).map(own);
    return parts.length === 0 ? [] : [{ role, content: parts }];
  });
  return { ...request, messages };
}

function neutralChoice(choice: ToolChoice | undefined): unknown {
  if (choice?.type === "auto") return undefined;
  const isOne = choice?.type === "allowed" && choice.mode === "required" && choice.names.length === 1;
  return isOne ? { type: "named", name: choice.names[0] } : choice;
}

/** The kinds of answers have members of their own, as most APIs have only some of them. */
function neutralOutput(output: OutputConstraint | undefined): Json {
  switch (output?.type) {
    case undefined:
    case "text":
      return {};
    case "json-object":
      return { json: true };
    case "json-schema":
      return { output: { schema: output.schema, strict: output.strict } };
    case "choice":
      return { choice: output.options };
    case "grammar":
    case "regex":
      return { grammar: output.type === "grammar" ? output.gbnf : output.pattern };
  }
}

/** Effort "none" is no reasoning, and reasoning without a budget is as long as the model decides. */
function neutralReasoning({ effort, mode, budgetTokens }: ReasoningOptions = {}): Json {
  const isOff = mode === "off" || (mode === undefined && effort === "none");
  if (isOff) return { mode: "off" };
  return { effort, mode: mode === "on" && budgetTokens === undefined ? "adaptive" : mode, budgetTokens };
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
      return [
        {
          [part.url.startsWith("http") ? "imageUrl" : "image"]: part.url,
          detail: part.detail === "auto" ? undefined : part.detail,
        },
      ];
    case "tool-call":
      return [
        {
          call: order(part.id),
          name: part.name,
          arguments: parsed(part.arguments),
          state: part.state && stateOf(part.state),
        },
      ];
    case "reasoning":
      if (part.text === "" && !part.state) return [];
      return [{ reasoning: part.text || undefined, state: part.state && stateOf(part.state) }];
    case "file":
      return [{ file: part.name, data: part.data?.replace(/^data:[^,]*,/, ""), text: part.text, url: part.url }];
    default:
      return [{ ...part }];
  }
}

/** What its maker demands back; not who made it. */
function stateOf({ kind, value }: TurnState): Json {
  return { kind, value };
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
    others: choices.length > 1 ? choices.slice(1).map(({ text }) => text) : undefined,
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

function statesOf({ parts, toolCalls }: GeneratedChoice): readonly Json[] | undefined {
  const reasoning = parts.flatMap((part) => (part.type === "reasoning" && part.state ? [stateOf(part.state)] : []));
  const states = [...reasoning, ...toolCalls.flatMap(({ state }) => (state ? [stateOf(state)] : []))];
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
    "choice",
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
    "json",
    "choice",
    "output.strict",
    "sampling.minP",
    "sampling.repeatPenalty",
    "sampling.repeatLastN",
    "tools[].kind",
    "tools[].inputGrammar",
    "messages[].content[].detail",
    "messages[].content[].reasoning",
    "messages[].content[].state",
    "hostedTools",
    "extra",
  ],
  ollama: [
    "sampling.logitBias",
    "n",
    "toolChoice",
    "parallelToolCalls",
    "output.strict",
    "tools[].strict",
    "tools[].kind",
    "tools[].inputGrammar",
    "tools[].cacheMinutes",
    "cacheMarks",
    "messages[].content[].detail",
    "messages[].content[].state",
    "messages[].content[].isError",
    "messages[].content[].file",
    "messages[].content[].imageUrl",
    "messages[].content order",
    "messages[].content[].content[].image",
    "choice",
    "prediction",
    "verbosity",
    "reasoning.budgetTokens",
    "reasoning.mode",
    "hostedTools",
    "extra",
  ],
  gemini: [
    "sampling.logitBias",
    "sampling.minP",
    "sampling.repeatPenalty",
    "sampling.repeatLastN",
    "parallelToolCalls",
    "tools[].strict",
    "tools[].kind",
    "tools[].inputGrammar",
    "tools[].cacheMinutes",
    "cacheMarks",
    "messages[].content[].detail",
    "messages[].content[].file",
    "messages[].content[].imageUrl",
    "messages[].content[].reasoning",
    "messages[].content[].state",
    "messages[].content[].content[].image",
    "output.strict",
    "reasoning.mode",
    "reasoning.budgetTokens",
    "prediction",
    "verbosity",
    "hostedTools",
    "extra",
  ],
};

const missingInAnswers: Readonly<Record<Api, readonly string[]>> = {
  chat: ["reasoning", "states", "stop", "usage.written"],
  responses: ["states", "stop", "usage.written"],
  messages: ["usage.reasoning", "states"],
  ollama: ["states", "stop", "finish content-filter", "usage.cached", "usage.written", "usage.reasoning"],
  gemini: ["states", "stop", "usage.written"],
};

/** Whether the other side can have a value of this path. Indices are replaced by `[]`. */
export function isExpressible(side: "request" | "answer", api: Api, path: string): boolean {
  const general = path.replaceAll(/\[\d+\]/g, "[]");
  const missing = (side === "request" ? missingInRequests : missingInAnswers)[api];
  if (api === "gemini" && /^(?:tools\[\]\.parameters|output\.schema)/.test(general) && !takesGeminiKeyword(general))
    return false;
  return !missing.some(
    (beginning) => general === beginning || general.startsWith(`${beginning}.`) || general.startsWith(`${beginning}[`),
  );
}

/** A member of `properties` is a name, any other is a keyword. */
function takesGeminiKeyword(path: string): boolean {
  const [name = "", before] = path.split(".").toReversed();
  return before === undefined || before === "properties" || !/^[\w$]+$/.test(name) || takesKeyword("gemini", name);
}
