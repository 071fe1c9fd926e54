import * as z from "zod";
import { eventStreamMessage } from "../../src/wire/apis/messages/event-stream.ts";

/*
 * A double of Bedrock's Converse and ConverseStream for a model of Anthropic's. It takes what AWS documents, and nothing else:
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html,
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html.
 */

const base64 = z.string().regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/);
const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/);
const toolUseId = z.string().regex(/^[a-zA-Z0-9_.:-]{1,64}$/);
const cachePoint = z.strictObject({
  cachePoint: z.strictObject({ type: z.literal("default"), ttl: z.enum(["5m", "1h"]).optional() }),
});
const text = z.strictObject({ text: z.string() });
const image = z.strictObject({
  image: z.strictObject({
    format: z.enum(["png", "jpeg", "gif", "webp"]),
    source: z.strictObject({ bytes: base64.min(4) }),
  }),
});
const document = z.strictObject({
  document: z.strictObject({
    format: z.enum(["pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"]).optional(),
    name: z
      .string()
      .max(200)
      .regex(/^[a-zA-Z0-9()[\]-]+(?:\s[a-zA-Z0-9()[\]-]+)*$/),
    source: z.union([z.strictObject({ bytes: base64.min(4) }), z.strictObject({ text: z.string() })]),
    context: z.string().optional(),
    citations: z.strictObject({ enabled: z.boolean() }).optional(),
  }),
});
const toolUse = z.strictObject({
  toolUse: z.strictObject({ toolUseId, name: toolName, input: z.record(z.string(), z.unknown()) }),
});
const toolResult = z.strictObject({
  toolResult: z.strictObject({
    toolUseId,
    content: z.array(z.union([text, image, document])),
    status: z.enum(["success", "error"]).optional(),
  }),
});
const reasoning = z.strictObject({
  reasoningContent: z.union([
    z.strictObject({ reasoningText: z.strictObject({ text: z.string(), signature: z.string().optional() }) }),
    z.strictObject({ redactedContent: base64.min(4) }),
  ]),
});
const toolSpec = z.strictObject({
  toolSpec: z.strictObject({
    name: toolName,
    description: z.string().min(1).optional(),
    inputSchema: z.strictObject({ json: z.looseObject({ type: z.literal("object") }) }),
    strict: z.boolean().optional(),
  }),
});
const empty = z.strictObject({});
const request = z.strictObject({
  messages: z.array(
    z.strictObject({
      role: z.enum(["user", "assistant"]),
      content: z.array(z.union([text, image, document, toolUse, toolResult, reasoning, cachePoint])).min(1),
    }),
  ),
  system: z.array(z.union([text, cachePoint])).optional(),
  inferenceConfig: z
    .strictObject({
      maxTokens: z.int().min(1).optional(),
      temperature: z.number().min(0).max(1).optional(),
      topP: z.number().min(0).max(1).optional(),
      stopSequences: z.array(z.string().min(1)).optional(),
    })
    .optional(),
  toolConfig: z
    .strictObject({
      tools: z.array(z.union([toolSpec, cachePoint])).min(1),
      toolChoice: z
        .union([
          z.strictObject({ auto: empty }),
          z.strictObject({ any: empty }),
          z.strictObject({ tool: z.strictObject({ name: toolName }) }),
        ])
        .optional(),
    })
    .optional(),
  guardrailConfig: z.strictObject({ guardrailIdentifier: z.string(), guardrailVersion: z.string() }).optional(),
  outputConfig: z
    .strictObject({
      effort: z.string().optional(),
      textFormat: z
        .strictObject({
          type: z.literal("json_schema"),
          structure: z.strictObject({ jsonSchema: z.strictObject({ schema: z.string() }) }),
        })
        .optional(),
    })
    .optional(),
  additionalModelRequestFields: z.record(z.string(), z.unknown()).optional(),
  additionalModelResponseFieldPaths: z.array(z.string().startsWith("/")).optional(),
});

export type ConverseRequest = z.infer<typeof request>;
type Block = ConverseRequest["messages"][number]["content"][number];

/** Members of the Messages API that the model takes from `additionalModelRequestFields`. */
const modelFields = new Set(["anthropic_beta", "metadata", "thinking", "tool_choice", "tools", "top_k"]);

