import type { LlamaSettings } from "../../options.ts";
import type { LlamaApi } from "./llama-api.ts";
import type { Koffi, ModelParams, Pointer } from "./structs.ts";

export interface GpuPlacement {
  /** Layers on a GPU; −1 for all, 0 to use no GPU. */
  readonly gpuLayers: number;
  /** The distribution over several GPUs. */
  readonly placement?: Pick<LlamaSettings, "splitMode" | "tensorSplit" | "mainGpu">;
}

export interface NativeModelOptions extends GpuPlacement {
  /** Read the weights into memory of this process, rather than map their file. Weights that are converted are always read. */
  readonly readsWeights?: boolean;
  readonly onProgress?: (fraction: number) => void;
}

/** The tokens that structure texts; `null` for each that the model does not have. */
export interface StructuralTokens {
  readonly bos: number | null;
  readonly eos: number | null;
  readonly eot: number | null;
  readonly sep: number | null;
  /** The tokens of fill-in-the-middle prompts. */
  readonly prefix: number | null;
  readonly suffix: number | null;
  readonly middle: number | null;
}

/** The tokens that a tokenizer adds before and after a text. */
export interface AddedTokens {
  readonly before: readonly number[];
  readonly after: readonly number[];
}

/** llama.h, `llama_load_mode`. By default the file is mapped. */
const loadMode = { none: 0 } as const;

/** Initial size of the buffer for the text of a token, in bytes. */
const tokenBufferBytes = 256;

/** A loaded model: its vocabulary, its tokenizer and its metadata. It lives as long as its process. */
export class NativeModel {
  readonly api: LlamaApi;
  readonly pointer: Pointer;
  readonly vocab: Pointer;
  readonly vocabularySize: number;
  readonly tokens: StructuralTokens;
  readonly #tokenBuffer = new Uint8Array(tokenBufferBytes);
  #addedTokens: AddedTokens | undefined;

