import type { AssistantPart, Content, ContentPart } from "../../core/message.ts";
import { withMark } from "../request/cache-mark.ts";
import { given, type JsonObject } from "../../core/json.ts";
import { invalidType, missingParameter, unsupportedEnumValue } from "../request/refusals.ts";
import { assistantContentParts, cacheBreakpoint, inputParts, parsed, typed } from "./request-schema.ts";
import { cacheTtls, minutesOfTtl } from "./schema.ts";

/** Types of parts that programs mix up, chat's among them; accepted unless the request is judged strictly. */
const otherNames: Readonly<Record<string, string>> = {
  text: "input_text",
  output_text: "input_text",
  image_url: "input_image",
  file: "input_file",
};

/** Reads what a user, a system or a tool says. `cacheTtl`: how long a breakpoint without a time of its own is cached. */
export function readInputContent(
  content: string | readonly JsonObject[],
  path: string,
  strict: boolean,
  cacheTtl: string | undefined,
): Content {
  if (typeof content === "string") return content;
  return content.map((value, index) => {
    const place = `${path}[${index}]`;
    const part = readInputPart(value, place, strict);
    if (part.type === "refusal") return part;
    // OpenRouter's mark, as in its other APIs.
    if ((value["prompt_cache_breakpoint"] ?? null) === null) return withMark(part, value);
    const at = `${place}.prompt_cache_breakpoint`;
    const ttl = parsed(cacheBreakpoint, value["prompt_cache_breakpoint"], at)?.ttl ?? cacheTtl;
    const minutes = minutesOfTtl(ttl ?? cacheTtls[0]);
    if (minutes === undefined && strict) throw unsupportedEnumValue(`${at}.ttl`, String(ttl), cacheTtls);
    return { ...part, cacheMinutes: minutes ?? 30 };
  });
}

function readInputPart(part: JsonObject, path: string, strict: boolean): ContentPart {
  const { type } = parsed(typed, part, path);
  switch (strict ? type : (otherNames[type] ?? type)) {
    case "input_text":
      return { type: "text", text: parsed(inputParts.input_text, part, path).text };
    case "input_image":
      return readImage(part, path);
    case "input_file": {
      const { filename: name, file_data: data, file_url: url, file_id: id } = parsed(inputParts.input_file, part, path);
      return { type: "file", ...given({ name, data, url, id }) };
    }
    case "input_audio":
      return { type: "audio", ...parsed(inputParts.input_audio, part, path).input_audio };
    case "refusal":
      if (!strict) return { type: "refusal", refusal: parsed(assistantContentParts.refusal, part, path).refusal };
  }
  throw unsupportedEnumValue(`${path}.type`, type, Object.keys(inputParts));
}

function readImage(part: JsonObject, path: string): ContentPart {
  const { image_url: image, file_id: id, detail } = parsed(inputParts.input_image, part, path);
  if (image !== undefined && image !== null)
    return { type: "image", url: typeof image === "string" ? image : image.url, ...given({ detail }) };
  if (id !== undefined && id !== null) return { type: "file", id };
  if (image === null) throw invalidType(`${path}.image_url`, "a string", "null");
  throw missingParameter(`${path}.image_url`);
}

/** Reads what the model said. */
export function readSpoken(
  content: string | readonly JsonObject[],
  path: string,
  phase: string | undefined,
  strict: boolean,
): AssistantPart[] {
  if (typeof content === "string") return [{ type: "text", text: content, ...given({ phase }) }];
  return content.map((part, index) => {
    const place = `${path}[${index}]`;
    const { type } = parsed(typed, part, place);
    if (type === "refusal") return { type, refusal: parsed(assistantContentParts.refusal, part, place).refusal };
    if (type === "output_text" || (!strict && (type === "input_text" || type === "text")))
      return { type: "text", text: parsed(inputParts.input_text, part, place).text, ...given({ phase }) };
    throw unsupportedEnumValue(`${place}.type`, type, Object.keys(assistantContentParts));
  });
}
