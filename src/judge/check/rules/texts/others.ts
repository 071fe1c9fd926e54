/** The rules about Ollama's API, the profiles, and several exchanges. ../read-texts.ts describes the form. */
export const othersTexts = `
# the stream cannot be read
ollama/json (error): A whole answer is one JSON object; a stream is one JSON object a line, and nothing else: no blank line, no comment,
    no event of SSE.
  source: Ollama's source code: server/routes.go, streamResponse
  breaks: Ollama's clients for Go and Python (an error) · ollama-js (a warning, and the line is lost)
ollama/content-type (warning): A stream has the content type application/x-ndjson, any other answer application/json.
  source: Ollama's source code: server/routes.go, streamResponse
  breaks: clients that choose the parser by the content type
answer/stream (error): The answer is a stream with stream: true, and only then.
  source: specification: stream
  breaks: every client (it reads the other form)

# text is lost or wrong
ollama/schema (error): Every object has the members of Ollama's types.
  source: Ollama's source code: api/types.go
  breaks: typed clients (Go, Rust, Python's ollama by pydantic)
ollama/model (warning): Every line has the model's name as the request has it.
  source: Ollama's source code: server/routes.go, ChatHandler
  breaks: clients that match answers to requests by the model
same/text (error): The same request gets the same text, streamed or not.
  source: LM Studio #1071, vLLM #11392, SGLang #35564
  breaks: users (words are missing in one of the two)
stored/shown (error): GET shows a stored response as it was answered: id, model, status, output, usage.
  source: specification: GET /responses/{response_id}
  breaks: official SDKs: responses.retrieve()
stored/input-items (error): The input items of a stored response contain its input.
  source: specification: GET /responses/{response_id}/input_items
  breaks: official SDKs: responses.inputItems.list()
stored/continued (error): With previous_response_id the model gets what was said before: the prompt has more tokens than the one before
    it.
  source: specification: previous_response_id; mlx-vlm #1046, ogx #2074
  breaks: every client that continues so, such as openai-agents (the model forgets what was said)
stored/conversation (error): With conversation, the model receives the items of the conversation, and input and output are added to it.
  source: specification: ConversationParam, GET /conversations/{conversation_id}/items
  breaks: every client with conversations, such as openai-agents (the model forgets what was said)
socket/continued (error): By WebSocket a response with store: false is continued on its own connection.
  source: OpenAI's documentation: WebSocket mode; compliance tests of Open Responses
  breaks: Codex (it sends only what is new)

# it differs from Ollama
ollama/member-order (note): Members are in the order of the fields in Go.
  source: Ollama's source code: api/types.go

# the answer seems to end wrongly
ollama/done-last (error): The last line, and no other, has done: true, unless it is an error.
  source: Ollama's source code: server/routes.go, ChatHandler
  breaks: every client (it stops early, or waits for the end)
ollama/done-reason (warning): The line with done: true has a done_reason: stop, length, load or unload. A call ends with stop.
  source: Ollama's source code: llm/server.go, DoneReason
  breaks: clients that branch on the reason (Continue, LangChain)
same/finish (error): The same request gets the same finish reason, streamed or not.
  source: LiteLLM #12481
  breaks: agents (they work in one of the two)
stored/background (error): A response in the background can be asked for until it has ended, and ends.
  source: specification: background; praxis-proxy/ai #560, vLLM's agentic-api #357
  breaks: every client that polls (it waits without end, or never finds its answer)

# token counts are wrong
ollama/counts-last (warning): Counts and durations are in the line with done: true only, and not zero: a zero is absent in Go.
  source: Ollama's source code: api/types.go, Metrics (omitempty)
  breaks: clients that add counts up

# requests are misunderstood
ollama/limit (error): An answer has at most num_predict tokens.
  source: Ollama's source code: docs/modelfile.mdx, num_predict
  breaks: clients that limit the length
ollama/stop (error): An answer contains none of the request's stop strings.
  source: Ollama's source code: docs/modelfile.mdx, stop
  breaks: clients that continue after a stop string
ollama/think (warning): With think: false there is no thinking.
  source: Ollama's source code: docs/capabilities/thinking.mdx
  breaks: clients that show it although it was turned off
ollama/format (error): With format, an answer that is not cut is JSON.
  source: Ollama's source code: docs/capabilities/structured-outputs.mdx
  breaks: every client that parses the answer
answer/status (error): A valid request gets status 200.
  source: specification
  breaks: every client that makes such a request
wrong/status (error): An invalid request gets a 4xx status, streamed or not, before anything else is sent.
  source: specification; recorded errors of OpenAI
  breaks: developers (a mistake goes unnoticed, or looks like a fault of the server)
wrong/param (warning): error.param names the invalid member, with its full path; in the Messages API error.message does.
  source: specification: Error; recorded errors of OpenAI and Anthropic
  breaks: developers (they cannot see which member is meant) · forms that mark the wrong field
stored/deleted (error): A response that was deleted is gone: GET and previous_response_id do not find it.
  source: specification: DELETE /responses/{response_id}
  breaks: users (what they deleted can be read)
stored/not-kept (error): With store: false nothing is kept: GET does not find the response.
  source: specification: store
  breaks: users (what must leave no trace can be read)
stored/compacted (error): What /responses/compact answers can be given back as input.
  source: specification: CompactResource; compliance tests of Open Responses; source code of Codex CLI
  breaks: Codex (its history is lost when it is compacted)
socket/unknown (warning): By WebSocket an unknown previous_response_id is refused with the code previous_response_not_found.
  source: OpenAI's documentation: WebSocket mode; compliance tests of Open Responses
  breaks: clients that then send the whole conversation again
socket/lane-queue (error): By WebSocket the 17th request at the same time waits; it is not refused.
  source: OpenAI's documentation: WebSocket mode; openai 7.57: ResponsesClientEvent, ResponsesServerEvent
  breaks: clients that share one connection (they do not expect the error)
socket/lane-limit (warning): By WebSocket the 33rd stream_id is refused with the code websocket_stream_limit_reached, and this error has
    the stream_id.
  source: OpenAI's documentation: WebSocket mode; openai 7.57: ResponsesClientEvent, ResponsesServerEvent
  breaks: clients that then open another connection
socket/lane-id (warning): By WebSocket an empty stream_id is refused with the code invalid_stream_id, and this error has no stream_id.
  source: OpenAI's documentation: WebSocket mode; openai 7.57: ResponsesClientEvent, ResponsesServerEvent
  breaks: clients that share one connection (the events of a request with a faulty id look like those of the default lane)
socket/steer (error): By WebSocket response.steer is answered by response.steer.accepted or by response.steer.failed with a known code; an
    accepted steer is followed by a successor, by response.steer.pending or by response.steer.failed.
  source: OpenAI's documentation: steering; openai 7.57: ResponseSteerEvent
  breaks: clients that steer (they wait without end)
cache/diagnosed (warning): A server with cache diagnostics reports a changed system prompt as the reason, and no reason for the same
    request again.
  source: Anthropic's documentation: Cache diagnostics; OpenAI's: Prompt cache diagnostics
  breaks: users who look for the cause of a cache miss
live/side-by-side (warning): A second stream begins before the first has ended.
  source: llama-cpp-python #897
  breaks: every application with more than one user
live/disconnect (warning): When clients disconnect, their generations end, so that the next request need not wait.
  source: LiteLLM #30244, #31499; new-api #4186
  breaks: users (a stop button that stops nothing), and those who pay for the tokens

# errors look like answers
ollama/first-line (warning): What fails before the first line has a status of 400 or more.
  source: Ollama's source code: server/routes.go, streamResponse
  breaks: clients that look at the status only
ollama/failure (error): An error's body is {"error": "text"}.
  source: Ollama's source code: server/routes.go; api/client.go, checkError
  breaks: Ollama's clients (an exception without a message)

# it is not the form that was demanded
profile/layout (error): JSON is compact (lean, and streams of exact); bodies of exact are indented, and errors as OpenAI's gateway or
    application indents them.
  source: recordings 408 of 408 streams, 1620 of 1643 bodies
  breaks: tests that compare bytes
profile/members (error): Chunks, bodies, choices and messages have the members of the profile, in its order.
  source: recordings 408 of 408 streams, 1458 of 1466 bodies since 2025
  breaks: tests that compare bytes
profile/error-members (error): An error has message, type, param and code, in this order, and nothing else.
  source: every recorded error
  breaks: tests that compare bytes
profile/first-delta (error): The first delta of each choice has the role alone (lean), or the role and the first members of the choice
    (exact).
  source: recordings 271 of 271 texts, 83 of 83 calls, 23 of 23 parallel calls since 2024-09
  breaks: tests that compare bytes
profile/deltas (error): A later delta has one member, a call's header no arguments yet, and the finish reason an empty delta.
  source: recordings 6528 of 6528 chunks
  breaks: tests that compare bytes
profile/obfuscation (error): obfuscation has the right length; it is in every chat chunk unless include_obfuscation is false (exact), or
    only when it is true (lean).
  source: recordings 289 of 289 streams since 2025-08-05
  breaks: tests that compare bytes
profile/finish (error): Calls of a tool that the request named end with tool_calls (lean) or stop (exact).
  source: recordings 9 of 9
  breaks: tests that compare bytes
profile/logprobs (error): With log probabilities, logprobs of the first chunk is an empty list (exact) or null (lean), and of the last
    chunk null.
  source: recordings with log probabilities
  breaks: tests that compare bytes
profile/numbers (error): Log probabilities are printed as JSON.stringify does (lean), or as Rust's serde does (exact: 0.0, -1.5e-6).
  source: recordings with log probabilities
  breaks: tests that compare bytes
profile/headers (error): Content-Type and Cache-Control are those of the profile.
  source: recordings 289 of 289 streams, 2169 of 2169 bodies, every error
  breaks: tests that compare bytes
profile/messages-layout (error): JSON is compact, but for the padding and {"type": "ping"}.
  source: recordings since 2026-05: 1328 of 1328 events, 238 of 238 bodies
  breaks: tests that compare bytes
profile/messages-padding (error): Before an event's last brace are 0 to 15 spaces (exact), or none (lean).
  source: recordings 14,388 of 14,388 events
  breaks: tests that compare bytes
profile/messages-members (error): Events, messages, blocks, counts, models and errors have the members of Anthropic's answers of their
    month, in Anthropic's order.
  source: recordings since 2026-05: 1328 of 1328 events, 238 of 238 bodies
  breaks: tests that compare bytes
profile/messages-ids (error): Ids of messages are msg_01 and 22 digits in base 58 (exact).
  source: recordings 902 of 902 messages
  breaks: tests that compare bytes
profile/messages-headers (error): Content-Type and Cache-Control are the profile's.
  source: recordings 283 of 283 streams with headers, 572 of 572 bodies
  breaks: tests that compare bytes
profile/response-members (error): A response has the members of the profile: in exact those that answers of its month have, in a body also
    billing.
  source: recordings since 2026-07: 69 of 69 streams, 169 of 169 bodies
  breaks: tests that compare bytes
profile/response-order (error): Members are in alphabetical order after id, object, created_at, type, status; metadata of a response is
    last.
  source: recordings since 2026-07: 69 of 69 streams, 169 of 169 bodies
  breaks: tests that compare bytes
profile/response-end (error): The stream ends with data: [DONE] (lean, as the Open Responses specification demands) or without (exact).
  source: recordings 227 of 227; Open Responses specification
  breaks: tests that compare bytes
profile/response-obfuscation (error): Deltas of text, summaries and calls have obfuscation unless include_obfuscation is false (exact), or
    only when it is true (lean).
  source: recordings since 2026: 9,709 of 9,713 deltas
  breaks: tests that compare bytes
profile/response-numbers (error): Sampling parameters and log probabilities are printed as JSON.stringify does (lean), or with a point
    (exact: 1.0, in streams -1.5e-6, in bodies -1.5e-06).
  source: recordings since 2026-07: 69 of 69 streams, 169 of 169 bodies
  breaks: tests that compare bytes

# it differs from OpenAI
wrong/exact-status (note): An invalid request gets the vendor's status: 400, or 404 for an unknown model or path.
  source: recorded errors of OpenAI and Anthropic

# tool calls break
same/calls (error): The same request gets the same tool calls, streamed or not.
  source: llama.cpp #12379
  breaks: agents (they work in one of the two)

# choices mix
socket/lanes (error): By WebSocket every event of a request with a stream_id repeats it, events without one have none, and each lane ends
    and is numbered by itself.
  source: OpenAI's documentation: WebSocket mode; openai 7.57: ResponsesClientEvent, ResponsesServerEvent
  breaks: clients that share one connection, such as parallel agents (events reach the wrong conversation)
live/streams-apart (error): Concurrent streams do not mix: each has its own id and its own answer.
  source: vllm-mlx #649, langchain-oracle #256 (parsers that share their state)
  breaks: every server application
`;
