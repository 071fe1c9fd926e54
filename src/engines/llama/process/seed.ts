/** Mixes a request's seed and a choice's number to a 32-bit seed: the same pair gives the same answer, another choice another one. */
export function choiceSeed(seed: number, choice: number): number {
  let hash = 0x811c9dc5;
  const low = seed % 0x1_0000_0000;
  for (const word of [low, Math.floor(seed / 0x1_0000_0000), choice]) {
    hash = Math.imul(hash ^ word, 0x85ebca6b);
    hash ^= hash >>> 15;
    hash = Math.imul(hash, 0xc2b2ae35);
    hash ^= hash >>> 13;
  }
  // llama.cpp takes the largest number as "choose a seed yourself".
  return hash >>> 0 === 0xffff_ffff ? 0 : hash >>> 0;
}

/** A seeded source of uniform numbers in [0, 1): a 32-bit Weyl sequence through a mixer, two steps a number for 53 bits. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };
  return () => ((next() >>> 5) * 0x400_0000 + (next() >>> 6)) / 2 ** 53;
}
