/**
 * The pieces of a web stream, for runtimes whose streams cannot be iterated. Who stops early gives the stream up; one that failed has
 * nothing to be given up.
 */
export async function* piecesOfStream<Piece>(stream: ReadableStream<Piece>): AsyncGenerator<Piece, undefined> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
