/** The rules about chat completions, legacy completions, models, embeddings, and errors of OpenAI's form. ../read-texts.ts describes the form. */
export const chatTexts = `
# the stream cannot be read
sse/json (error): The data of every event is one JSON object, without NaN and Infinity, or [DONE].
  source: specification; RFC 8259 section 6 (NaN and Infinity are not JSON); recordings 408 of 408
  breaks: official SDKs · AI SDK · LangChain
sse/field (error): Every line is a field of Server-Sent Events: data, event, id, retry, or a comment.
  source: HTML standard 9.2.6; gpustack #6155 (JSON lines without \`data:\`)
  breaks: official SDKs · AI SDK · LangChain
sse/one-data-line (warning): An event has one data line.
  source: recordings 408 of 408
  breaks: org-ai · clients that read line by line
sse/event-name (warning): Events have no name: no \`event:\` line.
  source: recordings 408 of 408; LocalAI
  breaks: org-ai · Witsy · EventSource-based clients (they wait for unnamed messages)
sse/crlf (warning): Lines end with a line feed alone.
  source: recordings: 0 carriage returns in 408 streams
  breaks: clients that split at \\n\\n
sse/space (warning): \`data:\` is followed by one space.
  source: recordings 408 of 408
  breaks: clients that cut off six characters
sse/blank-line (warning): A blank line ends every event, the last included.
  source: HTML standard 9.2.6 (an unfinished event is dropped); MLX-Textgen
  breaks: EventSource-based clients (they lose the last event)
sse/bom (warning): The stream begins without a byte order mark.
  source: recordings 408 of 408
  breaks: clients that look for \`data:\` at the start of a line
headers/event-stream (error): A stream has Content-Type text/event-stream.
  source: HTML standard 9.2; recordings since 2023-05
  breaks: AI SDK, fetch-event-source (they refuse the answer) · EventSource
headers/stream-length (error): A stream has no Content-Length, because it is sent while it is generated.
  source: recordings 378 of 378 (transfer-encoding: chunked)
  breaks: users (they wait for the whole answer)
stream/id (error): Every chunk has an id, a string that is not empty.
  source: specification: CreateChatCompletionStreamResponse.id
  breaks: AI SDK (schema) · clients that key messages by id
stream/object (error): object is chat.completion.chunk (completions: text_completion).
  source: specification (a constant)
  breaks: official SDK helpers · LangChain
stream/created (error): created is an integer: Unix time in seconds.
  source: specification: created; SambaNova sends fractions
  breaks: typed clients (Go, Rust, Java, C#)
stream/model (error): Every chunk names its model.
  source: specification: model is required
  breaks: typed clients (Go, Rust, Java, C#)
stream/fingerprint (error): system_fingerprint, where present, is a string or null.
  source: specification
  breaks: typed clients (Go, Rust, Java, C#)
stream/service-tier (error): service_tier, where present, is one of the specification's values or null.
  source: specification: ServiceTier
  breaks: typed clients (Go, Rust, Java, C#)
stream/choices (error): choices is an array of objects.
  source: specification: choices is required
  breaks: official SDKs · the naive loop over chunk.choices[0]
stream/choices-empty (warning): choices is empty only in the usage chunk.
  source: recordings 6528 of 6528; Azure's first chunk
  breaks: the naive loop over chunk.choices[0].delta
choice/finish-key (warning): Every choice has finish_reason, null until it ends.
  source: specification: finish_reason is required and nullable
  breaks: typed clients (Go, Rust, Java, C#) · AI SDK before its schema was loosened
delta/object (error): Every choice has a delta, an object.
  source: specification: delta is required
  breaks: official SDKs · the naive loop over choices[0].delta.content

# it differs from OpenAI
spec/chunk (error): Every chunk matches the schema of the specification.
  source: OpenAI's OpenAPI document
  breaks: clients that validate answers against the specification · typed clients (Go, Rust, Java, C#), where a value has another type
spec/body (error): A body matches the schema of the specification.
  source: OpenAI's OpenAPI document
  breaks: clients that validate answers against the specification · typed clients (Go, Rust, Java, C#), where a value has another type
sse/id-retry (note): Events carry no \`id:\` and no \`retry:\` lines.
  source: recordings 408 of 408
sse/compact (note): Chunks are compact JSON without white space between the tokens.
  source: recordings 408 of 408
sse/raw-unicode (note): Characters beyond ASCII are sent as UTF-8, not escaped.
  source: recordings: no \\uXXXX of a printable character in any stream
headers/stream-request-id (note): Every stream has an x-request-id.
  source: recordings 289 of 289
stream/id-prefix (note): The id begins with chatcmpl- (completions: cmpl-).
  source: recordings 19,551 of 19,600
stream/one-created (note): created is the same in all chunks.
  source: recordings 409 of 409; specification: 'Each chunk has the same timestamp'; tabbyAPI
stream/one-choice (note): A chunk has one choice at most.
  source: recordings 6528 of 6528
stream/known-members (note): A chunk has no members beyond OpenAI's.
  source: specification; recordings
stream/key-order (note): The members of every chunk are in OpenAI's order.
  source: recordings since 2025-08, both orders of parallel calls included
stream/obfuscation (note): obfuscation is in all chunks or in none: 0 to 15 of [0-9A-Za-z], as many as bring the chunk's JSON to a length
    of 1 modulo 16.
  source: recordings 17,107 of 17,112 chunks (the others: audio's expires_at, and one edited by hand)
delta/content-empty (note): After the first delta, no content is empty.
  source: recordings: none after the first delta
delta/empty (note): A delta is empty only in the chunk with the finish reason.
  source: recordings 397 of 397
delta/known-members (note): A delta has no members beyond OpenAI's and the reasoning fields.
  source: specification; recordings
tool/one-element (note): A delta has one element in tool_calls.
  source: recordings: no counterexample
tool/id-once (note): Later deltas of a call have only index and function.arguments.
  source: recordings 968 of 968
tool/header-alone (note): The first delta of a call has no arguments yet.
  source: recordings: always the empty string; tabbyAPI and others send a call whole
finish/empty-delta (note): The delta next to the finish reason is {}.
  source: recordings 397 of 397
usage/key-uninvited (note): Without include_usage there is no usage key, not even null.
  source: recordings
usage/null-before (note): With include_usage every other chunk has usage: null.
  source: specification; recordings: every chunk
logprobs/uninvited (note): Log probabilities are sent only when requested.
  source: specification: logprobs defaults to false
logprobs/order (note): top_logprobs are sorted, the most likely first.
  source: recordings
body/id-prefix (note): The id begins with chatcmpl- (completions: cmpl-).
  source: recordings 19,551 of 19,600
body/known-members (note): An answer and its messages have no members beyond OpenAI's and the reasoning fields.
  source: specification; recordings 300 of 300
body/call-index (note): Calls of an answer that is not streamed have no index.
  source: recordings 1,600 of 1,600
headers/request-id (note): Every answer has an x-request-id.
  source: recordings 1693 of 1693

# the answer seems to end wrongly
end/done (error): The stream ends with data: [DONE].
  source: specification; recordings 409 of 409; missing in ogx
  breaks: org-ai · LangChain · clients that wait for it
end/done-after-error (error): A stream that failed also ends with data: [DONE].
  source: specification (every stream is terminated by it); missing in tabbyAPI
  breaks: org-ai · LangChain · clients that wait for it
end/done-last (warning): Nothing follows [DONE].
  source: recordings 409 of 409
  breaks: clients that close at [DONE] (they lose what follows)
end/done-exact (warning): The data of the last event is exactly [DONE], without white space or quotes.
  source: recordings 409 of 409
  breaks: clients that compare the whole line
end/complete (error): The connection ends as HTTP requires; it is not cut.
  source: RFC 9112 section 7.1 (the last chunk of a chunked body)
  breaks: undici, Python httpx and curl report a network error after a good answer
delta/after-finish (error): A choice has no delta after its finish reason.
  source: recordings 409 of 409 (audio's expires_at aside); LiteLLM #376
  breaks: clients that stop at the finish reason (they lose the rest)
text/after-finish (error): No text comes after a choice's finish reason.
  source: recordings 30 of 30
  breaks: clients that stop at the finish reason (they lose the rest)
finish/present (error): Every choice ends with a finish reason; without one the answer was cut.
  source: specification; recordings 409 of 409; Bifrost #5546
  breaks: AI SDK (finish reason 'unknown') · official SDK helpers (.stream() throws) · agents (they go on or hang)
finish/once (error): A choice has one finish reason.
  source: recordings 409 of 409
  breaks: clients that act on each (agents run tools twice)
finish/value (error): finish_reason is stop, length, tool_calls, content_filter, function_call, or null.
  source: specification: finish_reason; servers that send eos, end_turn, the empty string
  breaks: typed clients (Go, Rust, Java, C#) · AI SDK (schema)
body/finish (error): Every choice has a finish_reason: stop, length, tool_calls, content_filter or function_call.
  source: specification
  breaks: AI SDK (schema) · typed clients (Go, Rust, Java, C#)

# choices mix
stream/one-id (warning): All chunks of a stream have the same id.
  source: recordings 409 of 409; LiteLLM #40040
  breaks: opencode · clients that key messages by id
stream/one-model (warning): All chunks name the same model.
  source: recordings 409 of 409
  breaks: cost accounting in gateways
choice/index (error): Every choice has an index, an integer from 0 to n − 1.
  source: specification: index is required
  breaks: official SDK helpers · LangChain
body/index (error): Choices are numbered 0, 1, 2, … in their order.
  source: specification; recordings
  breaks: clients that sort or key by index

# text is lost or wrong
choice/all (error): Every requested choice is sent: n for each prompt.
  source: specification: n
  breaks: every caller that asked for n > 1
stream/role-first (error): The first delta of each choice carries the role.
  source: recordings 409 of 409; TensorZero #1265, tabbyAPI
  breaks: official SDK helpers (.stream() throws 'missing role') · org-ai · Witsy
stream/role-once (warning): The role is sent once for each choice, not on every delta.
  source: recordings 6528 of 6528 chunks; LocalAI #340
  breaks: org-ai (a new message each time) · Kilo
stream/role-value (error): The role is assistant.
  source: specification; recordings 409 of 409
  breaks: official SDK helpers · AI SDK (schema)
delta/content-type (error): content is a string, or null.
  source: specification; some gateways send parts or numbers
  breaks: official SDK helpers · AI SDK (schema) · every client that concatenates
delta/content-null (warning): content is null in the first delta only.
  source: recordings 6528 of 6528 chunks (audio aside)
  breaks: clients that concatenate ('null' or 'None' in the text)
delta/one-field (warning): A delta has only one of text, reasoning, refusal and tool calls.
  source: recordings; MLX-Textgen, llama-stack
  breaks: clients with an if / else if over the fields (they drop the second)
delta/refusal-type (error): refusal is a string, or null.
  source: specification
  breaks: official SDK helpers · typed clients (Go, Rust, Java, C#)
delta/reasoning-name (warning): Reasoning is sent as reasoning_content or reasoning, the names that clients read.
  source: source code of AI SDK, LangChain, Open WebUI and Cline, which read these two names
  breaks: Open WebUI · Cline/Roo/Kilo
delta/reasoning-type (error): reasoning_content and reasoning are strings, or null.
  source: source code of AI SDK (schema) and LangChain
  breaks: AI SDK (schema) · every client that concatenates
delta/reasoning-in-content (warning): content does not begin with reasoning in <think> or similar tags.
  source: LM Studio #1569, opencode #43770
  breaks: clients that show content · structured output (the JSON begins with reasoning)
delta/special-token (warning): content does not contain special tokens of the model.
  source: vLLM #2538, mlx-examples #489
  breaks: users see <|im_end|>
text/present (error): Every choice of a completions chunk has text, a string.
  source: specification: text is required
  breaks: official SDKs · the naive loop over choices[0].text
finish/own-chunk (warning): The finish reason is sent in a chunk of its own, with an empty delta.
  source: recordings 397 of 397; tabbyAPI, llama-stack
  breaks: clients that stop reading a chunk at its finish reason (they lose the last words)
body/json (error): The body is one JSON object, without NaN and Infinity.
  source: specification; RFC 8259 section 6 (NaN and Infinity are not JSON); SGLang #5984, mlx-omni-server #56
  breaks: every client (JSON.parse throws)
body/id (error): The answer has an id, a string that is not empty.
  source: specification
  breaks: typed clients (Go, Rust, Java, C#)
body/object (error): object is chat.completion (completions: text_completion).
  source: specification (a constant)
  breaks: LangChain · typed clients (Go, Rust, Java, C#)
body/created (error): created is an integer: Unix time in seconds.
  source: specification
  breaks: typed clients (Go, Rust, Java, C#)
body/model (error): The answer names its model.
  source: specification
  breaks: typed clients (Go, Rust, Java, C#)
body/choices (error): choices is an array of objects that is not empty.
  source: specification
  breaks: everyone who reads choices[0]
body/n (error): There are as many choices as requested: n for each prompt.
  source: specification: n
  breaks: every caller that asked for n > 1
body/message (error): Every choice has a message with role assistant.
  source: specification: ChatCompletionResponseMessage
  breaks: official SDK helpers · everyone who reads choices[0].message
body/content (error): content is always present: a string, or null next to tool calls or a refusal.
  source: specification: content is required and nullable
  breaks: typed clients (Go, Rust, Java, C#) · AI SDK (schema)
body/text (error): Every choice of a completion has text, a string.
  source: specification: text is required
  breaks: everyone who reads choices[0].text
body/reasoning-in-content (warning): content does not begin with reasoning in <think> or similar tags.
  source: LM Studio #1569, opencode #43770
  breaks: clients that show content · structured output (the JSON begins with reasoning)
body/special-token (warning): content does not contain special tokens of the model.
  source: vLLM #2538, mlx-examples #489
  breaks: users see <|im_end|>
text/surrogates (error): Texts are well-formed: no half of a surrogate pair is without its other half, in no delta either.
  source: RFC 8259, section 8.2; RFC 3629, section 3: UTF-8 cannot encode half of a pair
  breaks: Rust's serde_json, which refuses the whole text · Python programs that print, store or send the text

# tool calls break
delta/null-calls (warning): tool_calls, tool_call_id and function_call are absent when there is no value, never null.
  source: specification (not nullable); MLX-Textgen
  breaks: clients that test for the key · typed clients (Go, Rust, Java, C#)
delta/call-in-content (warning): content does not contain tool calls in the model's own markup.
  source: LM Studio #2115, oMLX #2565
  breaks: every agent: it sees text and no call
tool/index (error): Every element of tool_calls has an index, an integer.
  source: specification: index is required; Ollama #7881, Gemini, vercel/ai #7238
  breaks: official SDK helpers · LangChain · Cline/Roo/Kilo
tool/index-order (warning): Calls are numbered 0, 1, 2, … without gaps, one after the other.
  source: recordings 23 of 23; LiteLLM #11580, agentgateway #2971
  breaks: clients that use the index as a position in a list
tool/id (error): The first delta of a call carries its id.
  source: specification; recordings 968 of 968; LiteLLM #40040
  breaks: official SDK helpers · AI SDK (throws) · LangChain (the result cannot be matched)
tool/id-stable (error): A call keeps its id.
  source: LiteLLM #40040, opencode #47954 (a new id in each fragment)
  breaks: opencode · clients that key calls by id
tool/id-unique (error): No two calls of a choice have the same id.
  source: specification (results are matched by it)
  breaks: every agent with parallel calls
tool/type (error): The first delta of a call carries its type: function (or custom).
  source: specification; recordings 968 of 968
  breaks: official SDK helpers · AI SDK (throws)
tool/name (error): The first delta of a call carries its whole name.
  source: specification; recordings 968 of 968
  breaks: AI SDK (throws) · official SDK helpers
tool/name-once (error): The name is sent once: no later delta of the call has it, not even empty.
  source: recordings 968 of 968; LM Studio #649
  breaks: clients that concatenate names (LangChain: get_weatherget_weather) · clients that overwrite them
tool/arguments-type (error): arguments is a string of JSON text, never an object or null.
  source: specification: arguments; servers that send an object, or null
  breaks: every client (it concatenates strings)
tool/arguments-key (warning): Every delta of a call has arguments, the first with the empty string.
  source: recordings 968 of 968
  breaks: clients that concatenate ('undefined' in the JSON)
tool/arguments-json (error): The joined arguments of a call are one JSON object, {} when there are none.
  source: recordings; vLLM #28806 (an empty string for no arguments)
  breaks: every agent (JSON.parse throws)
tool/known-name (error): Only tools that the request declared are called.
  source: specification: tools
  breaks: every agent (there is nothing to run)
finish/calls (error): A choice with tool calls ends with tool_calls (or length), unless the request named one tool.
  source: specification; recordings (named: stop, 9 of 9); LiteLLM #35663, #12481
  breaks: AI SDK, LangChain, Cline/Roo/Kilo (they do not run the tools)
  follows: finish/own-chunk
finish/calls-made (error): A choice that ends with tool_calls has tool calls.
  source: specification
  breaks: agents (they wait for calls that never come)
body/call-shape (error): A call has an id, type function and a function with name and arguments (a string).
  source: specification; LiteLLM #40040, opencode #47954
  breaks: official SDK helpers · AI SDK (schema) · LangChain
body/call-json (error): A call's arguments are one JSON object.
  source: recordings; vLLM #28806
  breaks: every agent (JSON.parse throws)
body/call-ids (error): No two calls have the same id.
  source: specification (results are matched by it)
  breaks: every agent with parallel calls
body/call-null (warning): tool_calls is absent when there are no calls, not null and not empty.
  source: recordings; specification (not nullable)
  breaks: clients that test for the key · typed clients (Go, Rust, Java, C#)
body/call-finish (error): finish_reason is tool_calls (or length) with calls, unless the request named one, and never without calls.
  source: recordings (named: stop, 9 of 9); LiteLLM #35663
  breaks: AI SDK, LangChain, Cline/Roo/Kilo (they do not run the tools)
body/known-tool (error): Only tools that the request declared are called.
  source: specification: tools
  breaks: every agent (there is nothing to run)
body/call-in-content (warning): content does not contain tool calls in the model's own markup.
  source: LM Studio #2115, oMLX #2565
  breaks: every agent: it sees text and no call

# token counts are wrong
usage/uninvited (warning): Usage is sent only when stream_options.include_usage requests it.
  source: specification; recordings 409 of 409
  breaks: the naive loop over chunk.choices[0] (the usage chunk has none) · clients that add counts up
usage/missing (error): With include_usage the stream contains usage.
  source: specification; recordings 249 of 249
  breaks: cost accounting · LangChain (no usage_metadata)
  follows: usage/uninvited
usage/once (warning): Usage is sent once.
  source: recordings 249 of 249; LocalAI sends it on every chunk
  breaks: clients that add counts up
  follows: usage/uninvited
usage/own-chunk (warning): Usage is sent in a chunk of its own with choices: [], after the finish reasons and before [DONE].
  source: specification: 'choices will be an empty array'; recordings 246 of 249 (moderation and audio chunks may follow)
  breaks: clients that look for usage where choices is empty
  follows: usage/uninvited · usage/once
usage/type (error): prompt_tokens, completion_tokens and total_tokens are present, and all token counts are integers, 0 or more.
  source: specification: CompletionUsage
  breaks: typed clients (Go, Rust, Java, C#) · cost accounting
usage/sum (error): total_tokens is the sum of prompt_tokens and completion_tokens.
  source: specification; recordings 249 of 249
  breaks: cost accounting
usage/details (warning): cached_tokens is at most prompt_tokens, and reasoning_tokens at most completion_tokens.
  source: specification
  breaks: cost accounting
usage/zero (error): completion_tokens is not 0 after text, and the counts are not all 0.
  source: LiteLLM #8349, LM Studio #1602
  breaks: cost accounting · clients that trim their history by it
body/usage (warning): An answer that is not streamed has usage.
  source: recordings 1,600 of 1,600
  breaks: cost accounting · clients that read usage.total_tokens
body/usage-type (error): prompt_tokens, completion_tokens and total_tokens are present, and all token counts are integers, 0 or more.
  source: specification
  breaks: typed clients (Go, Rust, Java, C#) · cost accounting
body/usage-sum (error): total_tokens is the sum of prompt_tokens and completion_tokens.
  source: specification; recordings
  breaks: cost accounting
body/usage-details (warning): cached_tokens is at most prompt_tokens, and reasoning_tokens at most completion_tokens.
  source: specification
  breaks: cost accounting

# log probabilities are wrong
logprobs/missing (error): Requested log probabilities are sent with the text.
  source: specification: logprobs
  breaks: evaluation harnesses
logprobs/shape (error): A token has token, logprob, bytes and top_logprobs.
  source: specification: ChatCompletionTokenLogprob
  breaks: typed clients (Go, Rust, Java, C#) · official SDK helpers
logprobs/value (error): A logprob is a number, 0 or less.
  source: specification: logprob (the logarithm of a probability is at most 0)
  breaks: evaluation harnesses
logprobs/bytes (warning): A token's bytes are the UTF-8 of its text.
  source: specification: bytes; recordings
  breaks: clients that join bytes to text
logprobs/count (error): A token has as many top_logprobs as requested.
  source: specification: top_logprobs
  breaks: evaluation harnesses
logprobs/text (error): The tokens of a choice, joined, are its text, without the tokens of its reasoning.
  source: specification: logprobs.content ('A list of message content tokens'); recordings
  breaks: clients that color text by confidence · evaluation harnesses
body/logprobs (error): Requested log probabilities are sent, each with token, logprob, bytes and top_logprobs.
  source: specification: ChatCompletionTokenLogprob
  breaks: evaluation harnesses · typed clients (Go, Rust, Java, C#)
body/logprobs-text (error): The tokens of a choice, joined, are its text, without the tokens of its reasoning.
  source: specification: logprobs.content ('A list of message content tokens'); recordings
  breaks: clients that color text by confidence · evaluation harnesses
body/token-lists (error): Log probabilities of a completion are lists of one length; a token without one, as the first of an echoed
    prompt, has null in token_logprobs and in top_logprobs.
  source: specification: CreateCompletionResponse; llama.cpp #27174, and OpenAI's own answer in vLLM #1504
  breaks: evaluation harnesses (lm-evaluation-harness reads these lists by position)

# errors look like answers
error/shape (error): An error in a stream is {"error": {message, type, param, code}} with a message.
  source: specification: Error; the official SDKs throw on \`error\`
  breaks: official SDKs (an exception without a message) · clients that read error.message
error/own-form (error): An error does not have another form, such as {"object": "error"} or {"detail": …}.
  source: error events of vLLM (fms-guardrails-orchestrator #436), FastAPI's detail
  breaks: official SDKs (they see an empty chunk and a clean end)
error/last (error): After an error only [DONE] follows: no finish reason is invented, no text continues.
  source: the official SDKs stop at an error; LiteLLM #40578 (an invented finish reason hides it)
  breaks: clients that take a later finish reason for success
error/no-choices (warning): An error is alone in its chunk.
  source: specification; OpenRouter sends choices next to it
  breaks: clients that look at choices first
failure/json (error): The body of an error is JSON, not an HTML page, plain text or empty.
  source: specification: ErrorResponse; HTML pages of proxies, plain text of frameworks
  breaks: official SDKs (an exception without a message) · clients that read error.message
failure/object (error): An error's body is {"error": {…}}.
  source: specification: ErrorResponse; FastAPI's detail, {"object": "error"}, a bare message
  breaks: official SDKs (error.code and error.param are missing) · clients that read error.message
failure/members (error): An error has message, type, param and code.
  source: specification: Error (all four are required, param and code may be null)
  breaks: typed clients (Go, Rust, Java, C#) · clients that branch on code
failure/no-trace (warning): An error contains no stack trace.
  source: OWASP Error Handling Cheat Sheet; FastAPI and Express in debug mode
  breaks: users (and it discloses how the server works)
failure/status (error): An error does not have status 200.
  source: specification
  breaks: every client (it treats the error as an answer)

# requests are misunderstood
request/stop (error): The text does not contain a stop string of the request.
  source: specification: 'The returned text will not contain the stop sequence'
  breaks: agents that parse text up to a mark
request/max-tokens (error): No choice has more tokens than max_completion_tokens (max_tokens) allows.
  source: specification
  breaks: callers that budget
request/required (error): With tool_choice required, or a named tool, there is a call.
  source: specification: tool_choice
  breaks: agents and structured extraction
request/named (error): With a named tool, only that tool is called.
  source: specification: tool_choice
  breaks: agents and structured extraction
request/no-tools (error): With tool_choice none, or without tools, there is no call.
  source: specification: tool_choice; tt-inference-server #4386
  breaks: agents that want an answer in words
request/parallel (error): With parallel_tool_calls false there is at most one call.
  source: specification: parallel_tool_calls
  breaks: agents whose tools must run one after the other
request/json (error): With response_format json_object or json_schema the text is one JSON value.
  source: specification: response_format
  breaks: structured extraction (JSON.parse throws)
body/stop (error): The text does not contain a stop string of the request.
  source: specification: 'The returned text will not contain the stop sequence'
  breaks: agents that parse text up to a mark
body/max-tokens (error): No choice has more tokens than max_completion_tokens (max_tokens) allows.
  source: specification
  breaks: callers that budget
body/required (error): With tool_choice required, or a named tool, there is a call.
  source: specification: tool_choice
  breaks: agents and structured extraction
body/named (error): With a named tool, only that tool is called.
  source: specification: tool_choice
  breaks: agents and structured extraction
body/no-tools (error): With tool_choice none, or without tools, there is no call.
  source: specification: tool_choice; tt-inference-server #4386
  breaks: agents that want an answer in words
body/parallel (error): With parallel_tool_calls false there is at most one call.
  source: specification: parallel_tool_calls
  breaks: agents whose tools must run one after the other
body/json-text (error): With response_format json_object or json_schema the text is one JSON value.
  source: specification: response_format
  breaks: structured extraction (JSON.parse throws)
models/list (error): GET /v1/models answers {"object": "list", "data": […]}.
  source: specification
  breaks: Open WebUI and every client with a model menu
models/model (error): A model has id, object: "model", created and owned_by.
  source: specification: Model
  breaks: typed clients (Go, Rust, Java, C#)
models/unique (warning): No two models have the same id.
  source: specification (an id is what a request names)
  breaks: Open WebUI (one of them cannot be chosen)
headers/json (error): A JSON body has Content-Type application/json.
  source: recordings 2169 of 2169
  breaks: official SDKs (they return the text unparsed)
`;
