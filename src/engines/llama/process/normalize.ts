/** The first `length` numbers of a vector, made one long (Euclid); a zero vector stays what it is. */
export function normalized(vector: Float32Array, length: number = vector.length): Float32Array {
  const cut = vector.subarray(0, length);
  let squares = 0;
  for (const number of cut) squares += number * number;
  const factor = squares > 0 ? 1 / Math.sqrt(squares) : 0;
  return cut.map((number) => number * factor);
}
