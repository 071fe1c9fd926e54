import { crc32, deflateSync } from "node:zlib";
import { MultipartParser } from "@remix-run/multipart-parser";
import { checkGrammar, invalidRequestOf } from "../../src/engines/llama/preparing/constraint-request.ts";
import { parseGgufHeader } from "../../src/engines/llama/file/gguf-metadata.ts";
import { larkToGbnf } from "../../src/text/formats/grammar/lark-to-expression.ts";
import { regexExpression } from "../../src/text/formats/grammar/regex-to-gbnf.ts";
import { schemaAnswer } from "../../src/text/formats/grammar/call-grammar.ts";
import { Grammar } from "../../src/text/formats/grammar/grammar.ts";
import { ChatTemplate } from "../../src/text/templates/chat-template.ts";
import { BodyCounter } from "../../src/wire/apis/body-counter.ts";
import { SseFrameReader } from "../../src/wire/apis/sse/frame-reader.ts";
import { RepairLog } from "../../src/wire/apis/tolerant/repairs.ts";
import { FailureError } from "../../src/wire/core/failure.ts";
import { imageSize, jpegScans } from "../../src/wire/core/image-size.ts";
import type { JsonSchema } from "../../src/wire/core/message.ts";
import { runSync } from "../../src/wire/core/steps.ts";
import { IncrementalJson } from "../../src/serve/server/incremental-json.ts";
import { readParts } from "../../src/serve/server/read-form.ts";
import { maxZstdSize } from "../../src/serve/server/zstd-size.ts";

/** What reads bytes of strangers. */
export interface FuzzTarget {
  /** Inputs to begin with, written here. */
  readonly seeds: readonly (string | Uint8Array)[];
  /** Words that random changes alone would not find. */
  readonly words: readonly string[];
  /** Reads an input. Throws for what must not happen: another error than a refusal, or two readings that differ. */
  readonly run: (input: Uint8Array) => void;
}

const textOf = (input: Uint8Array): string => new TextDecoder().decode(input);

/** Runs `read`, whose refusals are no finding. */
function refusing(read: () => void, isRefusal: (error: unknown) => boolean): void {
  try {
    read();
  } catch (error) {
    if (!isRefusal(error)) throw error;
  }
}

function same(what: string, a: unknown, b: unknown): void {
  const [one, other] = [JSON.stringify(a), JSON.stringify(b)];
  if (one !== other) throw new Error(`${what} differ: ${one} and ${other}`);
}

/** The value of a text, or that it has none. */
function valueOf(read: () => unknown): unknown {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof FailureError) return "refused";
    throw error;
  }
}

const isInvalidRequest = (error: unknown): boolean => invalidRequestOf(error, "x") instanceof FailureError;

const request = {
  messages: [
    { role: "user", content: "Hi <|im_end|>" },
    { role: "assistant", content: "Hello" },
    { role: "user", content: "Bye" },
  ],
  options: {},
  now: new Date(0),
} as const;

