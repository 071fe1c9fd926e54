/**
 * Merges streams in the order in which their items arrive, each with the index of its stream. No stream is read ahead by more than one item. Throws the first error of a
 * stream. Returning early returns all streams.
 */
export async function* mergeBatches<T>(
  sources: readonly AsyncIterator<T, undefined>[],
): AsyncGenerator<readonly [index: number, item: T]> {
  // A queue with one waiting reader, not Promise.race: each race would add a reaction to the promise of the slowest stream.
  const arrived: { index: number; result: IteratorResult<T, undefined> }[] = [];
  let failure: { reason: unknown } | undefined;
  let wake: () => void = () => {};
  let open = sources.length;

  const pull = (index: number) => {
    sources[index]?.next().then(
      (result) => {
        arrived.push({ index, result });
        wake();
      },
      (reason: unknown) => {
        failure ??= { reason };
        wake();
      },
    );
  };

  try {
    for (const index of sources.keys()) pull(index);
    while (open > 0) {
      const next = arrived.shift();
      if (next === undefined) {
        if (failure) throw failure.reason;
        await new Promise<void>((resolve) => (wake = resolve));
      } else if (next.result.done) {
        open--;
      } else {
        pull(next.index);
        yield [next.index, next.result.value];
      }
    }
  } finally {
    for (const source of sources) source.return?.().catch(() => {});
  }
}
