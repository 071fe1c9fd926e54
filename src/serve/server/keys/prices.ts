import type { Usage } from "../../../wire/core/events.ts";
import type { Message } from "../../../wire/core/message.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";
import { FailureError } from "../../../wire/core/failure.ts";
import { matchesAlias } from "../model-directory.ts";
import type { ServedModel } from "../model-directory.ts";

/** What a model costs in US dollars: a million tokens, an image of a prompt, a call of a hosted tool. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Default: `input`. */
  readonly cachedInput?: number | undefined;
  readonly cacheWrite?: number | undefined;
  readonly image?: number | undefined;
  readonly hostedCall?: number | undefined;
}

const free: Price = { input: 0, output: 0 };

/** The prices of models. */
export class PriceList {
  readonly #own: Readonly<Record<string, Price | string>>;
  readonly #file: ReadonlyMap<string, Price>;
  readonly #upstreamNames: ReadonlyMap<string, string>;

  /**
   * `own`: by the names that clients use; a text is `free`, or names an entry of `file`. `upstreamNames`: by names that clients use, those
   * of the models' servers, which the file has.
   */
  constructor(
    own: Readonly<Record<string, Price | string>> = {},
    file: ReadonlyMap<string, Price> = new Map(),
    upstreamNames: ReadonlyMap<string, string> = new Map(),
  ) {
    this.#own = own;
    this.#file = file;
    this.#upstreamNames = upstreamNames;
  }

  /** An entry of the configuration wins over the file, and a whole name over one with `*`. Undefined: the model has no price. */
  of({ info: { id }, engineModel }: ServedModel): Price | undefined {
    const own = this.#own;
    for (const name of [id, engineModel]) {
      const entry = Object.hasOwn(own, name)
        ? own[name]
        : Object.entries(own).find(([pattern]) => pattern.includes("*") && matchesAlias(pattern, name))?.[1];
      if (entry === "free") return free;
      if (entry !== undefined) return typeof entry === "string" ? this.#file.get(entry) : entry;
    }
    return this.#file.get(this.#upstreamNames.get(engineModel) ?? engineModel);
  }
}

/** What a request used in addition to its tokens. */
export interface UsedItems {
  /** Images of the prompt. */
  readonly images: number;
  readonly hostedCalls: number;
}

/** In nanodollars, rounded to a whole number. Each token of the prompt has one price: of a cache, or of the prompt. */
export function costOf(price: Price, usage: Usage, { images, hostedCalls }: UsedItems): number {
  const { promptTokens, completionTokens, promptDetails = {} } = usage;
  const cached = Math.min(promptDetails["cached_tokens"] ?? 0, promptTokens);
  const written = Math.min(promptDetails["cache_write_tokens"] ?? 0, promptTokens - cached);
  const { input, output, cachedInput = input, cacheWrite = input, image = 0, hostedCall = 0 } = price;
  const tokens =
    (promptTokens - cached - written) * input + cached * cachedInput + written * cacheWrite + completionTokens * output;
  return Math.round(tokens * 1e3 + (images * image + hostedCalls * hostedCall) * 1e9);
}

/** The tokens that servers add to the prompt of a conversation. */
const addedTokens = 50;

/**
 * What is taken from budgets before a request runs, in nanodollars: at the dearest price of the prompt, and for an answer as long as it may
 * be. `estimate`: the tokens of the prompt, of four characters each; for money, two characters are a token.
 */
export function costToReserve(price: Price, estimate: number, answerTokens: number, images: number): number {
  const { input, cacheWrite = input } = price;
  const dearest = { ...price, input: Math.max(input, cacheWrite) };
  const usage = { promptTokens: 2 * estimate + addedTokens, completionTokens: answerTokens };
  return costOf(dearest, usage, { images, hostedCalls: 0 });
}

/** The number of images in the prompt of a request. */
export function imagesIn({ prompt }: Pick<GenerationRequest, "prompt">): number {
  if (prompt.kind !== "chat") return 0;
  const ofMessage = ({ content }: Message): number =>
    Array.isArray(content) ? content.filter(({ type }: { readonly type: string }) => type === "image").length : 0;
  return prompt.messages.reduce((sum, message) => sum + ofMessage(message), 0);
}

/** The refusal of a request to a model without a price, where a limit in money holds. `needs`: what has the limit. */
export function noPrice(model: string, needs: string): FailureError {
  return new FailureError({
    kind: "permission",
    status: 403,
    message: `The model '${model}' has no price, and ${needs}. Give it one in prices of the configuration, such as { input: 3, output: 15 }, or free.`,
    param: "model",
    code: "model_without_price",
  });
}
