import { checkContinuation } from "../../wire/core/request.ts";
import type { TemplateOptions } from "../../wire/core/request.ts";
import { assistantCalls, assistantParts } from "../../wire/core/message.ts";
import type { AssistantMessage, Message, Tool, ToolChoice } from "../../wire/core/message.ts";
import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import { requireReadable, type TakenMedia } from "../../wire/core/unreadable-part.ts";
import {
  afterCommonPrefix,
  renderGenerationPrompt,
  probeCapabilities,
  type TemplateCapabilities,
  type TemplateMessage,
} from "./capabilities.ts";
import { templateMessages, templateTools, type WriteCall } from "./conversation.ts";
import { PythonTemplate, strftime, TemplateRefusal } from "./jinja/python-template.ts";
import { toJson } from "./jinja/python-text.ts";
import { integerValue, runtimeValue } from "./jinja/values.ts";
import type { RenderedMedium, RenderedPrompt } from "./rendered-prompt.ts";
import { type GuardedTokens, guardedTokens, UserText } from "./user-text.ts";

export interface ChatTemplateOptions {
  /** The Jinja source: `tokenizer.chat_template` of a GGUF file. */
  readonly source: string;
  readonly bosToken?: string;
  readonly eosToken?: string;
  /** The texts of the model's control tokens. Client text is never tokenized as one of them. */
  readonly specialTokens: readonly string[];
  /**
   * The texts of the vocabulary's user-defined tokens. User messages and tool results are never tokenized as one of those that the
   * template itself contains (`<tool_call>`, `</think>`). Default none.
   */
  readonly markupTokens?: readonly string[];
}

export interface RenderInput {
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
  /** With `none` the tools are not passed to the template. */
  readonly toolChoice?: ToolChoice;
  readonly options: TemplateOptions;
  /** The current date, which templates print in the local time zone. */
  readonly now: Date;
  /** Describes the tools, for templates that do not. It is added to the system message. */
  readonly toolInstruction?: string;
  /** What the model takes in addition to text. Default: nothing. */
  readonly takes?: TakenMedia;
  /** Added to the refusal of an image: how to get a model that takes images. */
  readonly imageHint?: string;
  /** For templates that omit the calls of earlier turns. Default, also if it returns null: a JSON object with name and arguments. */
  readonly writeCall?: WriteCall;
}

/**
 * A model's chat template: renders messages as a prompt. A template that cannot be parsed fails in `render` (400 with the parser's
 * message), so its model still serves completions.
 */
export class ChatTemplate {
  readonly source: string;
  readonly bosToken: string;
  readonly #eos: string;
  readonly #template: PythonTemplate | FailureError;
  readonly #tokens: GuardedTokens;
  #capabilities: TemplateCapabilities | undefined;

