import fc from "fast-check";
import { expect, test } from "vitest";
import { MarkerSet } from "./marker-set.ts";

/** The end of each marker in a text, by looking at every place. */
function endsOf(text: string, markers: readonly string[]): string[] {
  return Array.from({ length: text.length }, (_, i) => {
    const ending = markers.filter((marker) => marker !== "" && text.slice(0, i + 1).endsWith(marker));
    return ending.reduce((longest, marker) => (marker.length > longest.length ? marker : longest), "");
  });
}

test("it finds at each place the longest marker that ends there", () => {
  const letters = (maxLength: number): fc.Arbitrary<string> =>
    fc.string({ unit: fc.constantFrom("a", "b", "c", "é"), maxLength });
  fc.assert(
    fc.property(fc.array(letters(5), { maxLength: 6 }), letters(30), (markers, text) => {
      const set = new MarkerSet(markers);
      let node = 0;
      const found = [...text].map((character) => {
        node = set.step(node, character.charCodeAt(0));
        return set.markers[set.ends[node] ?? -1] ?? "";
      });
      expect(found).toEqual(endsOf(text, markers));
    }),
  );
});

// Each character had a Map of its own, and the queue of nodes was moved for each: 4 MB took two seconds and a gigabyte.
test("a long marker is found", () => {
  const marker = "s".repeat(1_000_000);
  const set = new MarkerSet([marker]);
  let node = 0;
  for (let i = 0; i < marker.length; i++) node = set.step(node, 115);
  expect(set.ends[node]).toBe(0);
});
