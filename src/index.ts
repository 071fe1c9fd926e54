/** Functions for chat streams, messages and texts of models, which need nothing of Node and run in a browser as they are. */
export { ConfigError } from "./config/config-error.ts";
export type { ConfigProblem } from "./config/config-error.ts";
export { defineProgram, RequestError } from "./engines/program/program.ts";
export type {
  Program,
  ProgramEvent,
  ProgramInput,
  ProgramItem,
  ProgramLogprob,
  ProgramOffer,
  ProgramResult,
  ProgramReturn,
} from "./apis/chat/program.ts";
export type {
  ProgramContentPart,
  ProgramMessage,
  ProgramOptions,
  ProgramTool,
  ProgramToolCall,
} from "./apis/chat/request-types.ts";
export {
  readChatAnswer,
  readChatStream,
  readMessagesAnswer,
  readMessagesStream,
  readResponsesAnswer,
  readResponsesStream,
} from "./library/read-stream.ts";
export type { ReadAnswerOptions, ReadChatOptions, StreamSource } from "./library/read-stream.ts";
export {
  writeChatAnswer,
  writeChatChunks,
  writeChatStream,
  writeMessagesAnswer,
  writeMessagesEvents,
  writeMessagesStream,
  writeResponsesAnswer,
  writeResponsesEvents,
  writeResponsesStream,
} from "./library/write-stream.ts";
export type {
  ChatChunk,
  MessagesEvent,
  ResponsesEvent,
  WriteAnswerOptions,
  WriteChatOptions,
  WriteMessagesOptions,
  WriteResponsesOptions,
} from "./library/write-stream.ts";
export { repair } from "./check/repair.ts";
export type { RepairCaptureOptions } from "./check/repair.ts";
export type { CapturedApi } from "./apis/ordered-capture.ts";
export type { RepairedCapture } from "./apis/repair-capture.ts";
export { accumulateStream } from "./library/read-stream.ts";
export { accumulate } from "./core/accumulate.ts";
export type {
  GeneratedCall,
  GeneratedCallPart,
  GeneratedChoice,
  GeneratedFinish,
  GeneratedItem,
  GeneratedPart,
  GeneratedRefusal,
  GeneratedText,
  GeneratedReasoning,
  Generation,
} from "./core/accumulate.ts";
export { callProgress } from "./library/call-progress.ts";
export type { CallProgressEvent, EventSource, ProgressEvent } from "./library/call-progress.ts";
export { formatNames, ModelTextParser, parseModelText } from "./library/parse-model-text.ts";
export type { ModelTextOptions, ParsedMessage } from "./library/parse-model-text.ts";
export { toAssistantMessage } from "./library/openai-messages.ts";
export { parseArguments } from "./library/call-progress.ts";
export type { ParsedArguments } from "./library/call-progress.ts";
export { fromOpenAiMessages, toOpenAiMessages } from "./library/openai-messages.ts";
export type {
  ChatAssistantMessage as OpenAiAssistantMessage,
  ChatRequestContent as OpenAiContent,
  ChatRequestMessage as OpenAiMessage,
  ChatContentPart as OpenAiPart,
  ChatRequestToolCall as OpenAiToolCall,
} from "./apis/chat/request-types.ts";
export { fromOpenAiToolChoice, fromOpenAiTools, toOpenAiToolChoice, toOpenAiTools } from "./library/openai-tools.ts";
export { fromToolDefinition, toToolDefinition } from "./library/tool-definition.ts";
export type { ParameterDefinition, ParameterType, ToolDefinition } from "./library/tool-definition.ts";
export { fromOpenAiParameters, toOpenAiParameters } from "./library/openai-parameters.ts";
export type { GenerationParameters, OpenAiParameters, SamplingStrategy } from "./library/openai-parameters.ts";
export { readStopReason, writeStopReason } from "./library/openai-messages.ts";
export type { StopReason } from "./library/openai-messages.ts";
export { readTokenLogprobs, writeTokenLogprobs } from "./library/token-logprobs.ts";
export type { LogprobShape } from "./library/token-logprobs.ts";
export { imagePart, inlineImages, readDataUrl } from "./library/image-parts.ts";
export type { DownloadImage } from "./library/image-parts.ts";
export type { ImageBytes } from "./apis/adapt/fit-media.ts";
export { FailureError } from "./core/failure.ts";
export type {
  Annotation,
  AnnotationEvent,
  ChoiceEvent,
  EndEvent,
  ExtraEvent,
  FailureKind,
  FinishEvent,
  FinishReason,
  GenerationEnd,
  GenerationEvent,
  GenerationFailure,
  ImageProblem,
  MarkupEvent,
  DialectJson,
  PartEndEvent,
  PartStartEvent,
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
  PromptEvent,
  PromptProgressEvent,
  PromptTokenLogprob,
  TokensEvent,
  UsageEvent,
} from "./core/events.ts";
export type {
  AssistantMessage,
  AssistantPart,
  AudioPart,
  CacheablePart,
  Content,
  ContentPart,
  FilePart,
  HostedTool,
  ImagePart,
  JsonSchema,
  Message,
  ReasoningPart,
  RefusalPart,
  MessageBase,
  SystemMessage,
  TextPart,
  Tool,
  ToolCall,
  ToolCallPart,
  ToolChoice,
  ToolMessage,
  UserMessage,
} from "./core/message.ts";
export type { CacheMiss, CacheMissCause, DifferingTexts } from "./core/cache-miss.ts";
export type {
  AttemptObserver,
  GenerationObserver,
  ObservedAttempt,
  TurnStateCounts,
} from "./core/generation-observer.ts";
export type { CallState, DetailsState, ReasoningState, StateOrigin, TextState, TurnState } from "./core/turn-state.ts";
export type {
  AdaptationPlace,
  AnswerHeaders,
  AnswerReading,
  InspectedPrompt,
  Inspection,
  MessageRange,
  ReceivedAnswer,
  RepairPlace,
  SentRequest,
} from "./core/inspection.ts";
export type {
  DetokenizeRequest,
  EmbeddingAnswer,
  EmbeddingRequest,
  RerankAnswer,
  RerankRequest,
  Engine,
  EngineAnswer,
  EngineHealth,
  ServerProfileReport,
  EngineQuestion,
  ModelAdapter,
  ModelDefaults,
  ModelFileFacts,
  ModelInfo,
  QuestionKind,
  QuestionTypes,
  SlotState,
  UpstreamUrl,
  TextToTokenize,
  Tokenization,
  TokenizeRequest,
} from "./core/engine.ts";
export type {
  ChatPrompt,
  GenerationRequest,
  AnswerLimits,
  OutputConstraint,
  Passthrough,
  ReasoningOptions,
  Sampling,
  TemplateOptions,
  QueueTier,
  SealedValues,
  TextPrompt,
} from "./core/request.ts";
export type { RequestedAnswer } from "./apis/choices-answer.ts";
export type { AnswerSettings } from "./apis/port.ts";
export { cancellable } from "./core/cancellable.ts";
export type { SourceApi } from "./apis/source-port.ts";
export type {
  Args as FormatArguments,
  CallSyntax as FormatCall,
  Common as FormatCommon,
  Delimited as FormatDelimited,
  Format,
  Markers as FormatMarkers,
  NamedCall as FormatNamedCall,
  ObjectCall as FormatObjectCall,
  PlainFormat,
  Reasoning as FormatReasoning,
  FormatRoute,
  RoutedFormat,
  TaggedArgs as FormatTaggedArguments,
} from "./formats/format.ts";
export type { Repair, RepairId } from "./apis/tolerant/repairs.ts";
export type { AdaptationName } from "./apis/adapt/adaptation-names.ts";
export type { ServerProfile } from "./apis/adapt/server-profile.ts";
export type { OllamaModelState } from "./apis/ollama/context.ts";
