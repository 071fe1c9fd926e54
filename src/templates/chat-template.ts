import { askedThinking } from "./asked-thinking.ts";
import { callsOf, partsOf } from "../core/assistant-parts.ts";
import { checkContinuation } from "../core/continued-message.ts";
import { FailureError, invalidRequest } from "../core/failure.ts";
import type { AssistantMessage, Message, Tool, ToolChoice } from "../core/message.ts";
import type { TemplateOptions } from "../core/request.ts";
import { requireText } from "../core/unreadable-part.ts";
import { probeCapabilities, type TemplateCapabilities } from "./capabilities.ts";
import { continuedPrompt } from "./continued-prompt.ts";
import { templateMessages, type WriteCall } from "./conversation.ts";
import { added, addedForAnswer } from "./generation-prompt.ts";
import { toJson } from "./jinja/python-json.ts";
import { PythonTemplate, TemplateRefusal } from "./jinja/python-template.ts";
import { strftime } from "./jinja/strftime.ts";
import { integerValue, runtimeValue } from "./jinja/values.ts";
import type { RenderedPrompt } from "./rendered-prompt.ts";
import { guardedTokens, type GuardedTokens } from "./special-tokens.ts";
import type { TemplateMessage } from "./template-message.ts";
import { templateTools } from "./template-tools.ts";
import { UserText } from "./user-text.ts";

export interface ChatTemplateOptions {
  /** The Jinja source, as in a GGUF's `tokenizer.chat_template`. */
  readonly source: string;
  readonly bosToken?: string;
  readonly eosToken?: string;
  /** The texts of the model's control tokens. A client's text never becomes one of them. */
  readonly specialTokens: readonly string[];
  /**
   * The texts of the vocabulary's user-defined tokens. What users say and tools return never becomes one of those that the template
   * writes itself (`<tool_call>`, `</think>`). Default none.
   */
  readonly markupTokens?: readonly string[];
}

export interface RenderInput {
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
  /** With `none` the template does not see the tools. */
  readonly toolChoice?: ToolChoice;
  readonly options: TemplateOptions;
  /** The date that templates print, in the local time zone. */
  readonly now: Date;
  /** Describes the tools, for templates that do not. It goes into the system message. */
  readonly toolInstruction?: string;
  /** For templates that leave out the calls of earlier turns. Absent, or its result is null: a JSON object with name and arguments. */
  readonly writeCall?: WriteCall;
}

/**
 * A model's chat template: messages in, prompt out. Parsed and tried once; `render` may be called any number of times. A
 * template that cannot be parsed fails in `render` (400 with the parser's message), so that its model still serves completions.
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
   * The prompt for a conversation. Throws `FailureError`, always 400: the template refuses the conversation (with
   * its own message) or cannot render it, options exclude each other, content is not text, a result follows no call.
   */
  render(input: RenderInput): RenderedPrompt {
    checkContinuation(input.messages, input.options);
    requireText(input.messages);
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
    const conversation = templateMessages(messages, {
      wants,
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
      const isOpen = last?.role === "assistant" && callsOf(last).length === 0;
      if (!isOpen) {
        throw invalidRequest(
          "'continue_final_message' needs a last message from the assistant, without tool calls.",
          `${last?.path ?? `messages[${messages.length - 1}]`}.role`,
        );
      }
      const thinks = endsInThought(last);
      const open = { add_generation_prompt: false };
      const render = (shown: readonly TemplateMessage[]): string => run(shown, open);
      const text = continuedPrompt({ conversation, thinks, wants, user, warnings, render });
      const before = withoutFailing(() => run(conversation.slice(0, -1), open)) ?? "";
      return this.#prompt(text, added(before, text), user, warnings);
    }
    if (!addGenerationPrompt) {
      if (responsePrefix !== "") warnings.push("response_prefix was ignored: add_generation_prompt is false.");
      return this.#prompt(run(conversation, { add_generation_prompt: false }), "", user, warnings);
    }
    const prefix = user.markText(responsePrefix);
    const { text, added: opening } = addedForAnswer((more) => run(conversation, more), user.placeMark());
    return this.#prompt(text + prefix, opening + prefix, user, warnings);
  }

  #prompt(rendered: string, prefix: string, user: UserText, warnings: readonly string[]): RenderedPrompt {
    const bos = this.bosToken;
    let start = 0;
    while (bos !== "" && rendered.startsWith(bos, start)) start += bos.length; // oxlint-disable-line no-unmodified-loop-condition
    const marked = rendered.slice(start);
    return {
      text: user.plain(marked),
      spans: user.split(marked),
      generationPrefix: user.plain(prefix),
      startsWithBos: start > 0,
      warnings,
    };
  }

  #run(variables: Readonly<Record<string, unknown>>, now: Date, user: UserText): string {
    if (this.#template instanceof FailureError) throw this.#template;
    return this.#template.render(
      {
        bos_token: this.bosToken,
        eos_token: this.#eos,
        // Firefunction reads these two.
        functions: functionsJson(variables["tools"], user),
        datetime: strftime(now, "%b %d %Y %H:%M:%S"),
        // Llama 3 reads this one; without it, it tells the model a date of 2024.
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

/** The last part of the message is a thought, which may go on. */
function endsInThought(message: AssistantMessage): boolean {
  return partsOf(message).at(-1)?.type === "reasoning";
}

const noSyntax: WriteCall = () => null;

/** A request sets one of `enable_thinking` and `thinking`, or an effort; each template reads one of the first two. */
function thinkingAliases(variables: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const wanted = askedThinking(variables);
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

/** 400 with the template's own message, or with the error in it. */
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
