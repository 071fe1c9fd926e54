import type { LlamaApi } from "./llama-api.ts";
import type { ModelParams, Pointer } from "./structs.ts";
import type { GpuSplit } from "../../options.ts";

export interface NativeModelOptions extends GpuPlacement {
  readonly onProgress?: (fraction: number) => void;
}

/** The tokens that structure texts; null: the model has no such token. */
export interface StructuralTokens {
  readonly bos: number | null;
  readonly eos: number | null;
  readonly eot: number | null;
  readonly sep: number | null;
  /** Those of a prompt with a suffix. */
  readonly prefix: number | null;
  readonly suffix: number | null;
  readonly middle: number | null;
}

/** The tokens before and behind a text. */
export interface AddedTokens {
  readonly before: readonly number[];
  readonly after: readonly number[];
}

/** llama.h, `llama_load_mode`: the default maps the file. */
const loadMode = { none: 0 } as const;

/** How much text is made room for at first when llama.cpp writes a text, in bytes. */
const fewBytes = 256;

/** A loaded model: its vocabulary, its tokenizer and its metadata. It lives as long as its process. */
export class NativeModel {
  readonly api: LlamaApi;
  readonly pointer: Pointer;
  readonly vocab: Pointer;
  readonly vocabularySize: number;
  readonly tokens: StructuralTokens;
  readonly #scratch = new Uint8Array(fewBytes);
  #around: AddedTokens | undefined;

  /** Throws an Error with llama.cpp's reason. */
  constructor(api: LlamaApi, path: string, { onProgress, ...placement }: NativeModelOptions) {
    const { koffi } = api;
    api.takeError();
    const { params, free } = gpuModelParams(api, placement);
    /** `continues`: whether to go on, asked before the first weight is read. */
    const load = (members: Partial<ModelParams>, continues: () => boolean): Pointer => {
      const report = (fraction: number): boolean => {
        if (!continues()) return false;
        onProgress?.(fraction);
        return true;
      };
      const progress = koffi.register(report, koffi.pointer(koffi.proto("bool", ["float", "void *"])));
      const loaded = api.llama_model_load_from_file(path, { ...params, ...members, progress_callback: progress });
      koffi.unregister(progress);
      return loaded;
    };
    // A mapped file stays in memory together with the weights that are kept in another layout. So it is mapped only if no weights are.
    const unmapped = placement.gpuLayers === 0 ? load({ load_mode: loadMode.none }, () => api.repacksWeights()) : null;
    if (unmapped === null) api.takeError();
    const pointer = unmapped ?? load({}, () => true);
    free();
    if (pointer === null) throw new Error(api.takeError() ?? "llama.cpp cannot load it");
    this.api = api;
    this.pointer = pointer;
    this.vocab = api.llama_model_get_vocab(pointer);
    this.vocabularySize = api.llama_vocab_n_tokens(this.vocab);
    const known = (token: number): number | null => (token < 0 ? null : token);
    this.tokens = {
      bos: known(api.llama_vocab_bos(this.vocab)),
      eos: known(api.llama_vocab_eos(this.vocab)),
      eot: known(api.llama_vocab_eot(this.vocab)),
      sep: known(api.llama_vocab_sep(this.vocab)),
      prefix: known(api.llama_vocab_fim_pre(this.vocab)),
      suffix: known(api.llama_vocab_fim_suf(this.vocab)),
      middle: known(api.llama_vocab_fim_mid(this.vocab)),
    };
  }

  free(): void {
    this.api.llama_model_free(this.pointer);
  }

  /** Of all tensors, in bytes. */
  get size(): number {
    return Number(this.api.llama_model_size(this.pointer));
  }

  get layers(): number {
    return this.api.llama_model_n_layer(this.pointer);
  }

  /** How far back layers with a sliding window look, in tokens; 0: it has none. */
  get window(): number {
    return Math.max(0, this.api.llama_model_n_swa(this.pointer));
  }

  /** What it knows of a text is one state, which cannot be cut. */
  get isRecurrent(): boolean {
    return this.api.llama_model_is_recurrent(this.pointer) || this.api.llama_model_is_hybrid(this.pointer);
  }

