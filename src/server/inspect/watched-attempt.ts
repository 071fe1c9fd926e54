import type { ReceivedAnswer, SentRequest } from "../../generation/inspection.ts";
import type { AskedServer, Header, KeptText, ShownRepair } from "../../inspect/inspected-request.ts";
import { sentenceOfRepair } from "../../wire/tolerant/repairs.ts";
import type { Mask } from "../mask.ts";
import { keptText } from "./kept-text.ts";
import { maskedHeaders } from "./masked-headers.ts";
import { maskedTape } from "./masked-tape.ts";
import type { PackedTexts } from "./packed-texts.ts";
import { rounded } from "./rounded.ts";
import { textBytes } from "./text-bytes.ts";
import { TextTape } from "./text-tape.ts";

export interface WatchedAttemptOptions {
  /** Of each text, in bytes. */
  readonly limit: number;
  readonly packedTexts: PackedTexts;
  readonly mask: Mask;
  /** Milliseconds since the request arrived. */
  readonly now: () => number;
  /** It takes so many bytes more. */
  readonly grow: (bytes: number) => void;
}

type AnswerHeaders = Parameters<ReceivedAnswer["answered"]>[1];

/** One request to another server, and what came back. */
export class WatchedAttempt implements ReceivedAnswer {
  readonly #options: WatchedAttemptOptions;
  readonly #url: string;
  readonly #ms: number;
  readonly #headers: SentRequest["headers"];
  readonly #body: KeptText;
  readonly #repairs: SentRequest["repairs"];
  readonly #answer: TextTape;
  #status: number | undefined;
  #answerHeaders: AnswerHeaders = {};
  #error: string | undefined;

  constructor({ url, headers, body, repairs }: SentRequest, options: WatchedAttemptOptions) {
    const { limit, packedTexts, now, grow } = options;
    this.#options = options;
    this.#url = url;
    this.#ms = now();
    this.#headers = headers;
    this.#body = keptText(body, limit);
    this.#repairs = repairs;
    this.#answer = new TextTape(limit, packedTexts);
    grow(textBytes(this.#body.text) + headerBytes(headers));
  }

  answered(status: number, headers: AnswerHeaders): void {
    this.#status = status;
    this.#answerHeaders = headers;
    this.#options.grow(headerBytes(headers));
  }

  received(text: string): void {
    const { now, grow } = this.#options;
    grow(this.#answer.add(now(), text));
  }

  failed(message: string): void {
    this.#error = message;
  }

  /** No more comes. */
  end(): void {
    this.#answer.end();
  }

  /** Nobody can look at it any more. */
  letGo(): void {
    this.#answer.letGo();
  }

  shown(): AskedServer {
    const { mask } = this.#options;
    const { tape, isChanged } = maskedTape(this.#answer.contents(), mask);
    return {
      url: mask.text(this.#url),
      ms: rounded(this.#ms),
      headers: maskedHeaders(listed(this.#headers), mask),
      body: { ...this.#body, text: mask.text(this.#body.text) },
      ...(this.#status !== undefined && { status: this.#status }),
      response_headers: maskedHeaders(listed(this.#answerHeaders), mask),
      response: tape,
      repairs: this.#repairs.map(({ id, at }): ShownRepair => {
        const sentence = sentenceOfRepair(id) ?? id;
        return isChanged ? { id, sentence } : { id, sentence, at };
      }),
      ...(this.#error !== undefined && { error: mask.text(this.#error) }),
    };
  }
}

function listed(headers: AnswerHeaders): Header[] {
  return Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().map((one): Header => [name, one]));
}

function headerBytes(headers: AnswerHeaders): number {
  let bytes = 0;
  for (const name in headers) {
    const value = headers[name] ?? "";
    if (typeof value === "string") bytes += textBytes(name) + textBytes(value);
    else for (const one of value) bytes += textBytes(name) + textBytes(one);
  }
  return bytes;
}
