import type { ReceivedAnswer, SentRequest } from "../../core/inspection.ts";
import type { AskedServer, Header, KeptText, ShownRepair } from "../../inspect/inspected-request.ts";
import { sentenceOfRepair } from "../../apis/tolerant/repairs.ts";
import type { Mask } from "../mask.ts";
import { keptText } from "./kept-text.ts";
import { maskedHeaders } from "./masked-headers.ts";
import { maskedTape } from "./masked-tape.ts";
import { textBytes } from "./text-bytes.ts";
import { TextTape } from "./text-tape.ts";

export interface WatchedAttemptOptions {
  /** Of each text, in bytes. */
  readonly limit: number;
  readonly mask: Mask;
  /** Milliseconds since the request arrived. */
  readonly now: () => number;
  /** It takes so many bytes more. */
  readonly grow: (bytes: number) => void;
}

/** One request to another server, and what came back. */
export class WatchedAttempt implements ReceivedAnswer {
  readonly #options: WatchedAttemptOptions;
  readonly #url: string;
  readonly #ms: number;
  readonly #headers: readonly Header[];
  readonly #body: KeptText;
  readonly #repairs: SentRequest["repairs"];
  readonly #answer: TextTape;
  #status: number | undefined;
  #answerHeaders: readonly Header[] = [];
  #error: string | undefined;

  constructor({ url, headers, body, repairs }: SentRequest, options: WatchedAttemptOptions) {
    const { limit, now, grow } = options;
    this.#options = options;
    this.#url = url;
    this.#ms = now();
    this.#headers = Object.entries(headers);
    this.#body = keptText(body, limit);
    this.#repairs = repairs;
    this.#answer = new TextTape(limit);
    grow(textBytes(this.#body.text) + headerBytes(this.#headers));
  }

  answered(status: number, headers: Parameters<ReceivedAnswer["answered"]>[1]): void {
    this.#status = status;
    this.#answerHeaders = Object.entries(headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one): Header => [name, one]),
    );
    this.#options.grow(headerBytes(this.#answerHeaders));
  }

  received(text: string): void {
    const { now, grow } = this.#options;
    grow(this.#answer.add(now(), text));
  }

  failed(message: string): void {
    this.#error = message;
  }

  shown(): AskedServer {
    const { mask } = this.#options;
    const { tape, isChanged } = maskedTape(this.#answer.contents(), mask);
    return {
      url: mask.text(this.#url),
      ms: Math.round(this.#ms * 100) / 100,
      headers: maskedHeaders(this.#headers, mask),
      body: { ...this.#body, text: mask.text(this.#body.text) },
      ...(this.#status !== undefined && { status: this.#status }),
      response_headers: maskedHeaders(this.#answerHeaders, mask),
      response: tape,
      repairs: this.#repairs.map(({ id, at }): ShownRepair => {
        const sentence = sentenceOfRepair(id) ?? id;
        return isChanged ? { id, sentence } : { id, sentence, at };
      }),
      ...(this.#error !== undefined && { error: mask.text(this.#error) }),
    };
  }
}

function headerBytes(headers: readonly Header[]): number {
  return headers.reduce((sum, [name, value]) => sum + textBytes(name) + textBytes(value), 0);
}