/** Why Converse refuses a request; undefined: it takes it. */
export function converseRefusal(body: unknown): string | undefined {
  const read = request.safeParse(body);
  if (!read.success) return `1 validation error detected: ${z.prettifyError(read.error)}`;
  const { messages, system = [], toolConfig, additionalModelRequestFields = {} } = read.data;
  const blocks = messages.flatMap(({ content }) => content);
  const unknown = Object.keys(additionalModelRequestFields).find((name) => !modelFields.has(name));
  if (unknown !== undefined)
    return `The model returned the following errors: ${unknown}: Extra inputs are not permitted`;
  if (messages[0]?.role !== "user") return "A conversation must start with a user message.";
  if (messages.some(({ role }, at) => role === messages[at - 1]?.role))
    return "A conversation must alternate between user and assistant roles.";
  const isBlank = (block: object): boolean => "text" in block && String(block.text).trim() === "";
  const inResults = blocks.flatMap((block) => ("toolResult" in block ? block.toolResult.content : []));
  if ([...blocks, ...system, ...inResults].some(isBlank)) return "The text field in the ContentBlock object is blank.";
  const hasTools = blocks.some((block) => "toolUse" in block || "toolResult" in block);
  if (hasTools && !toolConfig)
    return "The toolConfig field must be defined when using toolUse and toolResult content blocks.";
  const lists: (readonly object[])[] = [system, toolConfig?.tools ?? [], ...messages.map(({ content }) => content)];
  const isPoint = (block: object | undefined): boolean => block !== undefined && "cachePoint" in block;
  if (lists.flat().filter(isPoint).length > 4) return "Too many cache points: the maximum is 4.";
  if (lists.some((list) => list.some((block, at) => isPoint(block) && (at === 0 || isPoint(list[at - 1])))))
    return "A cache point must follow content.";
  const names = (toolConfig?.tools ?? []).flatMap((tool) => ("toolSpec" in tool ? [tool.toolSpec.name] : []));
  if (new Set(names).size < names.length) return "Tool names must be unique.";
  const choice = toolConfig?.toolChoice;
  if (choice && "tool" in choice && !names.includes(choice.tool.name)) return "toolChoice names no tool.";
  const documents = [...blocks, ...inResults].flatMap((one) => ("document" in one ? [one.document.name] : []));
  if (new Set(documents).size < documents.length) return "Messages contain duplicate document names.";
  return resultsRefusal(messages);
}

/** Each call is answered in the next message, and nothing else is. */
function resultsRefusal(messages: ConverseRequest["messages"]): string | undefined {
  const idsOf = (content: readonly Block[] = []): string[] =>
    content.flatMap((block) => ("toolUse" in block ? [block.toolUse.toolUseId] : []));
  for (const [at, { content }] of messages.entries()) {
    const called = idsOf(messages[at - 1]?.content).toSorted();
    const answered = content.flatMap((block) => ("toolResult" in block ? [block.toolResult.toolUseId] : [])).toSorted();
    if (called.join() !== answered.join())
      return `Expected toolResult blocks at messages.${at}.content for the following Ids: ${called.join()}`;
  }
  return undefined;
}

export type ConverseBlock =
  | { readonly text: string }
  | { readonly toolUse: { readonly toolUseId: string; readonly name: string; readonly input: object } }
  | { readonly reasoningContent: { readonly reasoningText: { readonly text: string; readonly signature: string } } }
  | { readonly reasoningContent: { readonly redactedContent: string } };

export interface ConverseAnswer {
  readonly content: readonly ConverseBlock[];
  readonly stopReason?: string;
  readonly usage?: object;
  readonly fields?: object;
}

const counts = { inputTokens: 30, outputTokens: 7, totalTokens: 37 };

export function converseBody({ content, stopReason = "end_turn", usage, fields }: ConverseAnswer): string {
  return JSON.stringify({
    output: { message: { role: "assistant", content } },
    stopReason,
    usage: { ...counts, ...usage },
    metrics: { latencyMs: 12 },
    ...(fields && { additionalModelResponseFields: fields }),
  });
}

/** The messages of an event stream with an answer. Each event is padded, as AWS pads them. */
export function converseEvents({ content, stopReason = "end_turn", usage, fields }: ConverseAnswer): Uint8Array[] {
  const events = content.flatMap((block, contentBlockIndex) => {
    const delta = (one: object): [string, object] => ["contentBlockDelta", { contentBlockIndex, delta: one }];
    const halves = (words: string): string[] => [words.slice(0, words.length / 2), words.slice(words.length / 2)];
    const stop: [string, object] = ["contentBlockStop", { contentBlockIndex }];
    if ("text" in block) return [...halves(block.text).map((half) => delta({ text: half })), stop];
    if ("toolUse" in block) {
      const { input, ...start } = block.toolUse;
      const pieces = Object.keys(input).length === 0 ? [""] : ["", ...halves(JSON.stringify(input))];
      const started: [string, object] = ["contentBlockStart", { contentBlockIndex, start: { toolUse: start } }];
      return [started, ...pieces.map((piece) => delta({ toolUse: { input: piece } })), stop];
    }
    const { reasoningContent } = block;
    if ("redactedContent" in reasoningContent) return [delta({ reasoningContent }), stop];
    const { text: thought, signature } = reasoningContent.reasoningText;
    const deltas = [...halves(thought).map((half) => ({ text: half })), { signature }];
    return [...deltas.map((one) => delta({ reasoningContent: one })), stop];
  });
  return [
    ["messageStart", { role: "assistant" }],
    ...events,
    ["messageStop", { stopReason, ...(fields && { additionalModelResponseFields: fields }) }],
    ["metadata", { usage: { ...counts, ...usage }, metrics: { latencyMs: 12 } }],
  ].map(([type, payload]) => converseEvent(String(type), payload as object));
}

export function converseEvent(type: string, payload: object): Uint8Array {
  return eventStreamMessage(
    { ":event-type": type, ":content-type": "application/json", ":message-type": "event" },
    JSON.stringify({ ...payload, p: "abcdefgh" }),
  );
}
