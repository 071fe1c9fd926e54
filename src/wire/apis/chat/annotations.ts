import type { Annotation } from "../../core/events.ts";
import type { JsonValue } from "../json-text.ts";

/** Returns a citation as chat has it; none if it names no page. `before`: the characters of the texts before that of the citation. */
export function chatAnnotation({ url, title, start = 0, end = 0 }: Annotation, before: number): JsonValue[] {
  if (url === undefined) return [];
  const citation = { end_index: before + end, start_index: before + start, title: title ?? "", url };
  return [{ type: "url_citation", url_citation: citation }];
}
