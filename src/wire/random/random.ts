/** The random bits that are asked of the system at once: each question costs as much as hundreds of numbers. */
const numbers = new Uint32Array(2048);
let next = numbers.length;

/**
 * Returns a cryptographically secure random number, uniform in [0, 1), with 32 bits. Ids give access to what is stored under them, so
 * they must not be made from `Math.random`: V8's generator can be computed from a few of its results. Source: Web Cryptography, section 10.1.1.
 */
export function random(): number {
  if (next === numbers.length) {
    crypto.getRandomValues(numbers);
    next = 0;
  }
  return (numbers[next++] ?? 0) / 2 ** 32;
}
