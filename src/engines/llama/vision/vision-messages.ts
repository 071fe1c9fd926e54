import type { TakenMedia } from "../../../wire/core/unreadable-part.ts";
import type { MtmdSource } from "./mtmd-api.ts";

/** The messages between a model's process and its encoder's process, by Node's "advanced" serialization, which takes bytes as they are. */
export type ToEncoder =
  | OpenEncoderMessage
  /** Answered by "encoded": with `rows`, the rows of the image are computed. */
  | { readonly type: "encode"; readonly id: number; readonly data: Uint8Array; readonly rows: boolean };

export interface OpenEncoderMessage {
  readonly type: "open";
  readonly source: MtmdSource;
  /** The text model, of which only the vocabulary is loaded. */
  readonly model: string;
  readonly mmproj: string;
  /** The numbers of a row (`llama_model_n_embd_inp`). */
  readonly rowLength: number;
  readonly threads: number;
  readonly gpu: boolean;
}

export type FromEncoder =
  | { readonly type: "ready"; readonly takes: Required<TakenMedia> }
  | { readonly type: "failed"; readonly message: string }
  | { readonly type: "log"; readonly line: string }
  | { readonly type: "encoded"; readonly id: number; readonly image: EncodedImage; readonly rows?: Float32Array }
  /** The image cannot be read. */
  | { readonly type: "refused"; readonly id: number; readonly message: string };

/** What a model gets for an image or a recording: rows in place of tokens, and tokens before, between and after them. */
export interface EncodedImage {
  /** Hash of the pixels and the size; of the samples of a recording. */
  readonly hash: string;
  readonly chunks: readonly ImageChunk[];
}

export type ImageChunk = { readonly tokens: Int32Array } | RowsChunk;

/** Rows that follow each other. */
export interface RowsChunk {
  /** Number of rows. */
  readonly count: number;
  /** By how much the position of what follows increases; not `count` with M-RoPE. */
  readonly positions: number;
  /** The rows attend to later ones, too. */
  readonly nonCausal: boolean;
  /** Positions of M-RoPE: for each of four dimensions those of all rows, relative to the first position where `moves` is 1. */
  readonly mrope?: { readonly at: Int32Array; readonly moves: Uint8Array };
}
