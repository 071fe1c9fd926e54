import { expect, test } from "vitest";
import { readEmbeddingsRequest } from "./embeddings.ts";

// The article of null was that of an object: "but got a object instead".
test("an input of null is refused with its type", () => {
  expect(() => readEmbeddingsRequest({ model: "m", input: ["a", null] }, "id")).toThrow(
    "Invalid type for 'input[1]': expected a string or an array of integers, but got null instead.",
  );
});
