/** The rules about Gemini's API. ../read-texts.ts describes the form. */
export const geminiTexts = `
# the stream cannot be read
gemini/json (error): A whole answer is one JSON object. A stream with alt=sse is one JSON object in each event and has no [DONE]; another
    stream is one JSON list.
  source: Google's documentation: Generating content; recordings of 2 projects
  breaks: official SDKs: generateContentStream (@google/genai throws) · Gemini CLI
gemini/content-type (warning): A stream with alt=sse has the content type text/event-stream, any other answer application/json.
  source: recordings of 2 projects
  breaks: clients that choose the parser by the content type

# text is lost or wrong
gemini/schema (error): Every object has the members of Google's types.
  source: Google's documentation: Generating content, Counting tokens, Embeddings, Models
  breaks: typed clients (Go, Java, Python's google-genai by pydantic)
gemini/part (error): A part has one data member: a text, a call, code, data.
  source: Google's documentation: Part
  breaks: every client (it reads one of them)
gemini/role (warning): The role of an answer is model.
  source: Google's documentation: Content
  breaks: clients that send the answer back as it is (the next request is refused)
gemini/same-answer (warning): All chunks of a stream have the same responseId and modelVersion.
  source: recordings of 2 projects
  breaks: clients that match chunks to answers by the id

# it differs from Google
gemini/member-order (note): Members are in the order of Google's answers.
  source: recordings of 2 projects

# the answer seems to end wrongly
gemini/finish (error): Each candidate has a finishReason in its last chunk, unless the prompt is blocked.
  source: Google's documentation: Candidate
  breaks: Gemini CLI (it reports a broken stream and tries again) · official SDKs
gemini/finish-reason (warning): A finishReason is one of Google's.
  source: Google's documentation: FinishReason
  breaks: typed clients (Go, Java)

# tool calls break
gemini/call (error): A call names a function of the request.
  source: Google's documentation: FunctionCall
  breaks: agents (they have no such function)
gemini/call-ids (error): Calls of an answer that have ids have different ones.
  source: Google's documentation: FunctionCall
  breaks: Gemini CLI and other agents (a result reaches the wrong call)
gemini/call-mode (error): With mode NONE there is no call; with mode ANY there is one.
  source: Google's documentation: FunctionCallingConfig
  breaks: clients that demand a call, or none

# token counts are wrong
gemini/usage (warning): The last chunk has usageMetadata, and totalTokenCount is the sum of its counts.
  source: Google's documentation: UsageMetadata; recordings of 2 projects
  breaks: clients that count tokens, or what is left of the context

# requests are misunderstood
gemini/limit (error): An answer has at most maxOutputTokens tokens.
  source: Google's documentation: GenerationConfig
  breaks: clients that limit the length
gemini/stop (error): An answer contains none of the request's stopSequences.
  source: Google's documentation: GenerationConfig
  breaks: clients that continue after a stop sequence
gemini/thoughts (warning): With thinkingBudget 0 there are no thoughts.
  source: Google's documentation: ThinkingConfig
  breaks: clients that show them although they were turned off
gemini/format (error): With responseMimeType application/json, an answer that is not cut is JSON.
  source: Google's documentation: GenerationConfig
  breaks: every client that parses the answer

# errors look like answers
gemini/failure (error): An error's body is {"error": {code, message, status}}, with the status of HTTP as code and its name as status.
  source: Google's documentation: Troubleshooting; source code of googleapis: google/rpc/code.proto
  breaks: official SDKs (an exception without a message) · Gemini CLI (it does not know whether to try again)
`;