  /** Some of what it knows of a text cannot be cut everywhere. */
  get needsCheckpoints(): boolean {
    return this.isRecurrent || this.window > 0;
  }

  /** Numbers in the vector that it makes of a text. */
  get embeddingLength(): number {
    return this.api.llama_model_n_embd_out(this.pointer);
  }

  /** It has an encoder and no decoder, which `llama_encode` is for. */
  get onlyEncodes(): boolean {
    return this.api.llama_model_has_encoder(this.pointer) && !this.api.llama_model_has_decoder(this.pointer);
  }

  /** How a reranker is told a query and a document, in `{query}` and `{document}`; null: the file does not say. */
  get rerankTemplate(): string | null {
    return this.api.llama_model_chat_template(this.pointer, "rerank");
  }

  get chatTemplate(): string | null {
    return this.api.llama_model_chat_template(this.pointer, null);
  }

  /** A value of the file's metadata as text; null: it has none of this name. */
  metadata(key: string): string | null {
    const length = this.api.llama_model_meta_val_str(this.pointer, key, null, 0);
    if (length < 0) return null;
    const text = new Uint8Array(length + 1);
    this.api.llama_model_meta_val_str(this.pointer, key, text, text.length);
    return utf8.decode(text.subarray(0, length));
  }

  /** The tokenizer puts the BOS before a text, and the EOS behind it. */
  get addsBos(): boolean {
    return this.api.llama_vocab_get_add_bos(this.vocab);
  }

  get addsEos(): boolean {
    return this.api.llama_vocab_get_add_eos(this.vocab);
  }

  /** A SEP stands behind a text, or between two. */
  get addsSep(): boolean {
    return this.api.llama_vocab_get_add_sep(this.vocab);
  }

  endsGeneration(token: number): boolean {
    return this.api.llama_vocab_is_eog(this.vocab, token);
  }

  /** A vocabulary's entry as the file has it. */
  entry(token: number): string {
    return this.api.llama_vocab_get_text(this.vocab, token);
  }

  /** Flags of an entry (llama.h, `llama_token_attr`). */
  attributes(token: number): number {
    return this.api.llama_vocab_get_attr(this.vocab, token);
  }

  /** What a token stands for, as llama.cpp's detokenizer has it. */
  tokenBytes(token: number): Uint8Array {
    let room = this.#scratch;
    let length = this.api.llama_token_to_piece(this.vocab, token, room, room.length, 0, true);
    if (length < 0) {
      room = new Uint8Array(-length);
      length = this.api.llama_token_to_piece(this.vocab, token, room, room.length, 0, true);
    }
    return room.slice(0, Math.max(0, length));
  }