  constructor({ source, bosToken = "", eosToken = "", specialTokens, markupTokens = [] }: ChatTemplateOptions) {
    this.source = source;
    this.bosToken = bosToken;
    this.#eos = eosToken;
    this.#template = parsed(source);
    this.#tokens = guardedTokens(
      specialTokens,
      markupTokens,
      this.#template instanceof PythonTemplate ? this.#template.literals : [],
    );
  }

  get capabilities(): TemplateCapabilities {
    return (this.#capabilities ??= probeCapabilities((messages, variables) => {
      return this.#run({ ...variables, messages }, new Date(0), new UserText(this.#tokens, this.source, []));
    }, this.source));
  }

  /**
   * Renders the prompt of a conversation. Throws `FailureError` (400) if the template rejects the conversation (with its own message) or
   * cannot render it, if options exclude each other, if content is neither text nor a medium that the model takes, or if a tool result follows no call.
   */
  render(input: RenderInput): RenderedPrompt {
    checkContinuation(input.messages, input.options);
    requireReadable(input.messages, input.takes, input.imageHint);
    try {
      return this.#render(input);
    } catch (cause) {
      throw cause instanceof FailureError ? cause : templateFailure(cause);
    }
  }

  #render(input: RenderInput): RenderedPrompt {
    const { messages, tools = [], toolChoice, options, now, toolInstruction, writeCall = noSyntax } = input;
    const warnings: string[] = [];
    const wants = this.capabilities;
    const {
      variables = {},
      documents,
      addGenerationPrompt = true,
      continueFinalMessage = false,
      responsePrefix = "",
    } = options;
    const user = new UserText(this.#tokens, this.source, [messages, tools, documents, variables, responsePrefix]);
    const shownTools = toolChoice?.type === "none" ? [] : templateTools(tools, wants, user);
    const media: RenderedMedium[] = [];
    const conversation = templateMessages(messages, {
      wants,
      markMedium: (part, path) => user.markMedium(media.push({ part, path }) - 1),
      user,
      warnings,
      writeCall,
      toolInstruction: shownTools.length > 0 ? toolInstruction : undefined,
    });
    if (documents !== undefined && documents.length > 0 && !this.source.includes("documents"))
      warnings.push("documents were ignored: the chat template does not use any.");
    const shared = {
      ...thinkingAliases(variables),
      ...user.mark(variables),
      ...(shownTools.length > 0 && { tools: shownTools }),
      ...(documents !== undefined && { documents: user.markForeign(documents) }),
    };
    const run = (shown: readonly TemplateMessage[], more: Readonly<Record<string, unknown>>): string =>
      this.#run({ ...shared, ...more, messages: shown }, now, user);

    if (continueFinalMessage) {
      const last = messages.at(-1);
      const isOpen = last?.role === "assistant" && assistantCalls(last).length === 0;
      if (!isOpen) {
        throw invalidRequest(
          "'continue_final_message' needs a last message from the assistant, without tool calls.",
          `${last?.path ?? `messages[${messages.length - 1}]`}.role`,
        );
      }
      const isReasoning = endsInReasoning(last);
      const open = { add_generation_prompt: false };
      const render = (shown: readonly TemplateMessage[]): string => run(shown, open);
      const text = continuedPrompt({ conversation, isReasoning, wants, user, warnings, render });
      const before = withoutFailing(() => run(conversation.slice(0, -1), open)) ?? "";
      return this.#prompt(text, afterCommonPrefix(before, text), user, { media, warnings });
    }
    if (!addGenerationPrompt) {
      if (responsePrefix !== "") warnings.push("response_prefix was ignored: add_generation_prompt is false.");
      return this.#prompt(run(conversation, { add_generation_prompt: false }), "", user, { media, warnings });
    }
    const prefix = user.markText(responsePrefix);
    const { text, added: opening } = renderGenerationPrompt((more) => run(conversation, more), user.placeMark());
    return this.#prompt(text + prefix, opening + prefix, user, { media, warnings });
  }

  #prompt(
    rendered: string,
    prefix: string,
    user: UserText,
    more: Pick<RenderedPrompt, "media" | "warnings">,
  ): RenderedPrompt {
    const bos = this.bosToken;
    let start = 0;
    while (bos !== "" && rendered.startsWith(bos, start)) start += bos.length; // oxlint-disable-line no-unmodified-loop-condition
    const marked = rendered.slice(start);
    return {
      text: user.plain(marked),
      spans: user.split(marked),
      generationPrefix: user.plain(prefix),
      startsWithBos: start > 0,
      ...more,
    };
  }

  #run(variables: Readonly<Record<string, unknown>>, now: Date, user: UserText): string {
    if (this.#template instanceof FailureError) throw this.#template;
    return this.#template.render(
      {
        bos_token: this.bosToken,
        eos_token: this.#eos,
        // Used by Firefunction.
        functions: functionsJson(variables["tools"], user),
        datetime: strftime(now, "%b %d %Y %H:%M:%S"),
        // Used by Llama 3, whose default is a date of 2024.
        date_string: strftime(now, "%d %b %Y"),
        ...variables,
      },
      now,
      user,
    );
  }
}

function parsed(source: string): PythonTemplate | FailureError {
  try {
    return new PythonTemplate(source);
  } catch (cause) {
    return templateFailure(cause);
  }
}

/** The last part of the message is reasoning, which may be incomplete. */
function endsInReasoning(message: AssistantMessage): boolean {
  return assistantParts(message).at(-1)?.type === "reasoning";
}

const noSyntax: WriteCall = () => null;

/** A request sets `enable_thinking`, `thinking` or an effort; each template reads one of the first two. */
function thinkingAliases(variables: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const wanted = requestedThinking(variables);
  return wanted === undefined ? {} : { enable_thinking: wanted, thinking: wanted };
}

function functionsJson(tools: unknown, user: UserText): string {
  const functions = Array.isArray(tools) ? tools.map((tool: { readonly function: unknown }) => tool.function) : [];
  return toJson(runtimeValue(functions), [integerValue(4)], user);
}

function withoutFailing<T>(attempt: () => T): T | null {
  try {
    return attempt();
  } catch {
    return null;
  }
}

