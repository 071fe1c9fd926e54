/** Functions for chat streams, messages and texts of models, which need nothing of Node and run in a browser as they are. */
export { ConfigError } from "./serve/config/config-error.ts";
export type { ConfigProblem } from "./serve/config/config-error.ts";
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
} from "./wire/apis/chat/program.ts";
export type {
  ProgramContentPart,
  ProgramMessage,
  ProgramOptions,
  ProgramTool,
  ProgramToolCall,
} from "./wire/apis/chat/request-types.ts";
export {
  readChatAnswer,
  readChatStream,
  readMessagesAnswer,
  readMessagesStream,
  readResponsesAnswer,
  readResponsesStream,
} from "./judge/library/read-stream.ts";
export type { EventSource, ReadAnswerOptions, ReadChatOptions, StreamSource } from "./judge/library/read-stream.ts";
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
} from "./judge/library/write-stream.ts";
export type {
  ChatChunk,
  MessagesEvent,
  ResponsesEvent,
  WriteAnswerOptions,
  WriteChatOptions,
  WriteMessagesOptions,
  WriteResponsesOptions,
} from "./judge/library/write-stream.ts";
export { repair } from "./judge/check/repair.ts";
export type { RepairCaptureOptions } from "./judge/check/repair.ts";
export type { CapturedApi } from "./wire/apis/ordered-capture.ts";
export type { RepairedCapture } from "./wire/apis/repair-capture.ts";
export { accumulateStream } from "./judge/library/read-stream.ts";
export { accumulate } from "./wire/core/accumulate.ts";
export type {
  GeneratedCall,
  GeneratedCallPart,
  GeneratedChoice,
  GeneratedFinish,
  GeneratedHostedCall,
  GeneratedItem,
  GeneratedPart,
  GeneratedRefusal,
  GeneratedText,
  GeneratedReasoning,
  Generation,
} from "./wire/core/accumulate.ts";
export { formatNames, ModelTextParser, parseModelText } from "./judge/library/parse-model-text.ts";
export type { ModelTextOptions, ParsedMessage } from "./judge/library/parse-model-text.ts";
export { FailureError } from "./wire/core/failure.ts";
export type {
  Annotation,
  AnnotationEvent,
  BudgetBound,
  ChoiceEvent,
  EndEvent,
  ExtraEvent,
  FailureKind,
  FinishEvent,
  FinishReason,
  GenerationEnd,
  GenerationEvent,
  GenerationFailure,
  HostedApprovalEvent,
  HostedCallDeltaEvent,
  HostedCallEndEvent,
  HostedCallStartEvent,
  HostedFunctionsEvent,
  HostedResultEvent,
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
} from "./wire/core/events.ts";
export type { JsonMistake } from "./wire/core/json-mistake.ts";
export type {
  AssistantMessage,
  AssistantPart,
  AudioPart,
  CacheablePart,
  Content,
  ContentPart,
  FilePart,
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
} from "./wire/core/message.ts";
export type {
  FunctionFilter,
  HostedCall,
  HostedCallIdentity,
  HostedCodeOutput,
  HostedContents,
  HostedDocument,
  HostedFailure,
  HostedFailureCode,
  HostedFileResults,
  HostedFunction,
  HostedImage,
  HostedResult,
  HostedSearch,
  HostedServer,
  HostedTool,
  HostedToolExecutor,
  HostedToolExecutors,
  HostedToolKind,
  HostedToolOptions,
  SearchResult,
} from "./wire/core/hosted-tool.ts";
export type { CacheMiss, CacheMissCause, DifferingTexts } from "./wire/core/cache-miss.ts";
export type {
  AttemptObserver,
  GenerationObserver,
  ObservedAttempt,
  TurnStateCounts,
} from "./wire/core/generation-observer.ts";
export type {
  CallState,
  DetailsState,
  ReasoningState,
  StateOrigin,
  TextState,
  TurnState,
} from "./wire/core/turn-state.ts";
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
} from "./wire/core/inspection.ts";
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
} from "./wire/core/engine.ts";
export type { ClientKey } from "./wire/core/client-key.ts";
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
} from "./wire/core/request.ts";
export type { RequestedAnswer } from "./wire/apis/choices-answer.ts";
export type { AnswerSettings } from "./wire/apis/port.ts";
export { defineHook } from "./wire/core/hook.ts";
export type { Hook, HookChange, HookContext, HookPart, HookRequest } from "./wire/core/hook.ts";
export { cancellable } from "./wire/core/cancellable.ts";
export type { SourceApi } from "./wire/apis/source-port.ts";
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
} from "./text/formats/format.ts";
export type { Repair, RepairId } from "./wire/apis/tolerant/repairs.ts";
export type { AdaptationName } from "./wire/apis/adapt/adaptation-names.ts";
export type { ServerProfile } from "./wire/apis/adapt/server-profile.ts";
export type { OllamaModelState } from "./wire/apis/ollama/context.ts";
