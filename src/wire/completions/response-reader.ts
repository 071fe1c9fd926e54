import { accumulate } from "../../generation/accumulate.ts";
import type { Generation } from "../../generation/accumulate.ts";
import type { AnswerReaderOptions } from "../tolerant/answer-reader.ts";
import { readResponseBody } from "../tolerant/read-response.ts";
import { CompletionsStreamReader } from "./stream-reader.ts";

/** Reads the body of a legacy completions answer that was asked for without a stream. A failure is in `end`; nothing is thrown. */
export function readCompletionsResponse(body: string, options: AnswerReaderOptions): Generation {
  return accumulate(readResponseBody(body, new CompletionsStreamReader(options)));
}
