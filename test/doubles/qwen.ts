import { existsSync, readFileSync } from "node:fs";
import { PythonTemplate, TemplateRefusal } from "../../src/text/templates/jinja/python-template.ts";
import { guardedTokens, UserText } from "../../src/text/templates/user-text.ts";
import { listOf, objectOf } from "./chat-server.ts";
import type { Json, Refusal, ChatServer } from "./chat-server.ts";

/*
 * Source: https://github.com/ggml-org/llama.cpp, common/chat.cpp, common_chat_tools_parse_oaicompat ("Unsupported tool type") and the
 * Jinja errors of a template, as https://github.com/ggml-org/llama.cpp/issues/20733 shows them. The template is that of Qwen 3.5.
 */

const file = new URL("../../../shared/chat-templates/Qwen3.5-4B.jinja", import.meta.url);

/** Whether the template is there. */
export const hasTemplate: boolean = existsSync(file);

/** llama.cpp's server with Qwen 3.5: it refuses what the model's own template refuses. */
export function qwen(): ChatServer {
  const source = readFileSync(file, "utf8");
  const template = new PythonTemplate(source);
  return {
    name: "llama.cpp with Qwen 3.5",
    owner: "llamacpp",
    refusal(body) {
      for (const tool of listOf(body["tools"])) {
        if (tool["type"] !== "function") return refused(`Unsupported tool type: ${JSON.stringify(tool)}`);
        if (tool["function"] === undefined) return refused(`Missing tool function: ${JSON.stringify(tool)}`);
      }
      const choice = body["tool_choice"];
      if (choice !== undefined && typeof choice !== "string")
        return refused(`Invalid tool_choice: ${JSON.stringify(choice)}`);
      const variables = {
        messages: listOf(body["messages"]).map(withObjects),
        tools: body["tools"],
        add_generation_prompt: true,
      };
      try {
        template.render(variables, new Date(0), new UserText(guardedTokens([], [], []), source, []));
      } catch (error) {
        if (!(error instanceof TemplateRefusal)) throw error;
        return refused(
          `Unable to generate parser for this template. Automatic parser generation failed: \n------------\nError: Jinja Exception: ${error.message}`,
        );
      }
      return undefined;
    },
  };
}

/** Arguments as objects, as llama.cpp gives them to templates. */
function withObjects(message: Json): Json {
  const calls = listOf(message["tool_calls"]);
  if (calls.length === 0) return message;
  return {
    ...message,
    tool_calls: calls.map((call) => {
      const inner = objectOf(call["function"]);
      return { ...call, function: { ...inner, arguments: JSON.parse(String(inner["arguments"])) as unknown } };
    }),
  };
}

function refused(message: string): Refusal {
  return { status: 400, body: { error: { code: 400, message, type: "invalid_request_error" } } };
}
