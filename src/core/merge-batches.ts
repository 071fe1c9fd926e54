/**
 * Merges several streams as their items come; none runs ahead of the reader by more than one item. Fails with the first that
 * fails; leaving early returns them all.
 */
export async function* mergeBatches<T>(sources: readonly AsyncIterator<T, undefined>[]): AsyncGenerator<T> {
  // A queue with one waiting reader, not Promise.race: racing the same slow promise again for every item of the others would pile
  // up a reaction on it each time.
  const arrived: { index: number; result: IteratorResult<T, undefined> }[] = [];
  let failure: { reason: unknown } | undefined;
  let wake: () => void = () => {};
  let open = sources.length;

  const ask = (index: number) => {
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
    for (const index of sources.keys()) ask(index);
    while (open > 0) {
      const next = arrived.shift();
      if (next === undefined) {
        if (failure) throw failure.reason;
        await new Promise<void>((resolve) => (wake = resolve));
      } else if (next.result.done) {
        open--;
      } else {
        ask(next.index);
        yield next.result.value;
      }
    }
  } finally {
    for (const source of sources) source.return?.().catch(() => {});
  }
}
