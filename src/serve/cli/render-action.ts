import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { findFormat } from "../../text/formats/find-format.ts";
import type { Format } from "../../text/formats/format.ts";
import { toolInstruction, writeCall } from "../../text/formats/write-call.ts";
import { readChatRequest } from "../../wire/apis/chat/request.ts";
import { ChatTemplate } from "../../text/templates/chat-template.ts";
import type { PromptSpan, RenderedPrompt } from "../../text/templates/rendered-prompt.ts";
import { templateMetadata } from "../../text/templates/template-metadata.ts";
import { isGguf, templateInGguf } from "./gguf-template.ts";

/** The options of `truewire render`, as they are written on the command line. */
export interface RenderOptions {
  readonly template?: string;
  readonly special: readonly string[];
  readonly bos?: string;
  readonly eos?: string;
  readonly spans?: true;
  readonly jsonl?: true;
}

/** Runs `truewire render`. */
export async function render(options: RenderOptions): Promise<void> {
  if (options.jsonl) return await renderLines(options);
  if (options.template === undefined)
    throw new Error("--template FILE is required: a Jinja file, or a GGUF file that holds a template");
  const prompt = rendered(openTemplate(options.template, options), JSON.parse(await text(process.stdin)));
  for (const warning of prompt.warnings) console.error(`truewire: ${warning}`);
  if (options.spans) for (const span of prompt.spans) print(span);
  else process.stdout.write(prompt.text);
}

/** One job per line, one result per line, in order. The result of a line that cannot be rendered has an `error`. */
async function renderLines(options: RenderOptions): Promise<void> {
  const templates = new Map<string, ChatTemplate>();
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    if (line.trim() === "") continue;
    let id: unknown = null;
    try {
      const job = JSON.parse(line.trim()) as RenderJob;
      id = job.id ?? null;
      const file = job.template ?? options.template;
      const key = job.template_source ?? file;
      if (key === undefined) throw new Error("the job needs a template: `template` (a file) or `template_source`");
      let template = templates.get(key);
      if (!template) {
        template =
          job.template_source === undefined
            ? openTemplate(key, options)
            : new ChatTemplate({ source: key, ...tokens(options) });
        templates.set(key, template);
      }
      const { text, generationPrefix, spans, warnings } = rendered(template, job);
      print({
        id,
        prompt: text,
        generation_prefix: generationPrefix,
        ...(options.spans && { spans }),
        ...(warnings.length > 0 && { warnings }),
      });
    } catch (error) {
      print({ id, error: error instanceof Error ? error.message : String(error) });
      process.exitCode = 1;
    }
  }
}

/** A chat completions request with further members: the template, and under `params` switches for it. */
interface RenderJob {
  readonly id?: unknown;
  readonly template?: string;
  readonly template_source?: string;
  readonly params?: {
    readonly enable_thinking?: boolean;
    readonly add_generation_prompt?: boolean;
    /** "reasoning" if the last message's reasoning is still open; any other text if it is closed. */
    readonly continue_final_message?: boolean | string;
  };
}

/** The prompt for a request body, read as the server reads it; with the BOS that the template writes. */
function rendered(template: ChatTemplate, body: unknown): RenderedPrompt {
  const { request } = readChatRequest(requestBody(body), "req_render");
  if (request.prompt.kind !== "chat") throw new Error("expected a chat completions request, with messages");
  const { tools, toolChoice, reasoning } = request;
  const { messages, template: options } = request.prompt;
  const effort = reasoning?.effort === undefined ? {} : { reasoning_effort: reasoning.effort };
  let format: Format | undefined;
  const prompt = template.render({
    messages,
    ...(tools && { tools }),
    ...(toolChoice && { toolChoice }),
    ...(tools && !template.capabilities.tools && { toolInstruction: toolInstruction(tools, toolChoice) }),
    writeCall: (call) => writeCall((format ??= findFormat(template, templateMetadata(template.source))), call),
    options: { ...options, variables: { ...effort, ...options.variables } },
    now: new Date(),
  });
  if (!prompt.startsWithBos) return prompt;
  const bos: PromptSpan = { text: template.bosToken, special: true };
  return { ...prompt, text: bos.text + prompt.text, spans: [bos, ...prompt.spans] };
}

function requestBody(body: unknown): unknown {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return body;
  const { params, id: _id, template: _template, template_source: _source, ...request } = body as RenderJob;
  const { tools, messages } = request as { readonly tools?: unknown; readonly messages?: unknown };
  return {
    model: "template",
    ...request,
    ...(params?.continue_final_message === "reasoning" && { messages: stillThinking(messages) }),
    ...(Array.isArray(tools) && tools.length === 0 && { tools: null }),
    ...(params?.enable_thinking !== undefined && { chat_template_kwargs: { enable_thinking: params.enable_thinking } }),
    ...(params?.add_generation_prompt !== undefined && { add_generation_prompt: params.add_generation_prompt }),
    ...(params?.continue_final_message !== undefined && {
      continue_final_message: Boolean(params.continue_final_message),
    }),
  };
}

/** The same messages, with null as content of the last one. */
function stillThinking(messages: unknown): unknown {
  if (!Array.isArray(messages)) return messages;
  return [...(messages.slice(0, -1) as unknown[]), { ...(messages.at(-1) as object), content: null }];
}

function openTemplate(file: string, options: RenderOptions): ChatTemplate {
  if (!existsSync(file))
    throw new Error(
      `--template ${file}: there is no such file; expected a Jinja file, or a GGUF file that holds a template`,
    );
  if (isGguf(file)) {
    const found = templateInGguf(file);
    return new ChatTemplate({ ...found, specialTokens: [...found.specialTokens, ...options.special] });
  }
  return new ChatTemplate({ source: readFileSync(file, "utf8").replace(/^\uFEFF/, ""), ...tokens(options) });
}

function tokens({ special, bos, eos }: RenderOptions): {
  specialTokens: readonly string[];
  bosToken?: string;
  eosToken?: string;
} {
  return {
    specialTokens: special,
    ...(bos !== undefined && { bosToken: bos }),
    ...(eos !== undefined && { eosToken: eos }),
  };
}

function print(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}
