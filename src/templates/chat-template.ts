import { Environment, Interpreter, parse, tokenize } from "@huggingface/jinja";
import { FailureError, invalidRequest } from "../generation/failure.ts";
import type { Message, Tool, ToolChoice } from "../generation/message.ts";
import type { TemplateOptions } from "../generation/request.ts";
import { templateMessages, templateTools } from "./conversation.ts";
import type { RenderedPrompt } from "./rendered-prompt.ts";
import { UserText } from "./user-text.ts";

export interface ChatTemplateOptions {
  /** The Jinja source, as in a GGUF's `tokenizer.chat_template`. */
  readonly source: string;
  readonly bosToken?: string;
  readonly eosToken?: string;
  /** The texts of the model's control tokens: what a client's text must never become. */
  readonly specialTokens: readonly string[];
}

export interface RenderInput {
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly options: TemplateOptions;
  /** The date that the template may print. */
  readonly now: Date;
  readonly documents?: readonly unknown[];
}

/**
 * A model's chat template: messages in, prompt out. Parsed once; `render` may be called any number of times. A template that cannot
 * be parsed fails in `render` (400 with the parser's message), so that a model with a broken one still serves completions.
 */
export class ChatTemplate {
  readonly #options: ChatTemplateOptions;
  readonly #program: ReturnType<typeof parse> | FailureError;

  constructor(options: ChatTemplateOptions) {
    this.#options = options;
    this.#program = parsed(options.source);
  }

  /** Throws `FailureError`: 400 for what the template refuses or cannot render, with the template's own message. */
  render(input: RenderInput): RenderedPrompt {
    const { options } = input;
    const warnings: string[] = [];
    const adds = options.addGenerationPrompt ?? true;
    if (options.continueFinalMessage && adds) {
      throw invalidRequest("continue_final_message needs add_generation_prompt: false.", "continue_final_message");
    }
    const userText = new UserText(this.#options.specialTokens);
    const messages = userText.mark(templateMessages(input.messages, { arguments: "object" }, warnings));
    const tools = input.toolChoice?.type === "none" ? [] : userText.mark(templateTools(input.tools ?? []));
    const variables = {
      ...options.variables,
      messages,
      ...(tools.length > 0 && { tools }),
      ...(input.documents && { documents: input.documents }),
      bos_token: this.#options.bosToken ?? "",
      eos_token: this.#options.eosToken ?? "",
    };
    const open = this.#run({ ...variables, add_generation_prompt: false });
    let text = open;
    let generationPrefix = "";
    if (adds) {
      text = this.#run({ ...variables, add_generation_prompt: true }) + userText.markText(options.responsePrefix ?? "");
      generationPrefix = text.slice(commonLength(open, text));
    }
    const bos = this.#options.bosToken ?? "";
    const startsWithBos = bos !== "" && text.startsWith(bos);
    if (startsWithBos) {
      let start = bos.length;
      while (text.startsWith(bos, start)) start += bos.length;
      text = text.slice(start);
    }
    const spans = userText.split(text);
    return {
      text: spans.map((span) => span.text).join(""),
      spans,
      generationPrefix: userText
        .split(generationPrefix)
        .map((span) => span.text)
        .join(""),
      startsWithBos,
      warnings,
    };
  }

  #run(variables: Readonly<Record<string, unknown>>): string {
    if (this.#program instanceof FailureError) throw this.#program;
    const environment = new Environment();
    for (const [name, value] of Object.entries({ true: true, false: false, none: null, True: true, False: false })) {
      environment.set(name, value);
    }
    environment.set("None", null);
    environment.set("raise_exception", (message: string) => {
      throw new Error(message);
    });
    for (const [name, value] of Object.entries(variables)) environment.set(name, value);
    try {
      return String(new Interpreter(environment).run(this.#program).value);
    } catch (cause) {
      throw templateFailure(cause);
    }
  }
}

function parsed(source: string): ReturnType<typeof parse> | FailureError {
  try {
    return parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true }));
  } catch (cause) {
    return templateFailure(cause);
  }
}

function templateFailure(cause: unknown): FailureError {
  const message = cause instanceof Error ? cause.message : String(cause);
  return new FailureError({
    message,
    status: 400,
    type: "invalid_request_error",
    param: "messages",
    code: null,
    cause,
  });
}

function commonLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return length;
}
