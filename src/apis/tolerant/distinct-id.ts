/**
 * Makes an id that `taken` does not contain, and adds it there. Where `make` returns one that is taken, a number is appended: the function
 * of a caller may always return the same id, so calling it until the id is free may never end.
 */
export function distinctId(make: () => string, taken: Set<string>): string {
  const made = make();
  let id = made;
  for (let number = taken.size + 1; taken.has(id); number++) id = `${made}_${number}`;
  taken.add(id);
  return id;
}
