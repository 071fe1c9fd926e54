/** The events with a number above `after`. Each piece is one or more whole events, whose numbers are 0, 1, 2, … */
export async function* piecesAfter(pieces: AsyncIterable<string>, after: number): AsyncGenerator<string> {
  let next = 0;
  for await (const piece of pieces) {
    if (next > after) {
      yield piece;
      continue;
    }
    let start = 0;
    while (start < piece.length && next <= after) {
      const end = piece.indexOf("\n\n", start);
      // The mark of the end has no number.
      if (end === -1 || piece.startsWith("data: [DONE]", start)) break;
      start = end + 2;
      next++;
    }
    if (start < piece.length) yield piece.slice(start);
  }
}
