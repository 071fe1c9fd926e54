/** The rules about the Responses API, by HTTP and by WebSocket. ../read-texts.ts describes the form. */
export const responsesTexts = `
# the stream cannot be read
responses/event-type (error): Every event has a type, a string that is not empty.
  source: specification: ResponseStreamEvent
  breaks: official SDKs · Codex · AI SDK · LangChain
responses/event-name (warning): Every event has an \`event:\` line, which is its type.
  source: recordings 227 of 227; Open Responses specification; LiteLLM #22102
  breaks: EventSource-based clients (they listen for names) · the compliance suite of Open Responses
responses/sequence-number (error): Every event has a sequence_number, an integer.
  source: specification (required in every event); LiteLLM #28899, llama.cpp #24957; source code of AI SDK: its schema of a failed
    response
  breaks: typed clients (Go, Rust, Java, C#) · AI SDK (a failed response without one is not read)
responses/sequence (warning): sequence_number counts all events: 0, 1, 2 …
  source: recordings 362 of 363 (the other skips one before an error); LiteLLM #28899, llama.cpp #24957
  breaks: clients that continue a stream with starting_after · clients that put events in order by it
responses/created-first (error): The first event is response.created.
  source: recordings 227 of 227; source code of openai-python and openai-node: responses.stream() throws without it
  breaks: official SDKs: responses.stream() · AI SDK (no id, no time)
socket/json (error): Every message of a WebSocket is one event: a JSON object as text. There is no [DONE].
  source: OpenAI's documentation: WebSocket mode; compliance tests of Open Responses
  breaks: official SDKs: responses.connect() · Codex (it passes over the message)

# text is lost or wrong
responses/event-known (warning): Text, reasoning and calls come in events that the specification names.
  source: specification: ResponseStreamEvent; pi #4193 (clients drop what they do not know); source code of AI SDK, LangChain and Codex
    CLI
  breaks: AI SDK, LangChain, Codex (they pass over events that they do not know)
responses/item-place (error): Every event of an item has its output_index, an integer.
  source: specification; llama.cpp #20607, lemonade #3607, maki #514
  breaks: AI SDK (schema) · official SDKs: responses.stream() · OpenClaw · maki (arguments go to another call)
responses/item-added (error): The first event of an item is response.output_item.added.
  source: recordings 227 of 227; openai-python #2852; LiteLLM #22102, #37852, #41185; vLLM's agentic-api #62
  breaks: official SDKs: responses.stream() · AI SDK (an error, or the text is dropped) · Codex (deltas are dropped)
responses/item-once (error): An item is added once and done once: every item has a place of its own.
  source: recordings 227 of 227; LiteLLM #36375 (one output_index for several items); source code of AI SDK, openai-node and Codex CLI
  breaks: AI SDK · official SDKs: responses.stream() · Codex (a call is run twice)
responses/item-order (error): Items are added at output_index 0, 1, 2 …
  source: recordings 227 of 227; openai-python #2852, #3126 (an item is looked up by its place)
  breaks: official SDKs: responses.stream() (before openai-python #3126) · clients that keep items in a list
responses/item-one-at-a-time (warning): A message, reasoning item or call is done before the next one is added.
  source: recordings 227 of 227; source code of Codex CLI: one item is open at a time
  breaks: Codex (deltas go to the item that was added last)
responses/item-done (error): Every message, reasoning item and call ends with response.output_item.done, and nothing of it follows.
  source: recordings 227 of 227; source code of Codex CLI and AI SDK: a call is run at its output_item.done
  breaks: Codex (no text, no call) · AI SDK (no call)
  follows: responses/item-added
responses/item-one-id (error): Every item has an id, and every event of it the same one.
  source: recordings 227 of 227; vLLM #23218; LiteLLM #27671, #30071; llama.cpp #20607; opencode #46885
  breaks: AI SDK, opencode (they find the text and the reasoning by it) · LangChain
responses/item-begins-empty (error): An item is added empty: no content, no summary, no arguments, no input.
  source: recordings 227 of 227; source code of openai-python, openai-node and LangChain: deltas are added to what is there
  breaks: official SDKs: responses.stream() (the text is there twice) · LangChain (arguments twice)
responses/item-output (error): The output of the response that ended is the messages, reasoning items and calls that were done, in their
    order.
  source: recordings 227 of 227; source code of openai-agents (it reads nothing but the last event); sub2api #4468
  breaks: openai-agents (no answer, no call) · official SDKs: final response · LangChain · tracing
  follows: responses/item-done
responses/part-added (error): A part begins with response.content_part.added (of a summary: reasoning_summary_part.added), once and before
    its text.
  source: recordings 227 of 227; source code of openai-python and openai-node: a delta is added to the part at its index; LiteLLM #24445,
    #32777; sub2api #4468
  breaks: official SDKs: responses.stream() · AI SDK (of a summary)
  follows: responses/item-added
responses/part-index (error): The parts of an item have content_index (of a summary: summary_index) 0, 1, 2 …
  source: recordings 227 of 227; vLLM #24788; lemonade #3607; source code of LangChain: parts are joined by their index
  breaks: official SDKs: responses.stream() · LangChain (parts run together)
responses/part-kind (error): What is streamed is what was added: output_text in a part output_text of a message, arguments in a
    function_call.
  source: recordings 227 of 227; vLLM #24788 (reasoning in a part output_text)
  breaks: official SDKs: responses.stream() · clients that show reasoning apart
responses/part-done (error): A text ends with its own .done and then its part's, both once, before the item is done; no delta follows.
  source: recordings 227 of 227; specification; source code of AI SDK and LangChain
  breaks: AI SDK (a summary that never ends) · LangChain (it reads a refusal in its .done) · clients that wait for it
  follows: responses/part-added · responses/item-done
responses/part-whole (error): The deltas of a text add up to what its .done, its part and its item say.
  source: recordings 227 of 227; specification
  breaks: users (the text changes at its end) · agents (other arguments than the ones that were shown)
responses/items-list (error): GET /v1/responses/{id}/input_items answers {"object": "list", "data": […], "first_id", "last_id",
    "has_more"}, whose ids are those of data.
  source: specification: ResponseItemList; source code of openai-node: it pages by data and has_more
  breaks: official SDKs: responses.inputItems.list()
responses/items-ids (error): Every input item has a type and an id of its own.
  source: specification: ItemResource; source code of openai-node: the next page begins after the last id
  breaks: official SDKs: responses.inputItems.list() (there is no second page)
responses/compaction (error): POST /v1/responses/compact answers a response.compaction: id, created_at, usage, and an output that ends
    with a compaction and its encrypted_content.
  source: specification: CompactResource; recordings 7 of 7; compliance tests of Open Responses
  breaks: Codex · official SDKs: responses.compact()
responses/id (error): The response has an id, a string that is not empty.
  source: specification: Response.id; source code of Codex CLI: ResponseCompleted.id
  breaks: Codex (the answer is not read) · clients that continue with previous_response_id
responses/object (error): object is response.
  source: specification (a constant)
  breaks: official SDKs (openai-python: output_text) · typed clients (Go, Rust, Java, C#)
responses/created (error): created_at is an integer: Unix time in seconds.
  source: specification: Response.created_at; llama.cpp #20607
  breaks: AI SDK (schema) · typed clients (Go, Rust, Java, C#)
responses/model (error): The response names its model.
  source: specification: Response.model; llama.cpp #20607
  breaks: AI SDK (schema) · cost accounting
responses/output (error): output is a list of items, each with a type; of a completed response it is not empty, unless the request only
    prewarms: then it is.
  source: specification: Response.output; sub2api #4468; source code of openai-agents and LangChain
  breaks: openai-agents · official SDKs: output_text · LangChain
responses/item-id (error): Every item has an id of its own.
  source: specification: OutputItem; recordings 642 of 642; llama.cpp #20607, opencode #46885
  breaks: AI SDK, opencode (a call without one is dropped) · clients that give items back by reference
responses/message (error): A message has role assistant, and parts output_text (text, annotations) or refusal (refusal).
  source: specification: OutputMessage; LM Studio #1089 (no annotations: ElizaOS fails, by the schema of the AI SDK)
  breaks: AI SDK, ElizaOS (schema) · official SDKs: output_text
responses/reasoning (error): A reasoning item has its summary, a list, and shows its text in summary (summary_text) or content
    (reasoning_text), nowhere else.
  source: specification: ReasoningItem; recordings 642 of 642; source code of AI SDK and LangChain
  breaks: AI SDK, LangChain (they read summary)
responses/reasoning-in-text (warning): A text does not begin with reasoning in <think> or similar tags.
  source: LM Studio #1569, opencode #43770
  breaks: clients that show the text · structured output (the JSON begins with reasoning)
responses/special-token (warning): A text does not contain special tokens of the model.
  source: vLLM #2538, mlx-examples #489
  breaks: users see <|im_end|>

# it differs from OpenAI
spec/event (error): Every event of a response matches the schema of the specification.
  source: OpenAI's OpenAPI document: ResponseStreamEvent; llama.cpp #20607, lemonade #3607, LM Studio #1089
  breaks: clients that validate events against the specification · AI SDK (schema) · typed clients (Go, Rust, Java, C#)
spec/response (error): A response matches the schema of the specification.
  source: OpenAI's OpenAPI document: Response; llama.cpp #20607, LM Studio #1089
  breaks: clients that validate answers against the specification · the compliance suite of Open Responses
responses/obfuscation (note): obfuscation is [0-9A-Za-z], as many as bring a delta to a multiple of 16 characters; with
    include_obfuscation: false there is none.
  source: specification: stream_options.include_obfuscation; recordings 9,709 of 9,713 deltas
responses/in-progress (note): response.in_progress follows response.created (in the background: response.queued) before anything else.
  source: recordings 227 of 227
responses/usage-last (note): usage is null until the response ends.
  source: recordings 227 of 227
responses/deleted (note): DELETE /v1/responses/{id} answers {"id", "object": "response", "deleted": true}.
  source: OpenAI's documentation: Delete a model response
responses/prefixes (note): Ids begin with resp_, msg_, rs_, fc_, ctc_, and those of calls with call_.
  source: recordings 642 of 642
responses/diagnostics-known (note): prompt_cache_diagnostics have a type and a reason that OpenAI documents.
  source: OpenAI's documentation: Prompt cache diagnostics
responses/echo-members (note): The response has every member that repeats a parameter, those that the request left out with their
    defaults.
  source: recordings 642 of 642

# the answer seems to end wrongly
responses/last-event (error): The stream ends with response.completed, response.incomplete or response.failed, or with an error.
  source: recordings 227 of 227; Ollama #17118, #14600; source code of Codex CLI, openai-agents and LangChain: they read the last event
  breaks: Codex (it sends the request again, up to five times) · openai-agents (no answer) · LangChain (no usage)
responses/after-end (error): Nothing follows the event that ends the response; after an error only response.failed.
  source: recordings 227 of 227
  breaks: clients that close there (they lose what follows) · clients that take a later end for success
responses/event-status (error): response.status is that of its event: in_progress, completed, incomplete, failed.
  source: specification: Response.status; recordings 227 of 227
  breaks: clients that look at the status of the response
responses/end (error): The response says how it ended: completed, incomplete with a reason, or failed with an error, and nothing else next
    to it.
  source: specification: Response.status, incomplete_details, error; recordings 642 of 642; source code of Codex CLI
  breaks: Codex (it reads the code of an error) · clients that look whether the answer is whole
responses/whole-items (error): In a completed response every message and call is completed.
  source: specification: OutputItem.status; recordings 642 of 642
  breaks: agents (they run half of a call)

# choices mix
responses/one-response (error): The response keeps its id, its time and its model in all events that show it.
  source: recordings 227 of 227; specification: Response.id; source code of LangChain: it reads the id at the beginning and at the end
  breaks: clients that continue with previous_response_id · LangChain

# errors look like answers
responses/error (error): An error event has a message and a code, in \`error\` (as OpenAI sends it) or next to its type (as the
    specification has it).
  source: recordings 4 of 4; specification: ResponseErrorEvent; source code of AI SDK: its schemas of both
  breaks: official SDKs (an exception without a message) · AI SDK (schema)
responses/error-form (error): An error is an event of type error or a failed response, and has no other form.
  source: recordings 4 of 4; specification: ResponseErrorEvent; vLLM sends chat's error object as it is (its source code); source code of
    Codex CLI and AI SDK
  breaks: Codex, AI SDK (they see a cut stream)
socket/error (error): A request by WebSocket is refused with {"type": "error", "status": 400, "error": {"code", "message", "param"}}: the
    status that HTTP would have.
  source: OpenAI's documentation: WebSocket mode; compliance tests of Open Responses; source code of Codex CLI: WrappedWebsocketErrorEvent
  breaks: Codex (it takes the error for an event that it does not know, and waits)

# tool calls break
responses/call-then-failed (warning): After a whole call the response does not fail: what fails does so before the call's
    output_item.done.
  source: source code of Codex CLI 0.169: it runs a call at output_item.done, and a failed response is asked for again
  breaks: Codex (the call is run twice)
responses/item-same (error): An item is done as it was added: with its type, and a call with its call_id, name and namespace.
  source: recordings 227 of 227; specification; source code of AI SDK: a call begins with the call_id of added and ends with that of done
  breaks: AI SDK (a call that begins and one that ends, not the same)
responses/item-status (error): Messages and calls have a status: in_progress when added, completed or incomplete when done.
  source: recordings 227 of 227; source code of AI SDK: its schema demands it of a call
  breaks: AI SDK (the call is dropped)
responses/call (error): A call has a call_id of its own, a name, and its input as a string (function_call: arguments, custom_tool_call:
    input).
  source: specification: FunctionToolCall, CustomToolCall
  breaks: every agent
responses/arguments (error): The arguments of a completed function_call are a JSON object.
  source: specification: FunctionToolCall.arguments; recordings 642 of 642
  breaks: every agent (JSON.parse throws)
responses/known-tool (error): Only tools that the request declared (and allowed) are called; one in a namespace is called with it.
  source: specification: tools, FunctionToolCall.namespace; source code of Codex CLI
  breaks: every agent (there is nothing to run) · Codex (tools of MCP servers)
responses/call-in-text (warning): A text does not contain tool calls in the model's own markup.
  source: LM Studio #2115, oMLX #2565
  breaks: every agent: it sees text and no call

# log probabilities are wrong
responses/part-logprobs (error): The log probabilities of a text's deltas are those of its .done, and with the tokens of its text.
  source: recordings with log probabilities; specification: ResponseTextDoneEvent.logprobs
  breaks: evaluation tools
responses/logprobs (error): With include message.output_text.logprobs a text has the log probabilities of its tokens; without it has none.
  source: specification: include; recordings with log probabilities
  breaks: evaluation tools · clients that read them
responses/logprob-tokens (error): A token has its text, a log probability of 0 or less, its bytes, and top_logprobs.
  source: specification: LogProb
  breaks: evaluation tools · typed clients (Go, Rust, Java, C#)

# token counts are wrong
responses/input-tokens (error): POST /v1/responses/input_tokens answers {"object": "response.input_tokens", "input_tokens": n}.
  source: specification: TokenCountsResource; recordings 5 of 5
  breaks: official SDKs: responses.inputTokens.count() · clients that trim their history by it
responses/usage (error): A response that completed, or was cut, has usage.
  source: recordings 642 of 642; source code of AI SDK 5 (@ai-sdk/openai 2): its schema demands it
  breaks: AI SDK 5 (generateText throws; of a stream the end is not read) · LangChain, cost accounting
responses/usage-type (error): usage has input_tokens, output_tokens, total_tokens and both details (cached_tokens, reasoning_tokens), all
    integers, 0 or more.
  source: specification: ResponseUsage; llama.cpp #22659 (no output_tokens_details)
  breaks: typed clients (Go, Rust, Java, C#)
responses/usage-sum (error): total_tokens is the sum of input_tokens and output_tokens.
  source: specification; recordings 642 of 642
  breaks: cost accounting
responses/usage-details (warning): cached_tokens is at most input_tokens, and reasoning_tokens at most output_tokens.
  source: specification
  breaks: cost accounting
responses/usage-zero (error): Where the input was counted, output_tokens is not 0 after text or calls.
  source: LiteLLM #8349, LM Studio #1602
  breaks: cost accounting
responses/usage-counted (warning): The tokens were counted: the counts are not all 0.
  source: LiteLLM #8349, LM Studio #1602
  breaks: cost accounting

# requests are misunderstood
responses/diagnostics (error): prompt_cache_diagnostics of a cache miss have their reason and the number of missed tokens.
  source: OpenAI's documentation: Prompt cache diagnostics; the types of SDK 7.57.0
  breaks: typed clients (Go, Rust, Java, C#)
responses/required (error): With tool_choice required, or a named tool, there is a call.
  source: specification: tool_choice
  breaks: agents and structured extraction
responses/named (error): With a named tool, only that tool is called.
  source: specification: tool_choice
  breaks: agents and structured extraction
responses/no-tools (error): With tool_choice none, or without tools, there is no call.
  source: specification: tool_choice
  breaks: agents that want an answer in words
responses/parallel (error): With parallel_tool_calls false there is at most one call.
  source: specification: parallel_tool_calls
  breaks: agents whose tools must run one after the other
responses/json-text (error): With text.format json_object or json_schema the text is one JSON value.
  source: specification: text.format
  breaks: structured extraction (JSON.parse throws)
responses/max-output-tokens (error): The answer has no more tokens than max_output_tokens allows, reasoning included.
  source: specification: max_output_tokens
  breaks: callers that budget
responses/sealed (warning): With include reasoning.encrypted_content every reasoning item has it.
  source: specification: include; recordings 642 of 642; source code of AI SDK: with store: false reasoning without it is not sent back
  breaks: AI SDK with store: false (the model forgets its reasoning between two calls)
responses/echo (warning): The response repeats the parameters of its request: sampling, limits, tool_choice, the names of its tools,
    text.format, reasoning.effort, metadata, instructions.
  source: specification: Response; recordings 642 of 642; source code of dd-trace-py: openai_get_metadata_from_response reads the settings
    there
  breaks: dd-trace-py (a trace shows other settings than those that were sent)
`;
