import fc from "fast-check";
import { Histogram as Reference, Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { durationBuckets, firstTokenBuckets, perTokenBuckets, tokenBuckets } from "./buckets.ts";
import { Histogram } from "./histogram.ts";

describe("a histogram's text", () => {
  test("is prom-client's, whatever is observed", async () => {
    const bounds = fc.constantFrom(durationBuckets, firstTokenBuckets, perTokenBuckets, tokenBuckets);
    const value = fc.oneof(fc.double({ min: 0, max: 200, noNaN: true }), fc.nat(), fc.constantFrom(0.01, 1, 81.92));
    const label = fc.string({ unit: "binary", minLength: 1, maxLength: 8 }).filter((text) => !text.includes("\r"));
    await fc.assert(
      fc.asyncProperty(bounds, label, fc.array(value, { minLength: 1 }), async (buckets, model, values) => {
        const registry = new Registry();
        const reference = new Reference({
          name: "h",
          help: "What it is.",
          labelNames: ["model"],
          buckets,
          registers: [registry],
        });
        const histogram = new Histogram("h", "What it is.", buckets);
        const series = histogram.series({ model, key: "" });
        for (const each of values) {
          reference.observe({ model }, each);
          series.observe(each);
        }
        expect(parsed(histogram.text())).toEqual(parsed(await registry.metrics()));
      }),
    );
  });

  test("has no line before the first observation but what it is", () => {
    const histogram = new Histogram("h", "What it is.", [1]);
    histogram.series({ model: "m" });
    expect(histogram.text()).toBe("# HELP h What it is.\n# TYPE h histogram\n");
  });

  test("has cumulative buckets; a value belongs to the bucket that it bounds", () => {
    const histogram = new Histogram("h", "Text.", [1, 2]);
    const series = histogram.series({ model: 'a"\\\n' });
    for (const value of [1, 1.5, 2, 3]) series.observe(value);
    expect(histogram.text().split("\n").slice(2)).toEqual([
      'h_bucket{model="a\\"\\\\\\n",le="1"} 1',
      'h_bucket{model="a\\"\\\\\\n",le="2"} 3',
      'h_bucket{model="a\\"\\\\\\n",le="+Inf"} 4',
      'h_sum{model="a\\"\\\\\\n"} 7.5',
      'h_count{model="a\\"\\\\\\n"} 4',
      "",
    ]);
  });
});

/** Each line, as its name, its labels in any order, and its value. */
function parsed(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) =>
      line.replace(
        /\{(.*)\}/s,
        (_, labels: string) =>
          `{${labels
            .split(/(?<="),/)
            .sort()
            .join()}}`,
      ),
    )
    .sort();
}