  /**
   * The tokens of a text. `special`: control tokens are read where the text spells them. `whole`: with what the tokenizer puts around a
   * whole text.
   */
  tokenize(text: string, special: boolean, whole = false): number[] {
    return Array.from(this.#tokens(text, special, whole));
  }

  /** What the tokenizer puts around a whole text: a BOS, or BERT's [CLS] and [SEP]. */
  get addedTokens(): AddedTokens {
    if (this.#around) return this.#around;
    const bare = this.tokenize("a", false);
    const whole = this.tokenize("a", false, true);
    const before = whole.findIndex((_, at) => bare.every((token, offset) => whole[at + offset] === token));
    return (this.#around = { before: whole.slice(0, before), after: whole.slice(before + bare.length) });
  }

  /**
   * The tokens of a text that goes on: SentencePiece puts a space in front of each text, which here does not belong there. The text is
   * read behind another one, whose tokens are then left out.
   */
  tokenizeContinuation(text: string, special: boolean): number[] {
    const reading = continuation(text);
    let step = reading.next();
    while (step.done !== true) step = reading.next(this.#tokens(step.value, special));
    return Array.from(step.value);
  }

  /** The tokens of a long text, read in another thread. `continues`: as `tokenizeContinuation` does. */
  async tokenizeAsync(text: string, special: boolean, continues: boolean): Promise<Int32Array> {
    if (!continues) return this.#tokensBeside(text, special);
    const reading = continuation(text);
    let step = reading.next();
    while (step.done !== true) step = reading.next(await this.#tokensBeside(step.value, special));
    return step.value;
  }

  #tokens(text: string, special: boolean, whole = false): Int32Array {
    const bytes = utf8Bytes.encode(text);
    let tokens = roomFor(bytes);
    const read = (): number =>
      this.api.llama_tokenize(this.vocab, bytes, bytes.length, tokens, tokens.length, whole, special);
    let count = read();
    if (count < 0) {
      tokens = new Int32Array(-count);
      count = read();
    }
    return tokens.subarray(0, Math.max(0, count));
  }

  async #tokensBeside(text: string, special: boolean): Promise<Int32Array> {
    const { llama_tokenize: call } = this.api;
    const bytes = utf8Bytes.encode(text);
    let tokens = roomFor(bytes);
    const read = (): Promise<number> =>
      new Promise((resolve, reject) => {
        const done = (error: unknown, count: number): void => (error ? reject(error as Error) : resolve(count));
        call.async(this.vocab, bytes, bytes.length, tokens, tokens.length, false, special, done);
      });
    let count = await read();
    if (count < 0) {
      tokens = new Int32Array(-count);
      count = await read();
    }
    return tokens.subarray(0, Math.max(0, count));
  }
}

/** Most tokenizers make at most one token of each byte, and put one at each end. */
function roomFor(bytes: Uint8Array): Int32Array {
  return new Int32Array(bytes.length + 2);
}

/** Asks for the tokens of texts; with them it finds those of a text that goes on. */
function* continuation(text: string): Generator<string, Int32Array, Int32Array> {
  for (const before of ["\n", "\u0001"]) {
    if (text.startsWith(before)) continue;
    const start = yield before;
    const tokens = yield before + text;
    if (start.length > 0 && start.every((token, at) => tokens[at] === token)) return tokens.subarray(start.length);
  }
  return yield text;
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
const utf8Bytes = new TextEncoder();

export interface GpuPlacement {
  /** Layers on a GPU; −1: all; 0: no GPU is used at all. */
  readonly gpuLayers: number;
  /** How several GPUs share them. */
  readonly split?: GpuSplit;
}

/** llama.h, `llama_split_mode`. */
const splitModes = { none: 0, layer: 1, row: 2, tensor: 3 } as const;

/**
 * The parameters that put a model where it is asked to be, until `free`: llama.cpp copies what it needs of them. Throws an Error of one
 * sentence where more GPUs are named than llama.cpp knows of.
 */
export function gpuModelParams(
  api: LlamaApi,
  { gpuLayers, split = {} }: GpuPlacement,
): { readonly params: ModelParams; readonly free: () => void } {
  const params = { ...api.llama_model_default_params(), n_gpu_layers: gpuLayers };
  if (gpuLayers === 0) {
    // null: all that there are. And of none, nothing can be divided.
    const none = emptyList(api.koffi);
    return { params: { ...params, devices: none }, free: () => api.koffi.free(none) };
  }
  const shares = split.shares && sharesOf(api, split.shares);
  return {
    params: {
      ...params,
      ...(split.mode !== undefined && { split_mode: splitModes[split.mode] }),
      ...(split.mainGpu !== undefined && { main_gpu: split.mainGpu }),
      ...(shares !== undefined && { tensor_split: shares }),
    },
    free: () => {
      if (shares !== undefined) api.koffi.free(shares);
    },
  };
}

/** A list of pointers that ends where it begins. */
function emptyList(koffi: LlamaApi["koffi"]): Pointer {
  const at = koffi.alloc("void *", 1) as bigint;
  new BigUint64Array(koffi.view(at, 8))[0] = 0n;
  return at;
}

/** A number for each GPU that there could be; those that are not named get nothing. */
function sharesOf({ koffi, llama_max_devices: maxDevices }: LlamaApi, shares: readonly number[]): bigint {
  const most = Number(maxDevices());
  if (shares.length > most)
    throw new Error(`its tensorSplit has ${shares.length} numbers, but there can be ${most} GPUs at most`);
  const at = koffi.alloc("float", most) as bigint;
  const numbers = new Float32Array(koffi.view(at, most * 4));
  numbers.fill(0);
  numbers.set(shares);
  return at;
}