export const targets: Readonly<Record<string, FuzzTarget>> = {
  json: {
    seeds: ['{"a":[1,-2.5e3,true,null,"x\\u00e9\\n"],"__proto__":{"b":""}}', `[${'"y",'.repeat(40)}{}]`, '"\\ud800"'],
    words: ['"', "\\u", "__proto__", "e+", "null", "{}", "[]"],
    run(input) {
      refusing(
        () => new BodyCounter().add(input),
        (error) => error instanceof FailureError,
      );
      const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
      const whole = valueOf(() => {
        try {
          return JSON.parse(strict.decode(input)) as unknown;
        } catch (error) {
          if (error instanceof TypeError) throw new SyntaxError("not UTF-8", { cause: error });
          throw error;
        }
      });
      for (const chunkSize of [1, 7, 64])
        same(
          `JSON.parse and chunks of ${chunkSize}`,
          whole,
          valueOf(() => runSync(new IncrementalJson(input, chunkSize).read())),
        );
    },
  },
  sse: {
    seeds: [
      'data: {"a":1}\n\ndata: [DONE]\n\n',
      ": ping\r\n\r\nevent: error\rdata: x\rdata: y\r\r",
      '{"error":{"message":"no"}}\n<html>\n</html>',
      "\ufeffdata:a\nid: 1\nretry: 5\n\n",
    ],
    words: ["data:", "event:", "\r\n", "\n\n", "[DONE]", "error:", "{", "\ufeff"],
    run(input) {
      const frames = (pieces: readonly Uint8Array[]): unknown => {
        const read: unknown[] = [];
        const reader = new SseFrameReader({ frame: (...frame) => read.push(frame) }, new RepairLog());
        for (const piece of pieces) reader.push(piece);
        reader.end();
        return read;
      };
      const half = input.length >> 1;
      const whole = frames([input]);
      same("a stream and its halves", whole, frames([input.subarray(0, half), input.subarray(half)]));
      if (input.length < 200)
        same("a stream and its bytes", whole, frames([...input].map((byte) => Uint8Array.of(byte))));
    },
  },
  template: {
    seeds: [
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}",
      "{%- set ns = namespace(a=0) -%}{% if tools %}{{ tools | tojson }}{% elif x is defined %}{{ x[1:] ~ 'a' }}{% endif %}",
      "{% macro f(a, b=2) %}{{ a * b }}{% endmacro %}{{ f(3) }}{{ raise_exception('no') }}{{ 'a' * 99 }}",
    ],
    words: [
      "{%",
      "%}",
      "{{",
      "}}",
      "-%}",
      " for ",
      " in ",
      "range(",
      "|",
      "loop.index",
      "namespace(",
      "endfor",
      "messages",
      "**",
      ".",
    ],
    run(input) {
      const template = new ChatTemplate({ source: textOf(input), specialTokens: ["<|im_end|>"] });
      refusing(
        () => void template.render(request),
        (error) => error instanceof FailureError,
      );
    },
  },
  grammar: {
    seeds: [
      'root ::= "a" [b-z]{2,5} (x | y)*\nx ::= "\\x41"\ny ::= .+',
      'start: WORD ("," WORD)*\nWORD: /[a-z]+/',
      "^(?:a|b)[^\\d]{1,3}\\p{L}$",
      '{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"enum":[1,"x"]}},"required":["a"]}',
    ],
    words: [
      "::=",
      "root",
      "start:",
      "{1,}",
      "[^",
      "\\p{",
      "(?:",
      '"$ref"',
      '"#"',
      '"anyOf"',
      '"pattern"',
      '"type"',
      '"format"',
    ],
    run(input) {
      const text = textOf(input);
      refusing(() => checkGrammar(text, 20_000), isInvalidRequest);
      refusing(() => void larkToGbnf(text), isInvalidRequest);
      refusing(() => void new Grammar().toGbnf(regexExpression(text, "anywhere")), isInvalidRequest);
      let schema: unknown;
      try {
        schema = JSON.parse(text);
      } catch {
        return;
      }
      if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return;
      refusing(() => {
        const grammar = new Grammar();
        checkGrammar(grammar.toGbnf(schemaAnswer(grammar, schema as JsonSchema, "schema").root), Infinity);
      }, isInvalidRequest);
    },
  },
  gguf: {
    seeds: [ggufHeader()],
    words: [
      "GGUF",
      "\u0008\u0000\u0000\u0000",
      "\u0009\u0000\u0000\u0000",
      "general.architecture",
      "tokenizer.ggml.tokens",
    ],
    run: (input) =>
      refusing(
        () => void parseGgufHeader(Buffer.from(input), () => true),
        // One sentence of its own.
        (error) => error instanceof Error && error.constructor === Error,
      ),
  },
  multipart: {
    seeds: [
      '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n--b--\r\n',
    ],
    words: ["--b", "\r\n\r\n", "--b--", "Content-Disposition:", 'name="', "filename*=UTF-8''", "Content-Type:"],
    run(input) {
      const limits = { maxHeaderSize: 4096, maxFileSize: 1e6, maxParts: 100, maxTotalSize: 1e6 };
      const read = (size: number): unknown => {
        const members = new Map<string, unknown>();
        return valueOf(() => {
          runSync(readParts(input, new MultipartParser("b", limits), members, size));
          return [...members];
        });
      };
      const whole = read(input.length);
      for (const size of [1, 7, 64]) same(`a form and its steps of ${size} bytes`, whole, read(size));
    },
  },
  image: {
    seeds: [
      png(),
      Uint8Array.of(0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 2, 0, 3, 1, 1, 0x11, 0, 0xff, 0xda, 0, 2, 0xff, 0xd9),
      "GIF89a\u0002\u0000\u0003\u0000",
      "RIFF\u0010\u0000\u0000\u0000WEBPVP8X\u0000\u0000",
    ],
    words: ["\u0089PNG\r\n\u001a\n", "IHDR", "\u00ff\u00c0", "\u00ff\u00da", "GIF87a", "BM", "WEBPVP8 ", "WEBPVP8L"],
    run(input) {
      const size = imageSize(input);
      if (size && !size.every((side) => Number.isInteger(side) && side >= 0))
        throw new Error(`the size is ${size.join(" × ")}`);
      if (!(jpegScans(input) <= input.length)) throw new Error("there are more scans than bytes");
    },
  },
  zstd: {
    // A frame with a raw block; a skippable one; one with a run of 1,000 bytes.
    seeds: [
      Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0, 1, 2, 3),
      Uint8Array.of(0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 7),
      Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x43, 0x1f, 0, 9),
    ],
    words: ["\u0028\u00b5\u002f\u00fd", "\u0050\u002a\u004d\u0018"],
    run(input) {
      const size = maxZstdSize(input, 8 * 2 ** 20);
      // Each block needs three bytes, and has at most 128 KiB.
      if (size !== null && !(size >= 0 && size <= (input.length / 3) * 128 * 1024))
        throw new Error(`the size is ${size}`);
    },
  },
};

function png(): Uint8Array {
  const chunk = (name: string, data: Uint8Array): Buffer => {
    const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.from([0, 0, 0, 2, 0, 0, 0, 1, 8, 2, 0, 0, 0]);
  const pixels = deflateSync(Buffer.alloc(7));
  const magic = Buffer.from("\u0089PNG\r\n\u001a\n", "latin1");
  return Buffer.concat([magic, chunk("IHDR", head), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))]);
}

/** Version 3, one tensor, and a pair of each kind. */
function ggufHeader(): Uint8Array {
  const u32 = (...numbers: number[]): Buffer => Buffer.from(Uint32Array.from(numbers).buffer);
  const u64 = (number: number): Buffer => Buffer.from(BigUint64Array.of(BigInt(number)).buffer);
  const string = (text: string): Buffer => Buffer.concat([u64(text.length), Buffer.from(text)]);
  const pairs = [
    [string("general.architecture"), u32(8), string("llama")],
    [string("llama.block_count"), u32(4), u32(2)],
    [string("tokenizer.ggml.tokens"), u32(9), u32(8), u64(2), string("a"), string("b")],
  ];
  const tensor = [string("token_embd.weight"), u32(2), u64(4), u64(2), u32(0), u64(0)];
  return Buffer.concat([Buffer.from("GGUF"), u32(3), u64(1), u64(pairs.length), ...pairs.flat(), ...tensor]);
}
