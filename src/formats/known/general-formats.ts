import type { ObjectCall, PlainFormat } from "../format.ts";
import { functionTag, think, usualKeys } from "./shared.ts";

/** JSON as tabbyAPI asks for it: flat or nested, one object or an array, in a fence or not, anywhere in the text. */
const oneObject: ObjectCall = {
  form: "object",
  bare: "anywhere",
  list: "one",
  fence: true,
  ...usualKeys,
  argumentsRequired: true,
  id: "id",
  nested: "function",
};
const arrayOfObjects: ObjectCall = { ...oneObject, list: "array" };

/** Formats to choose by name for a model of which nothing better is known. */
export const generalFormats: readonly PlainFormat[] = [
  { kind: "plain", id: "json", reasoning: think, calls: [arrayOfObjects, oneObject] },
  {
    kind: "plain",
    id: "auto",
    reasoning: think,
    section: { open: ["<tool_call>", "<|python_tag|>"], close: ["</tool_call>"], perCall: true },
    calls: [oneObject, arrayOfObjects, functionTag],
  },
];
