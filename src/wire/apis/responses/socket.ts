import { FailureError, invalidRequest } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { commonStatus, errorObject } from "../error-body.ts";
import { jsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import { orderedMembers } from "../members.ts";
import type { StreamWriter } from "../port.ts";
import type { PortSocket, SocketConnection, SocketRequest, SocketRequestEnd } from "../port-state.ts";
import { invalidType, missingParameter, unknownParameter, valuePhrase } from "../request/refusals.ts";
import { anyObject } from "../request/shapes.ts";
import { asSent, parsed, steerInput } from "./request-schema.ts";
import { steerEvents } from "./event-schema.ts";
import type { SteerErrorCode } from "./event-schema.ts";
import { keysOf } from "./state/stored-response.ts";
import { ResponseStreamWriter } from "./stream-writer.ts";

/**
 * `wss://…/v1/responses`. A client sends `{"type": "response.create", …}` with the members of a request; `stream` has no effect. Requests
 * with different `stream_id`s run in parallel. `{"type": "response.steer", …}` adds input to a response that is being generated.
 * Source: OpenAI's guides to WebSocket mode and steering; openai 7.57, `ResponsesClientEvent`; the compliance tests of Open Responses.
 */
export const responsesSocket: PortSocket = {
  maxRunning: 16,
  maxLanes: 32,
  connect: (random) => new ResponsesConnection(random),
};

const streamIdPattern = /^[A-Za-z0-9_.-]{1,256}$/;

const invalidStreamId = invalidRequest(
  "The 'stream_id' field must be a non-empty string with at most 256 characters and may only contain letters, numbers, underscores, hyphens, and periods.",
  "stream_id",
  "invalid_stream_id",
);

/** Programs and servers of other APIs have neither: each of their requests is a conversation of its own. */
const noLanes = invalidRequest(
  "Unsupported parameter: 'stream_id' is for local models and upstreams that speak Responses. Leave it out, or open a WebSocket connection for each conversation.",
  "stream_id",
  "unsupported_parameter",
);

/** The maximum number of steers that wait for one response; and the bytes of those of one connection, each at least `minSteerBytes`. */
const maxSteers = 32;
const maxSteerBytes = 8 * 1024 * 1024;
const minSteerBytes = 1024;

/** The number of ended responses that a connection remembers, to say why they cannot be steered. */
const maxRemembered = 1024;

const steerMessages: Readonly<Record<SteerErrorCode, string>> = {
  response_not_found: "The response is not available on this connection.",
  invalid_input: "The steering input is invalid.",
  steering_not_supported: "This response does not support steering.",
  too_many_pending_steers: "Too much steering input is pending for this response.",
  response_already_completed: "The response has already completed.",
  response_not_active: "The response no longer accepts steering input.",
  successor_creation_failed: "The successor of the response could not be created.",
};

interface Steer {
  readonly id: string;
  readonly input: unknown;
  /** The response that it steers. */
  readonly responseId: string;
  readonly bytes: number;
}

/** A response whose numbers the events about its steers continue. */
interface SteeredResponse {
  readonly lane: string | undefined;
  takeNumber(): number;
}

/** A response that has ended on this connection. */
class EndedResponse implements SteeredResponse {
  readonly lane: string | undefined;
  readonly outcome: "completed" | "failed";
  /** Steers that wait for the client to send the results of calls. */
  #waiting: readonly Steer[];
  #number: number;

  constructor(lane: string | undefined, writer: ResponseStreamWriter, waiting: readonly Steer[]) {
    this.lane = lane;
    this.outcome = writer.outcome === "completed" ? "completed" : "failed";
    this.#waiting = waiting;
    this.#number = writer.takeNumber();
  }

  takeNumber(): number {
    return this.#number++;
  }

  /** Returns the waiting steers, which wait no longer. */
  takeWaiting(): readonly Steer[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}

class ResponsesConnection implements SocketConnection {
  readonly tooManyLanes = invalidRequest(
    `This WebSocket connection has reached its maximum number of distinct stream IDs (${responsesSocket.maxLanes}). Reuse an existing stream_id or open a new WebSocket connection.`,
    "stream_id",
    "websocket_stream_limit_reached",
  );
  // OpenAI's guide shows these members in this order.
  readonly expired = eventText({
    type: "error",
    error: {
      type: "invalid_request_error",
      code: "websocket_connection_limit_reached",
      message:
        "Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.",
    },
    status: 400,
  });
  readonly #random: () => number;
  readonly #running = new Set<CreateRequest>();
  /** By the ids of the responses, the oldest first. */
  readonly #ended = new Map<string, EndedResponse>();
  #steerBytes = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  receive(message: unknown, bytes: number): string | SocketRequest {
    const isSteer = isObject(message) && message["type"] === "response.steer";
    return isSteer ? this.#steer(message, bytes) : new CreateRequest(this, message);
  }

  /** The answer of a request begins. */
  began(request: CreateRequest): void {
    this.#running.add(request);
  }

  ended(request: CreateRequest, waiting: readonly Steer[]): void {
    this.#running.delete(request);
    const { writer, responseId, lane } = request;
    if (!writer || responseId === "") return;
    this.#ended.set(responseId, new EndedResponse(lane, writer, waiting));
    const [oldest] = this.#ended;
    if (this.#ended.size <= maxRemembered || oldest === undefined) return;
    const [id, response] = oldest;
    this.#ended.delete(id);
    this.release(response.takeWaiting());
  }

  /** Returns a response that has ended on this connection. */
  find(responseId: unknown): EndedResponse | undefined {
    return typeof responseId === "string" ? this.#ended.get(responseId) : undefined;
  }

  /** Called when steers are committed, or have failed. */
  release(steers: readonly Steer[]): void {
    for (const { bytes } of steers) this.#steerBytes -= bytes;
  }

  #steer(message: JsonObject, messageBytes: number): string {
    const { type: _, previous_response_id: id, input, ...others } = message;
    if (typeof id !== "string") {
      const { failure } =
        id === undefined
          ? missingParameter("previous_response_id")
          : invalidType("previous_response_id", "a string", valuePhrase(id));
      return errorEvent(commonStatus(failure), errorObject(failure), undefined);
    }
    const active = id === "" ? undefined : [...this.#running].find(({ responseId }) => responseId === id);
    const ended = this.#ended.get(id);
    const fail = (code: SteerErrorCode, text?: string): string =>
      failedSteer(active ?? ended, code, text, { responseId: id, input });
    const [unknown] = Object.keys(others);
    try {
      if (unknown !== undefined) throw unknownParameter(unknown);
      parsed(steerInput, input, "input");
    } catch (error) {
      if (error instanceof FailureError) return fail("invalid_input", error.failure.message);
      throw error;
    }
    const outcome = ended?.outcome ?? active?.writer?.outcome;
    if (outcome) return fail(outcome === "completed" ? "response_already_completed" : "response_not_active");
    if (!active) return fail("response_not_found");
    if (!active.isSteerable) return fail("steering_not_supported");
    const bytes = Math.max(messageBytes, minSteerBytes);
    if (active.steers.length >= maxSteers || this.#steerBytes + bytes > maxSteerBytes)
      return fail("too_many_pending_steers");
    const steer = { id: `steer_${this.#digits(32)}`, input, responseId: id, bytes };
    this.#steerBytes += bytes;
    active.steers.push(steer);
    active.writer?.steer();
    return steerEvent("accepted", active, { steer: { id: steer.id, previous_response_id: id } });
  }

  #digits(count: number): string {
    return Array.from({ length: count }, () => Math.floor(this.#random() * 16).toString(16)).join("");
  }
}

/** The steers that the input of a request begins with, and the response before it. */
interface Commitment {
  readonly steers: readonly Steer[];
  readonly after: SteeredResponse;
}

/** A `response.create`, or the request that follows a steered response by itself. */
class CreateRequest implements SocketRequest, SteeredResponse {
  readonly lane: string | undefined;
  refusal?: FailureError;
  /** The writer of the answer, once it is known. */
  writer: ResponseStreamWriter | undefined;
  /** Accepted input that this response is to be continued with. */
  readonly steers: Steer[] = [];
  readonly #connection: ResponsesConnection;
  /** As received. */
  readonly #value: unknown;
  readonly #message: JsonObject;
  readonly #isAutomatic: boolean;
  #commitment: Commitment | undefined;
  #hasLanes = false;

  constructor(connection: ResponsesConnection, message: unknown, automatic?: Commitment) {
    this.#connection = connection;
    this.#value = message;
    this.#message = isObject(message) ? message : {};
    this.#isAutomatic = automatic !== undefined;
    this.#commitment = automatic;
    const lane = this.#message["stream_id"] ?? undefined;
    if (typeof lane === "string" && streamIdPattern.test(lane)) this.lane = lane;
    else if (lane !== undefined) this.refusal = invalidStreamId;
  }

  /** "" before the answer has begun. */
  get responseId(): string {
    return this.writer?.responseId ?? "";
  }

  /** Steering is for responses without a conversation object and without compaction. Source: openai 7.57, `ResponseSteerEvent`. */
  get isSteerable(): boolean {
    const { conversation, context_management: management } = this.#message;
    return this.#hasLanes && (conversation ?? null) === null && !(Array.isArray(management) && management.length > 0);
  }

  takeNumber(): number {
    return this.writer?.takeNumber() ?? 0;
  }

  readBody(): unknown {
    if (this.refusal) throw this.refusal;
    const { type, stream_id: _, stream_options: options, ...body } = parsed(anyObject(), this.#value, "message");
    if (type !== "response.create") {
      const name = JSON.stringify(type);
      const message = `Unknown message type ${name}: expected 'response.create' or 'response.steer'.`;
      throw invalidRequest(message, "type", "invalid_value");
    }
    if (body["background"] === true) {
      const message = "Unsupported parameter: 'background' is not supported on a WebSocket connection.";
      throw invalidRequest(message, "background", "unsupported_parameter");
    }
    return {
      ...body,
      ...this.#steeredInput(),
      stream: true,
      ...(options !== undefined && { stream_options: options }),
    };
  }

  answering(writer: StreamWriter, hasLanes: boolean): void {
    if (!(writer instanceof ResponseStreamWriter)) return;
    if (!hasLanes && this.lane !== undefined) throw noLanes;
    this.#hasLanes = hasLanes;
    writer.streamId = this.lane;
    this.writer = writer;
    this.#connection.began(this);
  }

  failed(status: number, body: string): string {
    const { error } = JSON.parse(body) as { readonly error: ReturnType<typeof errorObject> };
    const { steers = [], after } = this.#commitment ?? {};
    const event = this.#isAutomatic ? "" : errorEvent(status, error, this.lane);
    return event + failedSteers(steers, after, error.message);
  }

  ended(): SocketRequestEnd {
    const { writer, steers, responseId } = this;
    const connection = this.#connection;
    connection.release(this.#commitment?.steers ?? []);
    const outcome = writer?.outcome ?? null;
    // A turn that is refused ends the conversation of its lane. A fork leaves the response to the lane that it comes from.
    const previous = this.#message["previous_response_id"];
    const parent = outcome === null ? connection.find(previous) : undefined;
    const evicted = parent && parent.lane === this.lane ? { evicted: keysOf(String(previous)) } : {};
    if (!writer || outcome !== "completed" || steers.length === 0) {
      const events = failedSteers(steers, this, "The response failed.");
      connection.ended(this, []);
      connection.release(steers);
      return { events, ...evicted };
    }
    const required = writer.output.flatMap(requiredInput);
    if (required.length > 0) {
      const reason = "waiting_for_required_input";
      const events = steers.map(({ id }) =>
        steerEvent("pending", this, {
          reason,
          required_input: required,
          steer: { id, previous_response_id: responseId },
        }),
      );
      connection.ended(this, steers);
      return { events: events.join("") };
    }
    connection.ended(this, []);
    const input = steers.flatMap(({ input }) => itemsOf(input));
    const message = { ...this.#message, previous_response_id: responseId, input };
    const request = new CreateRequest(connection, message, { steers, after: connection.find(responseId) ?? this });
    return { events: "", next: { request, message } };
  }

  /** Returns the input with the steers that waited for this request. */
  #steeredInput(): { readonly input?: unknown } {
    const { previous_response_id: previous, input } = this.#message;
    const after = this.#connection.find(previous);
    if (after === undefined || after.lane !== this.lane) return {};
    const steers = after.takeWaiting();
    if (steers.length === 0) return {};
    this.#commitment = { steers, after };
    return { input: [...steers.flatMap(({ input }) => itemsOf(input)), ...itemsOf(input)] };
  }
}

/** Returns the items of an input, which may be a text. */
function itemsOf(input: unknown): readonly unknown[] {
  if (Array.isArray(input)) return input;
  return typeof input === "string" ? [{ type: "message", role: "user", content: input }] : [];
}

/** Returns what the client must send before a response with this item can be continued. Source: openai 7.57, `ResponseSteerRequiredInput`. */
function requiredInput(item: JsonValue): JsonValue[] {
  const members = item as { readonly [member: string]: JsonValue | undefined };
  const { type, id, call_id: callId, name, execution } = members;
  // The output of an async tool's call may come later, or never.
  if (members["async"] === true) return [];
  switch (type) {
    case "function_call":
      return [{ type: "function_call_output", call_id: callId ?? "", name: name ?? "" }];
    case "custom_tool_call":
    case "computer_call":
    case "shell_call":
    case "apply_patch_call":
      return [{ type: `${type}_output`, call_id: callId ?? "" }];
    case "tool_search_call":
      return execution === "client" ? [{ type: "tool_search_output", call_id: callId ?? "", execution: "client" }] : [];
    case "mcp_approval_request":
      return [{ type: "mcp_approval_response", approval_request_id: id ?? "" }];
    default:
      return [];
  }
}

function steerEvent(
  name: "accepted" | "pending" | "failed",
  response: SteeredResponse | undefined,
  members: { readonly [member: string]: JsonValue | undefined },
): string {
  const type = `response.steer.${name}`;
  const schema = steerEvents.get(type);
  if (schema === undefined) throw new TypeError(`No schema for the event ${type}.`);
  const number = response?.takeNumber() ?? 0;
  return eventText(orderedMembers(schema, { type, ...members, sequence_number: number, stream_id: response?.lane }));
}

function failedSteer(
  response: SteeredResponse | undefined,
  code: SteerErrorCode,
  message = steerMessages[code],
  { id, input, responseId }: { readonly id?: string; readonly input: unknown; readonly responseId: string },
): string {
  return steerEvent("failed", response, {
    error: { type: "invalid_request_error", code, message },
    steer: { id, input: asSent(input), previous_response_id: responseId },
  });
}

function failedSteers(steers: readonly Steer[], response: SteeredResponse | undefined, reason: string): string {
  const code = "successor_creation_failed";
  return steers.map((steer) => failedSteer(response, code, `${steerMessages[code]} ${reason}`, steer)).join("");
}

/** OpenAI's guide shows `stream_id` before the error, and the members of the error in this order. */
function errorEvent(
  status: number,
  { type, code, message, param }: ReturnType<typeof errorObject>,
  lane: string | undefined,
): string {
  return eventText({ type: "error", status, stream_id: lane, error: { type, code, message, param } });
}

function eventText(event: JsonValue): string {
  return `data: ${jsonText(event)}\n\n`;
}
