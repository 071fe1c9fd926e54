import { listOf } from "./chat-server.ts";
import type { Json, Refusal, ChatServer } from "./chat-server.ts";

/*
 * Servers and gateways whose messages have strings as their contents: https://github.com/tbphp/gpt-load/issues/743 (OpenCode's gateway),
 * https://github.com/jeffdapaz/VisualChatGPTStudio/issues/66 and https://github.com/lastmile-ai/mcp-agent/issues/25. Unknown members and roles are
 * ignored.
 */

/** A server of an unknown make that accepts no list as the content of a message. */
export const strings: ChatServer = { name: "a server that takes strings only", owner: "t", refusal };

function refusal(body: Json): Refusal | undefined {
  if (!listOf(body["messages"]).some(({ content }) => Array.isArray(content))) return undefined;
  const message = "Upstream request failed: [invalid_request_error] Input should be a valid string";
  return { status: 422, body: { error: { message, type: "invalid_request_error", param: null, code: null } } };
}