  /** Throws an Error with llama.cpp's reason. */
  constructor(api: LlamaApi, path: string, { onProgress, readsWeights, ...placement }: NativeModelOptions) {
    const { koffi } = api;
    api.takeError();
    const { params, free } = gpuModelParams(api, placement);
    /** `canContinue` is called before the first weight is read. */
    const load = (members: Partial<ModelParams>, canContinue: () => boolean): Pointer => {
      const report = (fraction: number): boolean => {
        if (!canContinue()) return false;
        onProgress?.(fraction);
        return true;
      };
      const progress = koffi.register(report, koffi.pointer(koffi.proto("bool", ["float", "void *"])));
      const loaded = api.llama_model_load_from_file(path, { ...params, ...members, progress_callback: progress });
      koffi.unregister(progress);
      return loaded;
    };
    // A mapped file stays in memory in addition to weights that are converted to another layout.
    const mayRead = (): boolean => readsWeights === true || api.repacksWeights();
    const unmapped = placement.gpuLayers === 0 ? load({ load_mode: loadMode.none }, mayRead) : null;
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

  /** The size of all tensors in bytes. */
  get size(): number {
    return Number(this.api.llama_model_size(this.pointer));
  }

  /** The size of the sliding window in tokens; 0 if no layer has one. */
  get window(): number {
    return Math.max(0, this.api.llama_model_n_swa(this.pointer));
  }

  /** The model has one state for all tokens of a sequence, which cannot be truncated. */
  get isRecurrent(): boolean {
    return this.api.llama_model_is_recurrent(this.pointer) || this.api.llama_model_is_hybrid(this.pointer);
  }

  /** A part of a sequence's state cannot be truncated anywhere. */
  get needsCheckpoints(): boolean {
    return this.isRecurrent || this.window > 0;
  }

  /** Dimensions of the model's embeddings. */
  get embeddingLength(): number {
    return this.api.llama_model_n_embd_out(this.pointer);
  }

  /** Numbers of a row that the model takes in place of a token. */
  get rowLength(): number {
    return this.api.llama_model_n_embd_inp(this.pointer);
  }

  /** The model has an encoder and no decoder, so that `llama_encode` is called. */
  get onlyEncodes(): boolean {
    return this.api.llama_model_has_encoder(this.pointer) && !this.api.llama_model_has_decoder(this.pointer);
  }

  /** The template of a reranker's input, with `{query}` and `{document}`; `null` if the file has none. */
  get rerankTemplate(): string | null {
    return this.api.llama_model_chat_template(this.pointer, "rerank");
  }

  get chatTemplate(): string | null {
    return this.api.llama_model_chat_template(this.pointer, null);
  }

  /** A value of the file's metadata as text; `null` if the key does not exist. */
  metadata(key: string): string | null {
    const length = this.api.llama_model_meta_val_str(this.pointer, key, null, 0);
    if (length < 0) return null;
    const text = new Uint8Array(length + 1);
    this.api.llama_model_meta_val_str(this.pointer, key, text, text.length);
    return utf8.decode(text.subarray(0, length));
  }

  /** The tokenizer adds the BOS before a text. */
  get addsBos(): boolean {
    return this.api.llama_vocab_get_add_bos(this.vocab);
  }

  /** The tokenizer adds the EOS after a text. */
  get addsEos(): boolean {
    return this.api.llama_vocab_get_add_eos(this.vocab);
  }

  /** The tokenizer adds a SEP after a text, or between two texts. */
  get addsSep(): boolean {
    return this.api.llama_vocab_get_add_sep(this.vocab);
  }

  endsGeneration(token: number): boolean {
    return this.api.llama_vocab_is_eog(this.vocab, token);
  }

  /** An entry of the vocabulary as it is in the file. */
  entry(token: number): string {
    return this.api.llama_vocab_get_text(this.vocab, token);
  }

  /** Flags of an entry (llama.h, `llama_token_attr`). */
  attributes(token: number): number {
    return this.api.llama_vocab_get_attr(this.vocab, token);
  }

  /** The bytes of a token, by llama.cpp's detokenizer. */
  tokenBytes(token: number): Uint8Array {
    let buffer = this.#tokenBuffer;
    let length = this.api.llama_token_to_piece(this.vocab, token, buffer, buffer.length, 0, true);
    if (length < 0) {
      buffer = new Uint8Array(-length);
      length = this.api.llama_token_to_piece(this.vocab, token, buffer, buffer.length, 0, true);
    }
    return buffer.slice(0, Math.max(0, length));
  }

  /**
   * Tokenizes a text. `special`: the text of control tokens is read as these tokens. `whole`: including the tokens that the tokenizer adds
   * to a whole text.
   */
  tokenize(text: string, special: boolean, whole = false): number[] {
    return Array.from(this.#tokens(text, special, whole));
  }

  /** The tokens that the tokenizer adds to a whole text: a BOS, or BERT's [CLS] and [SEP]. */
  get addedTokens(): AddedTokens {
    if (this.#addedTokens) return this.#addedTokens;
    const bare = this.tokenize("a", false);
    const whole = this.tokenize("a", false, true);
    const before = whole.findIndex((_, at) => bare.every((token, offset) => whole[at + offset] === token));
    return (this.#addedTokens = { before: whole.slice(0, before), after: whole.slice(before + bare.length) });
  }

  /** Tokenizes a text that continues another one. SentencePiece adds a space before each text, which would be wrong here. */
  tokenizeContinuation(text: string, special: boolean): number[] {
    const steps = continuation(text);
    let step = steps.next();
    while (step.done !== true) step = steps.next(this.#tokens(step.value, special));
    return Array.from(step.value);
  }

  /** Tokenizes a long text in another thread. `continues`: as `tokenizeContinuation` does. */
  async tokenizeAsync(text: string, special: boolean, continues: boolean): Promise<Int32Array> {
    if (!continues) return this.#tokensAsync(text, special);
    const steps = continuation(text);
    let step = steps.next();
    while (step.done !== true) step = steps.next(await this.#tokensAsync(step.value, special));
    return step.value;
  }

  #tokens(text: string, special: boolean, whole = false): Int32Array {
    const bytes = utf8Bytes.encode(text);
    let tokens = bufferFor(bytes);
    const read = (): number =>
      this.api.llama_tokenize(this.vocab, bytes, bytes.length, tokens, tokens.length, whole, special);
    let count = read();
    if (count < 0) {
      tokens = new Int32Array(-count);
      count = read();
    }
    return tokens.subarray(0, Math.max(0, count));
  }

  async #tokensAsync(text: string, special: boolean): Promise<Int32Array> {
    const { llama_tokenize: call } = this.api;
    const bytes = utf8Bytes.encode(text);
    let tokens = bufferFor(bytes);
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

/** Most tokenizers make at most one token of each byte, and add one at each end. */
function bufferFor(bytes: Uint8Array): Int32Array {
  return new Int32Array(bytes.length + 2);
}

/**
 * Yields texts to tokenize, and returns the tokens of `text` as a continuation: it is tokenized after another text, whose tokens are then
 * removed.
 */
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

/** llama.h, `llama_split_mode`. */
const splitModes = { none: 0, layer: 1, row: 2, tensor: 3 } as const;

/**
 * The parameters that place a model on GPUs. `free` releases their memory after the model is loaded. Throws an Error of one sentence if the
 * split has more GPUs than llama.cpp supports.
 */
export function gpuModelParams(
  api: LlamaApi,
  { gpuLayers, placement = {} }: GpuPlacement,
): { readonly params: ModelParams; readonly free: () => void } {
  const params = { ...api.llama_model_default_params(), n_gpu_layers: gpuLayers };
  if (gpuLayers === 0) {
    // NULL would mean all devices. A split of no devices is not possible.
    const none = emptyList(api.koffi);
    return { params: { ...params, devices: none }, free: () => api.koffi.free(none) };
  }
  const { splitMode, tensorSplit, mainGpu } = placement;
  const shares = tensorSplit && sharesOf(api, tensorSplit);
  return {
    params: {
      ...params,
      ...(splitMode !== undefined && { split_mode: splitModes[splitMode] }),
      ...(mainGpu !== undefined && { main_gpu: mainGpu }),
      ...(shares !== undefined && { tensor_split: shares }),
    },
    free: () => {
      if (shares !== undefined) api.koffi.free(shares);
    },
  };
}

/** A list of pointers that contains only its end, NULL. */
function emptyList(koffi: Koffi): Pointer {
  const address = koffi.alloc("void *", 1) as bigint;
  new BigUint64Array(koffi.view(address, 8))[0] = 0n;
  return address;
}

/** A number for each possible GPU; 0 for those without a share. */
function sharesOf({ koffi, llama_max_devices: maxDevices }: LlamaApi, shares: readonly number[]): bigint {
  const max = Number(maxDevices());
  if (shares.length > max)
    throw new Error(`its tensorSplit has ${shares.length} numbers, but there can be ${max} GPUs at most`);
  const address = koffi.alloc("float", max) as bigint;
  const numbers = new Float32Array(koffi.view(address, max * 4));
  numbers.fill(0);
  numbers.set(shares);
  return address;
}
