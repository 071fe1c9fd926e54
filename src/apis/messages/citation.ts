import type { Annotation } from "../../core/events.ts";

/**
 * An annotation as a citation: one that came from this API as it came, any other that names a page as a search result. undefined: there
 * is no form for it.
 */
export function citationOf({
  native,
  url,
  title,
  citedText,
}: Annotation): Readonly<Record<string, unknown>> | undefined {
  if (native?.dialect === "messages") return native.value;
  if (url === undefined) return undefined;
  return {
    type: "web_search_result_location",
    cited_text: citedText ?? "",
    url,
    title: title ?? null,
    encrypted_index: "",
  };
}
