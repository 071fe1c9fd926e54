import { outsideImage, type PlacedImage } from "../../vision/prompt-images.ts";
import type { NativeModel } from "../c-api/native-model.ts";
import type { Sequence } from "../prompt-cache/sequence.ts";

/** The tokens of a task in a batch. */
export interface TokenChunk {
  readonly tokens: readonly number[];
  /** The number of tokens at the end of the chunk whose logits are needed. */
  readonly outputs: number;
}

/** Rows of an image in a batch of their own. */
export interface RowChunk extends TokenChunk {
  readonly rows: Float32Array;
  /** The positions of the rows, as `BatchRows` has them. */
  readonly positions: Int32Array;
  readonly nonCausal: boolean;
}

/** What the images of a model share. */
export interface RowEnvironment {
  readonly model: Pick<NativeModel, "rowLength">;
  /** Returns the rows of an image, as long as they are wanted. Absent if the model does not take images. */
  readonly rowsOf?: ((image: PlacedImage["image"], isWanted: () => boolean) => Promise<Float32Array>) | undefined;
  /** Rows that a task waits for have arrived, or cannot be computed. */
  readonly onRows?: (() => void) | undefined;
}

/** The images of a prompt, and the rows of the one that is decoded next, which another process computes. */
export class ImageRows {
  /** Why the next image cannot be decoded. */
  failure: unknown;
  readonly #environment: RowEnvironment;
  readonly #images: readonly PlacedImage[];
  readonly #isCancelled: () => boolean;
  #next: { readonly image: PlacedImage; readonly rows: Float32Array | undefined } | undefined;

  constructor(environment: RowEnvironment, images: readonly PlacedImage[], isCancelled: () => boolean) {
    this.#environment = environment;
    this.#images = images;
    this.#isCancelled = isCancelled;
  }

  /** The first image that a sequence of this length does not hold completely. */
  after(length: number): PlacedImage | undefined {
    return this.#images.find(({ start, count }) => start + count > length);
  }

  /** Whether rows of an image follow a sequence of this length. */
  isAt(length: number): boolean {
    return this.#images.length > 0 && this.after(length)?.start === this.outside(length);
  }

  /** The last of these positions that is not inside an image. */
  outside(position: number): number {
    return outsideImage(position, this.#images);
  }

  get areThere(): boolean {
    return this.#next?.rows !== undefined;
  }

  /** Requests the rows of the image after a sequence of this length. */
  load(length: number): void {
    const { rowsOf, onRows } = this.#environment;
    const image = this.after(length);
    if (!image || !rowsOf || this.#next?.image === image) return;
    this.#next = { image, rows: undefined };
    const isWanted = (): boolean => this.#next?.image === image && !this.#isCancelled();
    rowsOf(image.image, isWanted)
      .then(
        (rows) => {
          if (isWanted()) this.#next = { image, rows };
        },
        (error: unknown) => {
          if (isWanted()) this.failure = error;
        },
      )
      .finally(() => onRows?.());
  }

  /** The rows that were requested are not wanted any longer. */
  drop(): void {
    this.#next = undefined;
  }

  /**
   * The next rows for a sequence that is at an image: at most `max`, or `maxCausal` if they do not attend to later ones. `prompt`: the rows
   * as the prompt has them, and what follows.
   */
  chunk(
    sequence: Pick<Sequence, "length" | "nextPosition">,
    prompt: readonly number[],
    { max, maxCausal }: { readonly max: number; readonly maxCausal: number },
  ): RowChunk {
    const { image, rows } = this.#next ?? {};
    if (!image || !rows) throw new Error("The rows of the image are not there.");
    const from = sequence.length;
    const offset = from - image.start;
    const count = Math.min(image.nonCausal ? max : Math.max(1, maxCausal), image.count - offset);
    const { rowLength } = this.#environment.model;
    const first = image.firstRow + offset;
    return {
      tokens: prompt.slice(from, from + count),
      outputs: from + count === prompt.length ? 1 : 0,
      rows: rows.subarray(first * rowLength, (first + count) * rowLength),
      positions: rowPositions(image, { offset, count, next: sequence.nextPosition }),
      nonCausal: image.nonCausal,
    };
  }
}

/** The positions of `count` rows of an image from `offset` on. `next`: the position of the sequence. */
function rowPositions(
  { count: all, mrope }: PlacedImage,
  { offset, count, next }: { readonly offset: number; readonly count: number; readonly next: number },
): Int32Array {
  if (!mrope) return Int32Array.from({ length: count }, (_, at) => next + at);
  const positions = new Int32Array(4 * count);
  for (let dimension = 0; dimension < 4; dimension++)
    for (let at = 0; at < count; at++) {
      const row = dimension * all + offset + at;
      positions[dimension * count + at] = (mrope.at[row] ?? 0) + (mrope.moves[row] === 1 ? next : 0);
    }
  return positions;
}
