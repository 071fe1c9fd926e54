import type { AssistantPart, Content, ContentPart } from "../../core/message.ts";
import { unsupportedEnumValue } from "../request/refusals.ts";
import type { RawMembers } from "./raw-members.ts";

const inputTypes = ["input_text", "input_image", "input_file", "input_audio"] as const;
const outputTypes = ["output_text", "refusal"] as const;

/** What a part's type is taken for by those who are not strict: programs mix the names, chat's among them. */
const otherNames: Readonly<Record<string, string>> = {
  text: "input_text",
  output_text: "input_text",
  image_url: "input_image",
  file: "input_file",
};

/** What a user, a system or a tool said. */
export function readContent(members: RawMembers, name: string, strict: boolean): Content {
  const content = members.textOrList(name);
  return typeof content === "string" ? content : content.map((part) => readInputPart(part, strict));
}

function readInputPart(part: RawMembers, strict: boolean): ContentPart {
  const type = part.string("type");
  switch (strict ? type : (otherNames[type] ?? type)) {
    case "input_text":
      return { type: "text", text: part.string("text") };
    case "input_image":
      return readImage(part);
    case "input_file":
      return readFile(part);
    case "input_audio": {
      const audio = part.object("input_audio");
      return { type: "audio", data: audio.string("data"), format: audio.string("format") };
    }
    case "refusal":
      if (!strict) return { type: "refusal", refusal: part.string("refusal") };
  }
  throw unsupportedEnumValue(part.at("type"), type, inputTypes);
}

function readImage(part: RawMembers): ContentPart {
  const { image_url: image } = part.value;
  // Chat's form has the URL in an object.
  const url = typeof image === "object" && image !== null ? part.object("image_url").string("url") : undefined;
  const id = part.optionalString("file_id");
  if (id !== undefined && !part.has("image_url")) return { type: "file", id };
  const detail = part.optionalString("detail");
  return { type: "image", url: url ?? part.string("image_url"), ...(detail !== undefined && { detail }) };
}

function readFile(part: RawMembers): ContentPart {
  const [name, data, url, id] = ["filename", "file_data", "file_url", "file_id"].map((member) =>
    part.optionalString(member),
  );
  return {
    type: "file",
    ...(name !== undefined && { name }),
    ...(data !== undefined && { data }),
    ...(url !== undefined && { url }),
    ...(id !== undefined && { id }),
  };
}

/** What the model said. */
export function readSpoken(members: RawMembers, phase: string | undefined, strict: boolean): AssistantPart[] {
  const content = members.textOrList("content");
  const told = phase !== undefined && { phase };
  if (typeof content === "string") return [{ type: "text", text: content, ...told }];
  return content.map((part) => {
    const type = part.string("type");
    if (type === "refusal") return { type, refusal: part.string("refusal") };
    if (type === "output_text" || (!strict && (type === "input_text" || type === "text"))) {
      return { type: "text", text: part.string("text"), ...told };
    }
    throw unsupportedEnumValue(part.at("type"), type, outputTypes);
  });
}