/** 400 with the template's own message, or with the message of the error in it. */
function templateFailure(cause: unknown): FailureError {
  const detail = cause instanceof Error ? cause.message : String(cause);
  const message =
    cause instanceof TemplateRefusal ? detail : `The chat template cannot render this conversation: ${detail}`;
  return new FailureError({
    message,
    status: 400,
    kind: "invalid-request",
    param: "messages",
    code: null,
    cause,
  });
}

interface Continuation {
  /** The last message is from the assistant. */
  readonly conversation: readonly TemplateMessage[];
  /** The last message has reasoning and no content, not even an empty one. */
  readonly isReasoning: boolean;
  readonly wants: TemplateCapabilities;
  readonly user: UserText;
  readonly warnings: string[];
  render(conversation: readonly TemplateMessage[]): string;
}

/**
 * Returns the prompt up to the end of the last message's text, including trailing white space. A mark after that text shows where to cut
 * the rendered text. If the template omits the message's reasoning, it is added in the template's own tags, as the model would write it.
 */
function continuedPrompt(continuation: Continuation): string {
  const { conversation, isReasoning, wants, user, warnings } = continuation;
  const last = conversation.at(-1) ?? { role: "assistant" };
  const { [reasoningMember(last)]: reasoning, ...others } = last;
  const silent: TemplateMessage = { ...others, role: last.role };
  const place = user.placeMark();
  const upTo = (message: TemplateMessage): string | null => {
    const rendered = continuation.render([...conversation.slice(0, -1), message]);
    const end = rendered.lastIndexOf(place);
    return end === -1 ? null : rendered.slice(0, end);
  };
  const member = isReasoning && !Array.isArray(last["content"]) ? reasoningMember(last) : "content";
  const whole = upTo({ ...last, [member]: withEnd(last[member], place) });
  const header = (): string => upTo({ ...silent, content: place }) ?? failLeftOut();
  if (typeof reasoning !== "string") return whole ?? failLeftOut();

  if (isReasoning) {
    if (whole !== null) return whole;
    if (wants.reasoningTags !== null) return header() + wants.reasoningTags.open + reasoning;
    throw invalidRequest(
      "The model's chat template knows no reasoning, so a message of the assistant without content cannot be continued.",
      `messages[${conversation.length - 1}].content`,
    );
  }
  const hasReasoning = whole !== null && whole !== upTo({ ...silent, content: withEnd(last["content"], place) });
  if (hasReasoning) return whole;
  if (wants.reasoningTags !== null) {
    return `${header()}${wants.reasoningTags.open}${reasoning}${wants.reasoningTags.close}${contentText(last["content"])}`;
  }
  warnings.push("The chat template knows no reasoning: the last message is continued without it.");
  return whole ?? failLeftOut();
}

function reasoningMember(message: TemplateMessage): string {
  return (
    ["reasoning_content", "reasoning", "thinking", "thought"].find((name) => name in message) ?? "reasoning_content"
  );
}

/** Appends `end` to a text, or to the last text of a list of parts. */
function withEnd(content: unknown, end: string): unknown {
  if (!Array.isArray(content)) return `${typeof content === "string" ? content : ""}${end}`;
  const last = content.at(-1) as Readonly<Record<string, unknown>>;
  const member = last["type"] === "thinking" ? "thinking" : "text";
  return [...(content.slice(0, -1) as unknown[]), { ...last, [member]: `${String(last[member])}${end}` }];
}

/** Returns a text, or the texts of a list of parts. */
function contentText(content: unknown): string {
  if (!Array.isArray(content)) return String(content);
  return (content as readonly { readonly text?: string }[]).map(({ text = "" }) => text).join("");
}

function failLeftOut(): never {
  throw new Error("it leaves the last message out, so that it cannot be continued");
}

/**
 * Whether the template variables of a request turn thinking on; undefined if they do not specify it. Templates read `enable_thinking` or
 * `thinking`. An effort also sets the switch, for templates that do not support efforts.
 */
export function requestedThinking(variables: Readonly<Record<string, unknown>>): boolean | undefined {
  const { enable_thinking: enabled, thinking, reasoning_effort: effort } = variables;
  const requested = enabled ?? thinking ?? thinkingOfEffort(effort);
  return typeof requested === "boolean" ? requested : undefined;
}

/** With `minimal`, the template decides. */
function thinkingOfEffort(effort: unknown): boolean | undefined {
  if (typeof effort !== "string" || effort === "minimal") return undefined;
  return effort !== "none";
}
