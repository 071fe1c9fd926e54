import type { Exchange } from "../exchange.ts";
import { isStream } from "../judge.ts";
import { bodyView, type Json, streamView } from "../view.ts";
import { streamedResponse, wholeResponse } from "./response-view.ts";

/** The response that an exchange ends with, streamed or whole; undefined: there is none. */
export function lastResponse(exchange: Exchange): Json | undefined {
  return (isStream(exchange) ? streamedResponse(streamView(exchange)) : wholeResponse(bodyView(exchange)))?.response;
}
