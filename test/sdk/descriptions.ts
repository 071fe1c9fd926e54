import * as z from "zod";
import * as batches from "../../src/wire/apis/batches/schema.ts";
import * as chat from "../../src/wire/apis/chat/schema.ts";
import * as completions from "../../src/wire/apis/completions/schema.ts";
import * as conversations from "../../src/wire/apis/conversations/schema.ts";
import * as embeddings from "../../src/wire/apis/embeddings/schema.ts";
import * as files from "../../src/wire/apis/files/schema.ts";
import * as messages from "../../src/wire/apis/messages/schema.ts";
import * as models from "../../src/wire/apis/models/schema.ts";
import { responseErrorEvent, responseEvents } from "../../src/wire/apis/responses/event-schema.ts";
import * as responses from "../../src/wire/apis/responses/schema.ts";
import * as transcriptions from "../../src/wire/apis/transcriptions/schema.ts";
import { chatParameters } from "../../src/wire/apis/chat/request.ts";
import type { RequestParameter } from "../../src/wire/apis/request/parameter.ts";
import { completionParameters } from "../../src/wire/apis/completions/request.ts";
import { messageParameters, messageRequest } from "../../src/wire/apis/messages/request-schema.ts";
import * as ollama from "../../src/wire/apis/ollama/schema.ts";
import * as ollamaRequests from "../../src/wire/apis/ollama/request-schema.ts";
import { steerInput } from "../../src/wire/apis/responses/request-schema.ts";
import { responsesParameters } from "../../src/wire/apis/responses/parameters.ts";

/** An object of an API, as the vendor's SDK declares it and as we describe it. */
export interface Description {
  /** Of the vendor: `openai`, `@anthropic-ai/sdk`. */
  readonly sdk: string;
  /** Module and type of the SDK: `resources/messages/messages:Message`. */
  readonly type: string;
  /** Names it in reports: `chat: request`. */
  readonly name: string;
  readonly schema: z.ZodType;
  /** Of a request: what each of its members does. */
  readonly parameters: readonly Parameter[];
}

type Parameter = Pick<RequestParameter, "name" | "treatment">;

/** Returns the schema of a request whose members are in a table of parameters. */
function request(parameters: readonly Pick<RequestParameter, "name" | "shape">[]): z.ZodType {
  return z.object(Object.fromEntries(parameters.map(({ name, shape }) => [name, shape])));
}

const openai = (type: string, name: string, schema: z.ZodType, parameters: readonly Parameter[] = []): Description => ({
  sdk: "openai",
  type,
  name,
  schema,
  parameters,
});
const anthropic = (
  type: string,
  name: string,
  schema: z.ZodType,
  parameters: readonly Parameter[] = [],
): Description => ({ sdk: "@anthropic-ai/sdk", type: `resources/messages/messages:${type}`, name, schema, parameters });
const anthropicIn = (type: string, name: string, schema: z.ZodType): Description => ({
  sdk: "@anthropic-ai/sdk",
  type: `resources/${type}`,
  name,
  schema,
  parameters: [],
});
const ollamaSdk = (type: string, name: string, schema: z.ZodType): Description => ({
  sdk: "ollama",
  type: `dist/browser:${type}`,
  name: `ollama: ${name}`,
  schema,
  parameters: [],
});
const chatModule = "resources/chat/completions/completions";
const conversationsModule = "resources/conversations/conversations";
const responsesModule = "resources/responses/responses";

/** The events of Responses. The response inside them is compared once, as `responses: answer`. */
const streamedEvents = z.union(
  [...responseEvents.values(), responseErrorEvent].map((event) =>
    "response" in event.shape ? event.extend({ response: z.unknown() }) : event,
  ),
);

/** What clients send over a WebSocket. The members of `response.create` are those of a request. */
const clientEvents = z.union([
  z.object({
    type: z.literal("response.create"),
    ...Object.fromEntries(responsesParameters.map(({ name, shape }) => [name, shape])),
  }),
  z.object({ type: z.literal("response.steer"), previous_response_id: z.string(), input: steerInput }),
]);

