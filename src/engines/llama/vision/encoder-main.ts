import { createHash } from "node:crypto";
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import koffi from "koffi";
import type { TakenMedia } from "../../../wire/core/unreadable-part.ts";
import { whileWatched } from "../../lifecycle/limit-memory.ts";
import { parseGgufMetadata } from "../file/gguf-metadata.ts";
import type { Pointer } from "../process/c-api/structs.ts";
import { checkImage } from "./check-image.ts";
import { loadMtmd, numbersAt, type MtmdApi } from "./mtmd-api.ts";
import type {
  EncodedImage,
  FromEncoder,
  ImageChunk,
  OpenEncoderMessage,
  RowsChunk,
  ToEncoder,
} from "./vision-messages.ts";

/* The module of the limited process that encodes images with libmtmd, which a model's process starts. */

/** How much memory reading one file may take, in bytes. An image of 64 million pixels takes 200 MB, a progressive JPEG 600 MB. */
const maxReading = 2 * 2 ** 30;
/** mtmd.h, `MTMD_INPUT_CHUNK_TYPE_TEXT`. */
const textChunk = 0;
/** mtmd-helper.h, `mtmd_helper_init_opt`: options of videos. No program to read them is in this folder. */
const noVideo = { fps_target: 4, ffmpeg_bin_dir: "/nonexistent", timestamp_interval_ms: 5000 };
/** A BMP image of two pixels, and what is in it: red, then blue. */
const testImage = Buffer.from(
  "Qk0+AAAAAAAAADYAAAAoAAAAAgAAAAEAAAABABgAAAAAAAgAAAAAAAAAAAAAAAAAAAAAAAAAAAD//wAAAAA=",
  "base64",
);
const testPixels = "2,1,255,0,0,0,0,255";
/** A WAV file with a tenth of a second of silence. */
const testAudio = Buffer.concat([
  Buffer.from("UklGRqQMAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YYAMAAA=", "base64"),
  Buffer.alloc(3200),
]);

let encoder: Encoder | undefined;

process.on("message", (message: ToEncoder) => void take(message));

async function take(message: ToEncoder): Promise<void> {
  if (message.type === "open") return open(message);
  const { id, data, rows } = message;
  try {
    if (!encoder) throw new Error("the encoder is not open");
    await checkImage(data);
    send({ type: "encoded", id, ...encoder.encode(data, rows) });
  } catch (error) {
    send({ type: "refused", id, message: messageOf(error) });
  }
}

function send(message: FromEncoder): void {
  process.send?.(message);
}

