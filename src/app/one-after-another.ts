/** The same work, which waits until what was begun earlier is over, however that ended. */
export function oneAfterAnother<T>(work: (input: T) => Promise<void>): (input: T) => Promise<void> {
  let earlier = Promise.resolve();
  return (input) => {
    const result = earlier.then(() => work(input));
    earlier = result.catch(() => {});
    return result;
  };
}