/** Every object of every API that the SDKs declare and that we read or write. */
export const descriptions: readonly Description[] = [
  openai(`${chatModule}:ChatCompletionCreateParamsBase`, "chat: request", request(chatParameters), chatParameters),
  openai(`${chatModule}:ChatCompletion`, "chat: answer", chat.chatCompletion),
  openai(`${chatModule}:ChatCompletionChunk`, "chat: chunk", chat.chatChunk),
  openai(
    "resources/completions:CompletionCreateParamsBase",
    "completions: request",
    request(completionParameters),
    completionParameters,
  ),
  openai("resources/completions:Completion", "completions: answer", completions.completion),
  openai(
    `${responsesModule}:ResponseCreateParamsBase`,
    "responses: request",
    request(responsesParameters),
    responsesParameters,
  ),
  openai(`${responsesModule}:Response`, "responses: answer", responses.response),
  openai(`${responsesModule}:ResponseStreamEvent`, "responses: event", streamedEvents),
  openai(`${responsesModule}:ResponsesClientEvent`, "responses: client event", clientEvents),
  openai(`${conversationsModule}:ConversationCreateParams`, "conversations: request", conversations.createConversation),
  openai(`${conversationsModule}:ConversationUpdateParams`, "conversations: update", conversations.updateConversation),
  openai(`${conversationsModule}:Conversation`, "conversations: answer", conversations.conversation),
  openai(
    `${conversationsModule}:ConversationDeletedResource`,
    "conversations: deletion",
    conversations.conversationDeletion,
  ),
  openai("resources/conversations/items:ConversationItemList", "conversations: items", responses.inputItemList),
  openai("resources/embeddings:CreateEmbeddingResponse", "embeddings: answer", embeddings.embeddings),
  openai("resources/files:FileObject", "files: file", files.openaiFile),
  openai("resources/files:FileDeleted", "files: deletion", files.openaiFileDeletion),
  openai("resources/batches:BatchCreateParams", "batches: request", batches.createBatch),
  openai("resources/batches:Batch", "batches: batch", batches.openaiBatch),
  openai("resources/models:Model", "models: model", models.openaiModel),
  openai(
    "resources/audio/transcriptions:TranscriptionCreateParamsBase",
    "transcriptions: request",
    transcriptions.transcriptionRequest.extend({ file: z.unknown(), chunking_strategy: z.unknown() }),
  ),
  openai("resources/audio/transcriptions:Transcription", "transcriptions: answer", transcriptions.transcription),
  openai(
    "resources/audio/transcriptions:TranscriptionStreamEvent",
    "transcriptions: event",
    transcriptions.transcriptionEvent,
  ),
  openai(
    "resources/audio/translations:TranslationCreateParams",
    "translations: request",
    transcriptions.translationRequest.extend({ file: z.unknown() }),
  ),
  openai("resources/audio/translations:Translation", "translations: answer", transcriptions.translation),
  anthropic("MessageCreateParamsBase", "messages: request", messageRequest, messageParameters),
  anthropic("Message", "messages: answer", messages.message),
  anthropic("RawMessageStreamEvent", "messages: event", messages.streamEvent),
  anthropicIn("messages/batches:MessageBatch", "messages: batch", batches.messageBatch),
  anthropicIn("messages/batches:DeletedMessageBatch", "messages: batch deletion", batches.messageBatchDeletion),
  anthropicIn("beta/files:BetaFileMetadata", "messages: file", files.anthropicFile),
  anthropicIn("beta/files:BetaDeletedFile", "messages: file deletion", files.anthropicFileDeletion),
  anthropic("MessageTokensCount", "messages: count_tokens answer", messages.tokenCount),
  ollamaSdk(
    "ChatRequest",
    "chat request",
    ollamaRequests.ollamaChatRequest.extend({ options: ollamaRequests.ollamaOptions.nullish() }),
  ),
  ollamaSdk("ChatResponse", "chat answer", ollama.ollamaChatResponse),
  ollamaSdk(
    "GenerateRequest",
    "generate request",
    ollamaRequests.ollamaGenerateRequest.extend({ options: z.unknown() }),
  ),
  ollamaSdk("GenerateResponse", "generate answer", ollama.ollamaGenerateResponse),
  ollamaSdk("EmbedRequest", "embed request", ollamaRequests.ollamaEmbedRequest.extend({ options: z.unknown() })),
  ollamaSdk("EmbedResponse", "embed answer", ollama.ollamaEmbedResponse),
  ollamaSdk("EmbeddingsResponse", "embeddings answer", ollama.ollamaEmbeddingsResponse),
  ollamaSdk("ShowRequest", "show request", ollamaRequests.ollamaShowRequest.extend({ options: z.unknown() })),
  ollamaSdk("ShowResponse", "show answer", ollama.ollamaShownModel),
  ollamaSdk("PullRequest", "pull request", ollamaRequests.ollamaPullRequest),
  ollamaSdk("ProgressResponse", "progress", ollama.ollamaProgress),
  ollamaSdk("ModelResponse", "loaded model", ollama.ollamaLoadedModel.extend({ modified_at: z.unknown() })),
];