function open(message: OpenEncoderMessage): void {
  try {
    encoder = new Encoder(message, (line) => send({ type: "log", line }));
    send({ type: "ready", takes: encoder.takes });
  } catch (error) {
    send({ type: "failed", message: messageOf(error) });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A projector with the vocabulary of its text model. */
class Encoder {
  readonly #api: MtmdApi;
  readonly #context: Pointer;
  readonly #options: OpenEncoderMessage;
  /** `mtmd_input_text` has the length of the text, as in v0.5.0. */
  readonly #hasTextLength: boolean;
  readonly #isCausal: boolean;
  readonly takes: Required<TakenMedia>;

  /** Throws an Error of one sentence. */
  constructor(options: OpenEncoderMessage, log: (line: string) => void) {
    const { source, model, mmproj, threads, gpu } = options;
    const api = loadMtmd(koffi, source, log);
    this.#api = api;
    this.#options = options;
    this.#isCausal = isCausal(options);
    const text = api.llama_model_load_from_file(model, api.modelParams({ vocab_only: true })) as Pointer;
    if (text === null) throw new Error(`it cannot read the vocabulary of ${model}${reasonIn(api)}`);
    const params = api.contextParams({ use_gpu: gpu, print_timings: false, n_threads: threads, warmup: false });
    this.#context = api.mtmd_init_from_file(mmproj, text, params) as Pointer;
    if (this.#context === null) throw new Error(`it cannot load ${mmproj}${reasonIn(api)}`);
    const images = api.mtmd_support_vision(this.#context) === true;
    const audio = api.mtmd_support_audio(this.#context) === true;
    if (!images && !audio) throw new Error(`${mmproj} has no encoder of images or audio`);
    this.takes = { images, audio };
    this.#hasTextLength = this.#findTextLength();
    if (this.takes.images) this.#proveBitmap();
    this.#proveRows();
  }

  /** Encodes an image file. Without `rows`, it only computes what the model will get. Throws an Error with a reason. */
  encode(data: Uint8Array, rows: boolean): { readonly image: EncodedImage; readonly rows?: Float32Array } {
    const bitmap = limited(() => this.#bitmap(data));
    try {
      return this.#encodeBitmap(bitmap, rows);
    } finally {
      this.#api.mtmd_bitmap_free(bitmap);
    }
  }

  #encodeBitmap(bitmap: Pointer, wantsRows: boolean): { readonly image: EncodedImage; readonly rows?: Float32Array } {
    const api = this.#api;
    const chunks = this.#tokenize(api.marker, this.#hasTextLength ? api.marker.length : undefined, bitmap);
    try {
      const read: ImageChunk[] = [];
      const rows: Float32Array[] = [];
      for (let at = 0; at < Number(api.mtmd_input_chunks_size(chunks)); at++) {
        const chunk = api.mtmd_input_chunks_get(chunks, at) as Pointer;
        if (api.mtmd_input_chunk_get_type(chunk) === textChunk) read.push({ tokens: this.#textTokens(chunk) });
        else {
          const facts = this.#rowsChunk(chunk);
          read.push(facts);
          if (wantsRows) rows.push(this.#rows(chunk, facts.count));
        }
      }
      const image = { hash: this.#hashOf(bitmap), chunks: read };
      return { image, ...(wantsRows && { rows: joined(rows) }) };
    } finally {
      api.mtmd_input_chunks_free(chunks);
    }
  }

  #bitmap(data: Uint8Array): Pointer {
    const { bitmap } = this.#api.mtmd_helper_bitmap_init_from_buf(this.#context, data, data.length, false, noVideo) as {
      readonly bitmap: Pointer;
    };
    if (bitmap === null) throw new Error("it is damaged, or not of a type that is read");
    return bitmap;
  }

  #hashOf(bitmap: Pointer): string {
    const api = this.#api;
    const size = [api.mtmd_bitmap_get_nx(bitmap), api.mtmd_bitmap_get_ny(bitmap)].map(Number);
    const bytes = Number(api.mtmd_bitmap_get_n_bytes(bitmap));
    const pixels = new Uint8Array(api.koffi.view(api.mtmd_bitmap_get_data(bitmap) as bigint, bytes));
    return createHash("sha256")
      .update(`${api.mtmd_bitmap_is_audio(bitmap) === true ? "audio" : size.join("x")}\n`)
      .update(pixels)
      .digest("hex");
  }

  /** Returns chunks, which must be freed. `length`: of the text in bytes; `undefined` if the structure has none. */
  #tokenize(text: string, length: number | undefined, ...bitmaps: readonly Pointer[]): Pointer {
    const api = this.#api;
    const bytes = Buffer.from(`${text}\0`);
    const chunks = api.mtmd_input_chunks_init() as Pointer;
    const address = api.koffi.alloc("uint8_t", bytes.length) as bigint;
    new Uint8Array(api.koffi.view(address, bytes.length)).set(bytes);
    const input = Buffer.alloc(32);
    input.writeBigUInt64LE(address, 0);
    const flags = length === undefined ? 8 : 16;
    if (length !== undefined) input.writeBigUInt64LE(BigInt(length), 8);
    // add_special, parse_special
    input.set([0, 1], flags);
    const code = api.mtmd_tokenize(
      this.#context,
      chunks,
      input,
      new BigUint64Array(bitmaps as bigint[]),
      bitmaps.length,
    );
    api.koffi.free(address);
    if (code === 0) return chunks;
    api.mtmd_input_chunks_free(chunks);
    throw new Error(`the projector cannot take it (${String(code)})${reasonIn(api)}`);
  }

  #textTokens(chunk: Pointer): Int32Array {
    const { koffi: library, ...api } = this.#api;
    const count = Number(api.mtmd_input_chunk_get_n_tokens(chunk));
    const address = api.mtmd_input_chunk_get_tokens_text(chunk, new BigUint64Array(1)) as Pointer;
    return numbersAt(library, address, "int32_t", count) as Int32Array;
  }

  #rowsChunk(chunk: Pointer): RowsChunk {
    const api = this.#api;
    const count = Number(api.mtmd_input_chunk_get_n_tokens(chunk));
    const isMrope = api.mtmd_decode_use_mrope(this.#context) === true;
    return {
      count,
      positions: Number(api.mtmd_input_chunk_get_n_pos(chunk)),
      nonCausal: !this.#isCausal && api.mtmd_decode_use_non_causal(this.#context, chunk) === true,
      ...(isMrope && { mrope: this.#positions(api.mtmd_input_chunk_get_tokens_image(chunk) as Pointer, count) }),
    };
  }

  /** The positions for a first position of 0; those that are not the same for 1 move with it. `tokens`: `null` for a recording. */
  #positions(tokens: Pointer, count: number): NonNullable<RowsChunk["mrope"]> {
    const of = (first: number, row: number): readonly number[] => {
      if (tokens === null) return [0, 0, 0, 0].map(() => first + row);
      const position = this.#api.mtmd_image_tokens_get_decoder_pos(tokens, first, row) as Record<
        "t" | "x" | "y" | "z",
        number
      >;
      // In the order of mtmd-helper.cpp, `set_position_mrope_2d`.
      return [position.t, position.y, position.x, position.z];
    };
    const at = new Int32Array(4 * count);
    const moves = new Uint8Array(4 * count);
    for (let row = 0; row < count; row++) {
      const next = of(1, row);
      for (const [dimension, position] of of(0, row).entries()) {
        at[dimension * count + row] = position;
        moves[dimension * count + row] = next[dimension] === position ? 0 : 1;
      }
    }
    return { at, moves };
  }

  #rows(chunk: Pointer, count: number): Float32Array {
    const api = this.#api;
    const { rowLength } = this.#options;
    api.takeLog();
    const code = api.mtmd_encode_chunk(this.#context, chunk);
    if (code !== 0) throw new Error(`the projector failed (${String(code)})${reasonIn(api)}`);
    const shape = api
      .takeLog()
      .map((line) => /output embedding shape \[(\d+), /.exec(line))
      .findLast(Boolean);
    if (!shape) throw new Error("this version of libmtmd does not report the size of its rows");
    if (Number(shape[1]) !== rowLength)
      throw new Error(
        `the projector belongs to another model: its rows have ${shape[1]} numbers, and the model takes ${rowLength}`,
      );
    return numbersAt(
      api.koffi,
      api.mtmd_get_output_embd(this.#context) as Pointer,
      "float",
      count * rowLength,
    ) as Float32Array;
  }

  /** Proves the layout of `mtmd_input_text`: a length in it shortens the text. */
  #findTextLength(): boolean {
    const text = "a b c d e f g h i j k l";
    const tokens = (length: number | undefined): number => {
      const chunks = this.#tokenize(text, length);
      let count = 0;
      for (let at = 0; at < Number(this.#api.mtmd_input_chunks_size(chunks)); at++)
        count += Number(this.#api.mtmd_input_chunk_get_n_tokens(this.#api.mtmd_input_chunks_get(chunks, at)));
      this.#api.mtmd_input_chunks_free(chunks);
      return count;
    };
    return tokens(1) < tokens(text.length);
  }

  /** Proves the layout of what reads an image: a known one has known pixels. */
  #proveBitmap(): void {
    const api = this.#api;
    const bitmap = this.#bitmap(testImage);
    const size = [api.mtmd_bitmap_get_nx(bitmap), api.mtmd_bitmap_get_ny(bitmap)].map(Number);
    const bytes = Number(api.mtmd_bitmap_get_n_bytes(bitmap));
    const found = [...size, ...new Uint8Array(api.koffi.view(api.mtmd_bitmap_get_data(bitmap) as bigint, bytes))];
    api.mtmd_bitmap_free(bitmap);
    if (found.join() !== testPixels) throw new Error("it reads an image of two pixels in another way than is known");
  }

  /** Encodes a small image, or a short recording, which shows the size of the rows. */
  #proveRows(): void {
    const { rows } = this.encode(this.takes.images ? testImage : testAudio, true);
    if (!rows || rows.length === 0 || rows.some((number) => !Number.isFinite(number)))
      throw new Error("the projector computes what is not a number");
  }
}

/**
 * The rows of Gemma 4 attend to later ones, but not those of E2B and E4B. libmtmd distinguishes them by the length of rows (mtmd.cpp,
 * `mtmd_decode_use_non_causal`), which it does not read with a vocabulary.
 */
function isCausal({ mmproj, rowLength }: OpenEncoderMessage): boolean {
  if (rowLength !== 1536 && rowLength !== 2560) return false;
  const file = openSync(mmproj, "r");
  try {
    const start = Buffer.alloc(2 ** 20);
    const pairs = parseGgufMetadata(start.subarray(0, readSync(file, start)), () => true);
    const type = pairs?.get("clip.projector_type") ?? pairs?.get("clip.vision.projector_type");
    return type === "gemma4v";
  } finally {
    closeSync(file);
  }
}

/** getrlimit(2): `RLIMIT_DATA`, what a process writes to, the same number on all of Linux's architectures; and "no limit". */
const dataLimit = 2;
const unlimited = 2n ** 64n - 1n;

/** Runs a function that reads a file, with a limit on the memory that it takes. Beyond it, the process ends. */
function limited<T>(run: () => T): T {
  if (process.platform !== "linux") return whileWatched(maxReading, run);
  const [, kibibytes] = /^VmData:[ \t]+(\d+)/m.exec(readFileSync("/proc/self/status", "latin1")) ?? [];
  if (kibibytes === undefined) return run();
  const limits = new BigUint64Array(2);
  if (libc().getrlimit(dataLimit, limits) !== 0) return run();
  const [before = unlimited, most = unlimited] = limits;
  const wanted = BigInt(kibibytes) * 1024n + BigInt(maxReading);
  libc().setrlimit(dataLimit, BigUint64Array.of(wanted < before ? wanted : before, most));
  try {
    return run();
  } finally {
    libc().setrlimit(dataLimit, BigUint64Array.of(before, most));
  }
}

type LimitFunction = (resource: number, limits: BigUint64Array) => number;
let loadedLibc: { readonly getrlimit: LimitFunction; readonly setrlimit: LimitFunction } | undefined;

/** These functions are in the process already: with no name, the system looks for them there. */
function libc(): NonNullable<typeof loadedLibc> {
  if (loadedLibc) return loadedLibc;
  const library = koffi.load(null);
  const declared = (name: string): LimitFunction => library.func(name, "int", ["int", "void *"]) as LimitFunction;
  return (loadedLibc = { getrlimit: declared("getrlimit"), setrlimit: declared("setrlimit") });
}

/** The last error of llama.cpp, as the end of a sentence. */
function reasonIn(api: MtmdApi): string {
  const line = api.takeLog().findLast((text) => /error|fail|unable|unknown|mismatch|unsupported/i.test(text));
  return line === undefined ? "" : `: ${line.replace(/^\w+: /, "").replace(/\.$/, "")}`;
}

function joined(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
