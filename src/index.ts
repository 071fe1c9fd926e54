export { createServer } from "./create-server.ts";
export type { ServerOptions, TruewireServer } from "./create-server.ts";
export { createHandler } from "./create-handler.ts";
export type { Handler, HandlerOptions } from "./create-handler.ts";
export { ConfigError } from "./config/config-error.ts";
export type { ConfigProblem } from "./config/config-error.ts";
export type {
  AnswerOptions,
  Duration,
  EngineModel,
  GenerationDefaults,
  LocalModel,
  LogLevel,
  ModelEntry,
  ProgramModel,
  ServiceTier,
  Size,
  TruewireConfig,
  UpstreamModel,
  UpstreamRequests,
  UpstreamTimeouts,
  UpstreamTls,
  WireName,
} from "./config/config.ts";
export type { Log, LogFields } from "./server/log.ts";
export { defineProgram, RequestError } from "./engines/program/program.ts";
export type {
  Program,
  ProgramEvent,
  ProgramInput,
  ProgramItem,
  ProgramMessage,
  ProgramResult,
  ProgramReturn,
  ProgramTool,
} from "./engines/program/program.ts";
export { readChatAnswer, readChatStream } from "./read-chat-stream.ts";
export type { ChatStreamSource, ReadChatOptions } from "./read-chat-stream.ts";
export { writeChatAnswer, writeChatChunks, writeChatStream } from "./write-chat-stream.ts";
export type { ChatChunk, WriteChatOptions } from "./write-chat-stream.ts";
export { accumulateStream } from "./accumulate-stream.ts";
export { accumulate } from "./generation/accumulate.ts";
export type { GeneratedCall, GeneratedChoice, Generation } from "./generation/accumulate.ts";
export { callProgress } from "./conversions/call-progress.ts";
export type { CallProgressEvent, EventSource, ProgressEvent } from "./conversions/call-progress.ts";
export { formatNames, ModelTextParser, parseModelText } from "./parse-model-text.ts";
export type { ModelTextOptions } from "./parse-model-text.ts";
export { toAssistantMessage } from "./conversions/answer-message.ts";
export { parseArguments } from "./conversions/call-arguments.ts";
export type { ParsedArguments } from "./conversions/call-arguments.ts";
export { fromOpenAiMessages, toOpenAiMessages } from "./conversions/openai-messages.ts";
export type {
  RawAssistantMessage as OpenAiAssistantMessage,
  RawContent as OpenAiContent,
  RawMessage as OpenAiMessage,
  RawPart as OpenAiPart,
  RawToolCall as OpenAiToolCall,
} from "./wire/chat/message-shape.ts";
export {
  fromOpenAiToolChoice,
  fromOpenAiTools,
  toOpenAiToolChoice,
  toOpenAiTools,
} from "./conversions/openai-tools.ts";
export { fromToolDefinition, toToolDefinition } from "./conversions/tool-definition.ts";
export type { ParameterDefinition, ParameterType, ToolDefinition } from "./conversions/tool-definition.ts";
export { fromOpenAiParameters, toOpenAiParameters } from "./conversions/openai-parameters.ts";
export type { GenerationParameters, OpenAiParameters, SamplingStrategy } from "./conversions/openai-parameters.ts";
export { readStopReason, writeStopReason } from "./conversions/stop-reasons.ts";
export type { StopReason } from "./conversions/stop-reasons.ts";
export { readTokenLogprobs, writeTokenLogprobs } from "./conversions/token-logprobs.ts";
export type { LogprobShape } from "./conversions/token-logprobs.ts";
export { imagePart, inlineImages, readDataUrl } from "./conversions/image-parts.ts";
export type { DownloadImage, ImageBytes } from "./conversions/image-parts.ts";
export { downloadImage } from "./download-image.ts";
export type { DownloadImageOptions } from "./download-image.ts";
export { FailureError } from "./generation/failure.ts";
export type {
  ChoiceEvent,
  EndEvent,
  ExtraEvent,
  FinishEvent,
  FinishReason,
  GenerationEnd,
  GenerationEvent,
  GenerationFailure,
  MarkupEvent,
  ReasoningDeltaEvent,
  RefusalDeltaEvent,
  SourceIdentity,
  StartEvent,
  TextDeltaEvent,
  Timings,
  TokenAlternative,
  TokenLogprob,
  ToolCallDeltaEvent,
  ToolCallEndEvent,
  ToolCallStartEvent,
  Usage,
  UsageEvent,
} from "./generation/event.ts";
export type {
  AssistantMessage,
  Content,
  ContentPart,
  JsonSchema,
  Message,
  SystemMessage,
  Tool,
  ToolCall,
  ToolChoice,
  ToolMessage,
  UserMessage,
} from "./generation/message.ts";
export type { EmbeddingAnswer, EmbeddingRequest, Engine, EngineHealth, ModelInfo } from "./generation/engine.ts";
export type {
  ChatPrompt,
  GenerationRequest,
  Limits,
  OutputConstraint,
  Sampling,
  TemplateOptions,
  TextPrompt,
} from "./generation/request.ts";
export type { AnswerSettings, AskedAnswer } from "./wire/endpoint.ts";
export type { OpenOptions } from "./open-engine.ts";
export type {
  Args as FormatArguments,
  Call as FormatCall,
  Common as FormatCommon,
  Delimited as FormatDelimited,
  Format,
  Markers as FormatMarkers,
  NamedCall as FormatNamedCall,
  ObjectCall as FormatObjectCall,
  PlainFormat,
  Reasoning as FormatReasoning,
  Route as FormatRoute,
  RoutedFormat,
  TaggedArgs as FormatTaggedArguments,
} from "./formats/format.ts";
export type { Repair, RepairId } from "./wire/tolerant/repairs.ts";
