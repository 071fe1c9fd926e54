import koffi from "koffi";
import type { Pointer } from "../../src/engines/llama/process/c-api/structs.ts";
import { libraryFile } from "../../src/engines/llama/libraries/library-folders.ts";
import { findMtmd, loadMtmd, type MtmdApi } from "../../src/engines/llama/vision/mtmd-api.ts";

/** Where libmtmd is: `TRUEWIRE_LLAMA_LIBRARIES` names a folder of llama.cpp's libraries; else the optional package. */
export const mtmdFolder = process.env.TRUEWIRE_LLAMA_LIBRARIES;
export const mtmdSource = findMtmd(mtmdFolder);
if (mtmdSource === null)
  console.log(
    `skipped: no libmtmd to encode images with (npm install @fugood/node-llama-${process.platform}-${process.arch}@1.7.15)`,
  );

/** llama.cpp's own answer to a prompt with images, computed by its helper functions in this process. */
export interface OracleAnswer {
  readonly promptTokens: number;
  /** The likeliest tokens, one after another. */
  readonly tokens: readonly number[];
  /** The logits after the prompt. */
  readonly logits: Float32Array;
}

const pointer = "void *";

/** llama.cpp with libmtmd in this process. It decodes by `mtmd_helper_eval_chunks`, as `llama-mtmd-cli` does. */
export class MtmdOracle {
  readonly #api: MtmdApi;
  readonly #functions: Readonly<Record<string, (...values: unknown[]) => unknown>>;

  constructor() {
    if (!mtmdSource) throw new Error("There is no libmtmd.");
    const file = "file" in mtmdSource ? mtmdSource.file : undefined;
    const api = loadMtmd(koffi, mtmdSource, () => {});
    const open = (name: string) => koffi.load(file ?? libraryFile(mtmdFolder ?? "", name) ?? "");
    const [llama, mtmd] = [open("llama"), open("mtmd")];
    const params = koffi.struct({ bytes: koffi.array("uint8_t", 256, "Typed") });
    const batch = koffi.struct({
      n_tokens: "int32_t",
      token: pointer,
      embd: pointer,
      pos: pointer,
      n_seq_id: pointer,
      seq_id: pointer,
      logits: pointer,
    });
    this.#api = api;
    this.#functions = {
      contextParams: llama.func("llama_context_default_params", params, []),
      context: llama.func("llama_init_from_model", pointer, [pointer, params]),
      vocab: llama.func("llama_model_get_vocab", pointer, [pointer]),
      size: llama.func("llama_vocab_n_tokens", "int32_t", [pointer]),
      logits: llama.func("llama_get_logits_ith", pointer, [pointer, "int32_t"]),
      one: llama.func("llama_batch_get_one", batch, [pointer, "int32_t"]),
      decode: llama.func("llama_decode", "int32_t", [pointer, batch]),
      free: llama.func("llama_free", "void", [pointer]),
      evaluate: mtmd.func("mtmd_helper_eval_chunks", "int32_t", [
        pointer,
        pointer,
        pointer,
        "int32_t",
        "int32_t",
        "int32_t",
        "bool",
        pointer,
      ]),
      count: mtmd.func("mtmd_helper_get_n_tokens", "size_t", [pointer]),
    };
  }

  /** `prompt`: with a marker for each image. Decodes `count` tokens after it. */
  answer(
    files: { readonly model: string; readonly mmproj: string },
    prompt: string,
    images: readonly Buffer[],
    count: number,
  ): OracleAnswer {
    const api = this.#api;
    const call = (name: string, ...values: unknown[]): unknown => this.#functions[name]?.(...values);
    const model = api.llama_model_load_from_file(files.model, api.modelParams({})) as Pointer;
    const vision = api.mtmd_init_from_file(
      files.mmproj,
      model,
      api.contextParams({ use_gpu: false, print_timings: false, warmup: false, n_threads: 1 }),
    ) as Pointer;
    const params = call("contextParams") as { bytes: Uint8Array };
    // n_ctx, the first member: 2048.
    params.bytes.set([0, 8, 0, 0]);
    const context = call("context", model, params);
    const size = call("size", call("vocab", model)) as number;
    const bitmaps = images.map(
      (data) =>
        (
          api.mtmd_helper_bitmap_init_from_buf(vision, data, data.length, false, {
            fps_target: 4,
            ffmpeg_bin_dir: null,
            timestamp_interval_ms: 5000,
          }) as { bitmap: bigint }
        ).bitmap,
    );
    const chunks = api.mtmd_input_chunks_init() as Pointer;
    const text = Buffer.from(`${prompt}\0`);
    const address = koffi.alloc("uint8_t", text.length) as bigint;
    new Uint8Array(koffi.view(address, text.length)).set(text);
    const input = Buffer.alloc(32);
    input.writeBigUInt64LE(address, 0);
    // With or without a length, as the encoder finds out; the flags are the same: add_special, parse_special.
    input.writeBigUInt64LE(BigInt(text.length - 1), 8);
    input.set([1, 1], 16);
    if (api.mtmd_tokenize(vision, chunks, input, new BigUint64Array(bitmaps), bitmaps.length) !== 0)
      throw new Error("libmtmd cannot tokenize the prompt");
    if (call("evaluate", vision, context, chunks, 0, 0, 512, true, new Int32Array(1)) !== 0)
      throw new Error("llama.cpp cannot decode the prompt");
    const row = (): Float32Array => koffi.decode(call("logits", context, -1) as bigint, "float", size) as Float32Array;
    const logits = Float32Array.from(row());
    const tokens: number[] = [];
    for (let now: Float32Array = logits; tokens.length < count; now = row()) {
      const next = now.indexOf(Math.max(...now));
      tokens.push(next);
      if (call("decode", context, call("one", new Int32Array([next]), 1)) !== 0) throw new Error("no decode");
    }
    const promptTokens = Number(call("count", chunks));
    call("free", context);
    return { promptTokens, tokens, logits };
  }
}
