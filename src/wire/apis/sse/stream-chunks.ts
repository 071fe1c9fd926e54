/**
 * Iterates over the chunks of a web stream, for runtimes whose streams are not iterable. Returning early cancels the stream.
 */
export async function* streamChunks<Chunk>(stream: ReadableStream<Chunk>): AsyncGenerator<Chunk, undefined> {
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
