/** The media types of files that models read, by the ending of the name. Source: IANA's registry of media types. */
const byEnding: Readonly<Record<string, string>> = {
  csv: "text/csv",
  gif: "image/gif",
  html: "text/html",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  json: "application/json",
  jsonl: "application/jsonl",
  md: "text/markdown",
  pdf: "application/pdf",
  png: "image/png",
  txt: "text/plain",
  wav: "audio/wav",
  webp: "image/webp",
};

/** The first bytes of files, as characters. Sources: ISO 32000-1, 7.5.2; the PNG, JPEG, GIF and WebP specifications. */
const byBeginning: readonly (readonly [beginning: string, type: string])[] = [
  ["%PDF-", "application/pdf"],
  ["\u0089PNG\r\n", "image/png"],
  ["\u00ff\u00d8\u00ff", "image/jpeg"],
  ["GIF8", "image/gif"],
];

/** The media type of an uploaded file: as its client declares it, by its first bytes, or by its name. */
export function mediaTypeOf(name: string, declared: string | undefined, bytes: Uint8Array): string {
  const type = (declared ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  if (/^[a-z]+\/[\w.+-]{1,100}$/.test(type) && type !== "application/octet-stream") return type;
  const beginning = String.fromCharCode(...bytes.subarray(0, 8));
  const found = byBeginning.find(([text]) => beginning.startsWith(text));
  const ending = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
  return found?.[1] ?? (Object.hasOwn(byEnding, ending) ? byEnding[ending] : undefined) ?? "application/octet-stream";
}
