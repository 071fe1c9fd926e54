import { llamaRefusal } from "./llama-grammar.ts";
import { listOf, objectOf } from "./strict-server.ts";
import type { Json, Refusal, StrictServer } from "./strict-server.ts";

/*
 * Sources, in ggml-org/llama.cpp: common/chat.cpp, common_chat_msgs_parse_oaicompat ("unsupported content part type"); the grammar of all
 * tools (tools/server, oaicompat_chat_params_parse); tools/mtmd/mtmd-helper.cpp (stb_image reads no WebP).
 */

/** llama.cpp's server with a model that sees, without a look at its template. */
export const llamaServer: StrictServer = { name: "llama.cpp", owner: "llamacpp", refusal };

function refusal(body: Json): Refusal | undefined {
  for (const message of listOf(body, "messages"))
    for (const { type, image_url: image } of Array.isArray(message["content"]) ? (message["content"] as Json[]) : []) {
      if (type !== "text" && type !== "image_url" && type !== "input_audio")
        return refused(`unsupported content[].type`);
      if (type === "image_url" && String(objectOf(image)["url"]).startsWith("data:image/webp"))
        return refused("Failed to load image or audio file");
    }
  for (const tool of listOf(body, "tools")) {
    const why = llamaRefusal(objectOf(tool["function"])["parameters"] ?? {});
    if (why !== undefined) return refused(why);
  }
  const schema = objectOf(objectOf(body["response_format"])["json_schema"])["schema"];
  const why = schema === undefined ? undefined : llamaRefusal(schema);
  return why === undefined ? undefined : refused(why);
}

function refused(message: string): Refusal {
  return { status: 400, body: { error: { code: 400, message, type: "invalid_request_error" } } };
}
