import type { Format } from "../../../formats/format.ts";

/** Formats that came, by their JSON. A model has one, and a second for requests with tools that its template does not know. */
const formats = new Map<string, Format>();
const mostFormats = 8;

/**
 * A format comes as JSON with every request. Gives the same object for the same description, so that what is compiled of it (markers, mostly)
 * is compiled once and not for every answer.
 */
export function sameFormat(format: Format): Format {
  const json = JSON.stringify(format);
  let known = formats.get(json);
  if (known) return known;
  if (formats.size === mostFormats) formats.clear();
  formats.set(json, (known = format));
  return known;
}
