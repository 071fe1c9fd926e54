/** The rules about the Messages API. ../read-texts.ts describes the form. */
export const messagesTexts = `
# the stream cannot be read
messages/event-name (error): Every event has an \`event:\` line that names the type of its data.
  source: Anthropic's documentation: Streaming messages; recordings 316 of 316; pi #1983, #4381
  breaks: official SDKs (they pass over events without a name) · AI SDK (of data without a type)
messages/start-first (error): A stream begins with message_start.
  source: Anthropic's documentation: Streaming messages; recordings 316 of 316; plano #898
  breaks: official SDKs' stream helpers (they throw)
messages/start-once (error): There is one message_start.
  source: Anthropic's documentation: Streaming messages; recordings 316 of 316
  breaks: official SDKs' stream helpers (they throw)
messages/start-empty (error): message_start holds a message whose content is [] and whose stop_reason is null.
  source: Anthropic's documentation: Streaming messages; recordings 316 of 316
  breaks: official SDKs' stream helpers (blocks are appended to what is there)
messages/block-order (error): Blocks come one after another: each ends before the next begins.
  source: Anthropic's documentation: Streaming messages; recordings 586 of 586 blocks; Ollama #17101
  breaks: Claude Code (Content block not found) · official SDKs' stream helpers
messages/block-index (error): Blocks are numbered 0, 1, 2, … in their order.
  source: Anthropic's documentation: Streaming messages: the index in the final content; recordings 586 of 586 blocks; Ollama #17101
  breaks: official SDKs' stream helpers (deltas go to another block) · Claude Code
messages/block-open (error): A delta or a stop is about a block that has begun and has not ended.
  source: Anthropic's documentation: Streaming messages; recordings 5949 of 5949 deltas; axonhub #1677, CLIProxyAPI #3720
  breaks: Claude Code (Content block not found) · official SDKs' stream helpers
messages/block-stop (error): Every block ends with content_block_stop, but for a call that the limit of tokens cut.
  source: Anthropic's documentation: Streaming messages; recordings 585 of 586 blocks (one call that max_tokens cut has none); source code
    of AI SDK
  breaks: Claude Code (it runs a tool when its block ends) · AI SDK (the part never ends)

# it differs from Anthropic
messages/known-types (note): Events, blocks and deltas are of types that Anthropic's API has.
  source: official SDKs: the types of 0.120.0; recordings 316 of 316
messages/no-done (note): There is no [DONE].
  source: recordings 316 of 316; free-claude-code #43
messages/stream-request-id (note): Every stream has the header request-id.
  source: recordings (some recorders left it out)
messages/input-first (note): The first input_json_delta of a call is "".
  source: recordings 93 of 93 calls
messages/failure-request-id (note): An error names the request: request_id, a string or null.
  source: recordings 39 of 39 since 2025-11
messages/request-id (note): Every answer has the header request-id.
  source: recordings (some recorders left it out)
messages/id-form (note): The id of a message begins with msg_, that of a call with toolu_.
  source: recordings 902 of 902 messages, 245 of 245 calls
messages/diagnostics-known (note): The reason of a cache miss is one of model_changed, system_changed, tools_changed, messages_changed,
    previous_message_not_found, unavailable.
  source: Anthropic's documentation: Cache diagnostics

# errors look like answers
messages/error-shape (error): An error in a stream is the event error with {"type": "error", "error": {type, message}}.
  source: Anthropic's documentation: Errors; official SDKs
  breaks: official SDKs (an event of another name is passed over)
messages/error-last (error): Nothing follows an error: no stop_reason is invented, no message_stop.
  source: Anthropic's documentation: Errors (official SDKs stop at it); LiteLLM #32159
  breaks: clients that take a later stop_reason for success
messages/error-type (warning): The type of an error in a stream is one of Anthropic's.
  source: Anthropic's documentation: Errors
  breaks: clients that ask again at overloaded_error and rate_limit_error only
messages/error-overflow (warning): An error in a stream says that a prompt is too long as \`prompt is too long: N tokens > M maximum\`.
  source: recorded error of 2026-08; Floway #166 (what Claude Code looks for)
  breaks: Claude Code (it compacts its history at these words, and at no others)
messages/failure-shape (error): An error's body is {"type": "error", "error": {type, message}}.
  source: Anthropic's documentation: Errors; recordings 42 of 42
  breaks: official SDKs (an error without its type) · AI SDK (schema)
messages/failure-type (warning): The type of an error is the one of its status: 400 invalid_request_error, 401 authentication_error, 404
    not_found_error, 529 overloaded_error, …
  source: Anthropic's documentation: Errors; recordings 42 of 42
  breaks: clients that branch on the type (to wait, to ask again, to ask for a key)
messages/failure-overflow (warning): An error says that a prompt is too long as \`prompt is too long: N tokens > M maximum\`.
  source: recorded error of 2026-08; Floway #166 (what Claude Code looks for)
  breaks: Claude Code (it compacts its history at these words, and at no others)

# the answer seems to end wrongly
messages/message-delta (error): message_delta says how the message ended.
  source: Anthropic's documentation: Streaming messages; recordings 316 of 316; axonhub #2000
  breaks: Claude Code and every agent (there is no stop_reason)
messages/after-delta (error): After message_delta no block begins, grows or ends.
  source: Anthropic's documentation: Streaming messages; recordings 316 of 316; opencode #38733
  breaks: clients that finish at message_delta, as opencode did (they lose what follows)
messages/message-stop (error): A stream ends with message_stop.
  source: Anthropic's documentation: Streaming messages; recordings 316 of 316; charmbracelet/fantasy #245, LiteLLM #32159, opencode
    #38733
  breaks: official SDKs' stream helpers (finalMessage rejects) · opencode · Crush (it asks again)
messages/stop-last (error): message_stop comes once, and nothing follows it.
  source: Anthropic's documentation: Streaming messages; recordings 316 of 316; plano #898, claude-code #40979
  breaks: Claude Code (Received message_stop without a current message)
messages/stop-reason (error): stop_reason is end_turn, max_tokens, stop_sequence, tool_use, pause_turn, refusal, compaction or
    model_context_window_exceeded.
  source: Anthropic's documentation: Handling stop reasons; official SDKs: the types of 0.120.0; recordings 902 of 902
  breaks: typed clients (Rust, Java, C#) · agents (they do not know whether to go on)
messages/stop-sequence (error): stop_sequence is the sequence of the request that ended the message, with that stop_reason; else null.
  source: Anthropic's documentation: Handling stop reasons; recordings 902 of 902; vLLM #45807
  breaks: clients that ask which sequence it was

# text is lost or wrong
messages/block-start (error): content_block_start holds a block with all its members: text; thinking and signature; id, name and input;
    data.
  source: Anthropic's documentation: Streaming messages; recordings 585 of 586 blocks; llama.cpp #22960, #20090
  breaks: typed clients (Go, Rust, Java, C#) · AI SDK (schema)
messages/block-begins-empty (warning): A block begins empty: text "", thinking "", input {}; its deltas fill it.
  source: Anthropic's documentation: Streaming messages; recordings 586 of 586 blocks; opencode #38733
  breaks: clients that read deltas only (they lose it) · opencode before #38733
messages/delta-kind (error): A delta is of its block's kind: text_delta in text, input_json_delta in tool_use, thinking_delta in thinking.
  source: Anthropic's documentation: Streaming messages; recordings 5949 of 5949 deltas; SGLang #24293, CLIProxyAPI #539
  breaks: Claude Code (Content block is not a text block) · official SDKs' stream helpers (they pass over it)
messages/delta-member (error): A delta has its type, and its text as a string: text, thinking, signature or partial_json.
  source: Anthropic's documentation: Streaming messages; recordings 5949 of 5949 deltas
  breaks: every client (it concatenates strings)
messages/signature (warning): A thinking block gets one signature_delta, after all its thinking.
  source: Anthropic's documentation: Extended thinking; recordings 29 of 30 blocks; llama.cpp #20090
  breaks: Claude Code and agents that send the block back (Anthropic refuses it) · AI SDK (it drops the reasoning)
messages/message (error): A message has an id, type "message", role "assistant", its model, and content, an array of blocks with a type.
  source: Anthropic's documentation: Messages; official SDKs: the types of 0.120.0; recordings 902 of 902
  breaks: typed clients (Go, Rust, Java, C#) · AI SDK (schema)
messages/block-members (error): A text block has its text, a thinking block its thinking and signature, a call its input, an object.
  source: Anthropic's documentation: Messages; official SDKs: the types of 0.120.0; recordings 812 of 812 blocks
  breaks: typed clients (Go, Rust, Java, C#) · AI SDK (schema) · agents (there is no input)
messages/reasoning-in-text (warning): Text does not begin with reasoning in <think> or similar tags.
  source: Qwen2API #121, local-openai2anthropic #1; recordings 899 of 902 (Claude 3 wrote <thinking>)
  breaks: clients that show the text · structured output (the JSON begins with reasoning)
messages/special-token (warning): Text does not end with a special token of the model.
  source: vLLM #2538, mlx-examples #489; recordings 902 of 902
  breaks: users see <|im_end|>

# tool calls break
messages/input-json (error): The joined partial_json of a call is one JSON object, or nothing at all.
  source: Anthropic's documentation: Streaming messages; recordings 92 of 92 calls that were not cut; vLLM #45287
  breaks: every agent (JSON.parse throws)
messages/empty-text (warning): No text block next to a call is empty.
  source: recordings 221 of 221 messages with calls; LiteLLM #34692, claude-code #88536
  breaks: Claude Code and agents that send it back (text content blocks must be non-empty)
messages/tool-id (error): Every call has an id of its own.
  source: Anthropic's documentation: Messages; official SDKs: the types of 0.120.0 (results are matched by it)
  breaks: every agent (a result cannot be matched)
messages/tool-id-letters (warning): The id of a call has letters, digits, _ and - only.
  source: recordings 245 of 245 calls; CLIProxyAPI #1875, ClawRouter #17 (Anthropic refuses others in a history)
  breaks: agents that go on with another server (tool_use.id: String should match pattern)
messages/tool-name (error): Every call has the name of its tool.
  source: Anthropic's documentation: Messages; official SDKs: the types of 0.120.0
  breaks: every agent (there is nothing to run)
messages/known-tool (error): Only tools that the request declared are called.
  source: Anthropic's documentation: Tool use; recordings 244 of 245 calls (a proxy had added the tool)
  breaks: every agent (there is nothing to run)
messages/call-in-text (warning): Text does not contain tool calls in the model's own markup.
  source: LM Studio #2115, oMLX #2565; recordings 902 of 902
  breaks: every agent: it sees text and no call
messages/tool-stop (error): A message with a call ends with tool_use, unless something cut it.
  source: Anthropic's documentation: Handling stop reasons; recordings 220 of 220; LiteLLM #34692, bifrost #3638
  breaks: agents (the tool is never run) · official SDKs' tool runners
messages/tool-stop-made (error): A message that ends with tool_use has a call.
  source: Anthropic's documentation: Handling stop reasons; recordings 220 of 220
  breaks: agents (they wait for calls that never come)

# token counts are wrong
messages/start-usage (error): The message of message_start has a usage with input_tokens and output_tokens.
  source: Anthropic's documentation: Streaming messages; recordings 316 of 316; free-claude-code #43, claude-code #46932
  breaks: Claude Code (undefined is not an object) · AI SDK, pi (they read usage.input_tokens)
messages/start-input (warning): message_start has the tokens of the prompt, not 0.
  source: Anthropic's documentation: Streaming messages; recordings 316 of 316; SGLang #20678, LiteLLM #41406, CLIProxyAPI #1700
  breaks: Claude Code (it shows an empty context while it works)
messages/end-usage (error): message_delta has a usage with output_tokens.
  source: Anthropic's documentation: Streaming messages; recordings 316 of 316; pi #6567
  breaks: official SDKs' stream helpers (a TypeError: they read usage.output_tokens) · pi
messages/usage-grows (warning): Counts are cumulative: no later output_tokens is smaller than an earlier one.
  source: Anthropic's documentation: Streaming messages: "cumulative"; recordings 316 of 316
  breaks: cost meters (they take the last count for the sum)
messages/count (error): count_tokens answers {"input_tokens": N}, a whole number above 0.
  source: Anthropic's documentation: Count tokens; recordings 8 of 8
  breaks: official SDKs (undefined) · agents that measure a prompt before they send it
messages/usage (error): A message has a usage: input_tokens and output_tokens, and where they are there the tokens of the cache, all whole
    numbers.
  source: Anthropic's documentation: Messages; recordings 902 of 902; free-claude-code #209
  breaks: official SDKs · AI SDK (schema) · Claude Code (undefined is not an object)
  follows: messages/start-usage · messages/end-usage
messages/usage-counted (warning): The tokens of prompt and answer were counted: neither is 0 in the end.
  source: recordings 902 of 902; Ollama #13934, grok2api #612, AIClient2API #71
  breaks: Claude Code (it does not see its context fill, and never compacts) · callers that budget
  follows: messages/usage
messages/usage-thinking (error): thinking_tokens are part of output_tokens.
  source: official SDKs: output_tokens_details; recordings 169 of 169
  breaks: callers that budget (they subtract)

# requests are misunderstood
messages/models (error): GET /v1/models with anthropic-version answers {data: […], has_more, first_id, last_id}.
  source: Anthropic's documentation: List models; recordings 3 of 3; LiteLLM #35455
  breaks: Claude Code (its list of models stays empty) · official SDKs (they page by it)
messages/model (error): A model has type "model", id, display_name and created_at, a time as RFC 3339 has it.
  source: Anthropic's documentation: List models; recordings 3 of 3
  breaks: typed clients (Go, Rust, Java, C#)
messages/diagnostics (error): diagnostics is null or has cache_miss_reason: null, or an object with a type, and with a count of tokens
    where the request has changed.
  source: Anthropic's documentation: Cache diagnostics; the types of SDK 1.12.0; recordings since 2026-09
  breaks: typed clients (Go, Rust, Java, C#)
messages/stop-text (error): The text does not contain a stop sequence of the request.
  source: Anthropic's documentation: stop_sequences; recordings: no counterexample
  breaks: agents that parse text up to a mark
messages/max-tokens (error): A message has at most max_tokens tokens.
  source: Anthropic's documentation: max_tokens; recordings 894 of 894
  breaks: callers that budget
messages/required (error): With tool_choice any, or a named tool, there is a call.
  source: Anthropic's documentation: tool_choice; recordings: no counterexample
  breaks: agents and structured extraction
messages/named (error): With a named tool, only that tool is called.
  source: Anthropic's documentation: tool_choice; recordings: no counterexample
  breaks: agents and structured extraction
messages/no-tools (error): With tool_choice none, or without tools, there is no call.
  source: Anthropic's documentation: tool_choice; recordings: no counterexample
  breaks: agents that want an answer in words
messages/parallel (error): With disable_parallel_tool_use there is at most one call.
  source: Anthropic's documentation: tool_choice, disable_parallel_tool_use; recordings: no counterexample; ogx #5975
  breaks: agents whose tools must run one after the other
messages/json (error): With output_config.format the text is one JSON value.
  source: Anthropic's documentation: Structured outputs; recordings 32 of 32 bodies
  breaks: structured extraction (JSON.parse throws)
messages/no-thinking (warning): With thinking disabled there is no thinking block.
  source: Anthropic's documentation: Extended thinking; recordings: no counterexample
  breaks: callers that want none (they wait and pay for it)
`;
