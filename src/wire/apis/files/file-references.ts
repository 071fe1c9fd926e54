import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

/** The data of a file for a request that names it. */
export interface FileData {
  readonly name: string;
  /** The media type. */
  readonly type: string;
  readonly base64: string;
  /** Present if the file is a text. */
  readonly text?: string | undefined;
}

/** Lists of content in lists of content: a result of a tool in a message. */
const maxDepth = 3;

/**
 * The ids of the files that a request names, each as often as it is named: `file.file_id` (chat), `file_id` of `input_file` and `input_image`
 * (Responses), and `source` of type `file` (Messages). `body`: JSON of any shape.
 */
export function fileIdsIn(body: unknown): readonly string[] {
  const ids: string[] = [];
  if (isObject(body)) for (const list of [body["messages"], body["input"]]) collect(list, ids, 0);
  return ids;
}

function collect(list: unknown, ids: string[], depth: number): void {
  if (!Array.isArray(list)) return;
  for (const item of list as readonly unknown[]) {
    if (!isObject(item)) continue;
    const id = fileIdOf(item);
    if (id !== undefined) ids.push(id);
    if (depth === maxDepth) continue;
    collect(item["content"], ids, depth + 1);
    collect(item["output"], ids, depth + 1);
  }
}

/** Returns the request with the data of `files` in place of their ids. Other ids are left. Nothing is changed in `body`. */
export function withFiles(body: unknown, files: ReadonlyMap<string, FileData>): unknown {
  if (!isObject(body)) return body;
  return {
    ...body,
    ...(Array.isArray(body["messages"]) && { messages: filled(body["messages"], files, 0) }),
    ...(Array.isArray(body["input"]) && { input: filled(body["input"], files, 0) }),
  };
}

function filled(list: readonly unknown[], files: ReadonlyMap<string, FileData>, depth: number): readonly unknown[] {
  return list.map((item) => {
    if (!isObject(item)) return item;
    const file = files.get(fileIdOf(item) ?? "");
    if (file) return partWithData(item, file);
    if (depth === maxDepth) return item;
    const { content, output } = item;
    if (!Array.isArray(content) && !Array.isArray(output)) return item;
    return {
      ...item,
      ...(Array.isArray(content) && { content: filled(content, files, depth + 1) }),
      ...(Array.isArray(output) && { output: filled(output, files, depth + 1) }),
    };
  });
}

function fileIdOf({ type, file, file_id: id, source }: JsonObject): string | undefined {
  const named =
    type === "file" && isObject(file) && file["file_data"] === undefined
      ? file["file_id"]
      : type === "input_file" || type === "input_image"
        ? id
        : isObject(source) && source["type"] === "file"
          ? source["file_id"]
          : undefined;
  return typeof named === "string" && named !== "" ? named : undefined;
}

function partWithData(part: JsonObject, { name, type, base64, text }: FileData): JsonObject {
  const dataUrl = `data:${type};base64,${base64}`;
  if (part["type"] === "file") return { ...part, file: { filename: name, file_data: dataUrl } };
  const { file_id: _, ...rest } = part;
  if (part["type"] === "input_image") return { ...rest, image_url: dataUrl };
  if (part["type"] === "input_file") return { ...rest, filename: name, file_data: dataUrl };
  const isText = text !== undefined && part["type"] === "document" && type !== "application/pdf";
  const source = isText
    ? { type: "text", media_type: "text/plain", data: text }
    : { type: "base64", media_type: type, data: base64 };
  return { ...part, source };
}
