import { accumulate } from "../../generation/accumulate.ts";
import type { Generation } from "../../generation/accumulate.ts";
import type { AnswerReaderOptions } from "../tolerant/answer-reader.ts";
import { readResponseBody } from "../tolerant/read-response.ts";
import { ChatStreamReader } from "./stream-reader.ts";

/** Reads the body of a chat answer that was asked for without a stream. A failure is in `end`; nothing is thrown. */
export function readChatResponse(body: string, options: AnswerReaderOptions): Generation {
  return accumulate(readResponseBody(body, new ChatStreamReader(options)));
}
