import type { Endpoint } from "../endpoint.ts";
import { readChatRequest } from "./read-request.ts";
import { writeChatResponse } from "./response-writer.ts";
import { ChatStreamWriter } from "./stream-writer.ts";

/** `POST /v1/chat/completions`. */
export const chatEndpoint: Endpoint = {
  name: "chat",
  readRequest: readChatRequest,
  streamWriter: (context) => new ChatStreamWriter(context),
  writeResponse: writeChatResponse,
};
