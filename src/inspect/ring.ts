/** One thing in a ring, with what it takes. */
export interface RingPlace<T> {
  readonly value: T;
  /** In bytes, as counted so far. */
  readonly bytes: number;
}

interface Place<T> extends RingPlace<T> {
  bytes: number;
  isGone: boolean;
}

/** Keeps the newest things, as many as have room: they may grow, and the oldest go first. */
export class Ring<T> {
  readonly maxBytes: number;
  /** The oldest first. */
  readonly #places = new Set<Place<T>>();
  #bytes = 0;
  #dropped = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** What all take together; at most `maxBytes`. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How many had to go. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Takes a thing in, which takes no room yet. */
  add(value: T): RingPlace<T> {
    const place: Place<T> = { value, bytes: 0, isGone: false };
    this.#places.add(place);
    return place;
  }

  /** The thing takes so many bytes more (below 0: less). One that is gone takes none. */
  grow(place: RingPlace<T>, bytes: number): void {
    const grown = place as Place<T>;
    if (grown.isGone) return;
    grown.bytes += bytes;
    this.#bytes += bytes;
    for (const oldest of this.#places) {
      if (this.#bytes <= this.maxBytes) return;
      this.#drop(oldest);
    }
  }

  /** The oldest first. */
  *values(): Generator<T> {
    for (const { value } of this.#places) yield value;
  }

  #drop(place: Place<T>): void {
    this.#places.delete(place);
    place.isGone = true;
    this.#bytes -= place.bytes;
    this.#dropped++;
  }
}
