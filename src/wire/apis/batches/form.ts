import type { FailureError } from "../../core/failure.ts";
import type { JsonObject } from "../../core/json.ts";
import type { ApiErrorFormat } from "../api-error-format.ts";
import type { Profile } from "../profile.ts";
import type { BatchError } from "./schema.ts";

/** What a batch was created with. Times are Unix times in seconds. */
export interface BatchBeginning {
  readonly id: string;
  readonly api: "openai" | "anthropic";
  /** The path of its requests: `/v1/chat/completions`. */
  readonly endpoint: string;
  /** The file with its requests; "" if they came with the batch. */
  readonly inputId: string;
  /** The files of its results, and of its errors where the API has two. */
  readonly outputId: string;
  readonly errorId: string;
  readonly created: number;
  readonly expires: number;
  readonly metadata?: Readonly<Record<string, unknown>> | null | undefined;
  /** When the files expire, in seconds from their creation. */
  readonly outputExpiresIn?: number | undefined;
  /** The number of its requests, if it is known before they are read. */
  readonly total?: number;
  /** The headers that its requests have. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The number of requests by what became of them. */
export interface BatchCounts {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly expired: number;
}

export interface BatchUsage {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly reasoning: number;
}

/** A batch as it is now. Times are Unix times in seconds. */
export interface BatchState extends BatchBeginning {
  readonly counts: BatchCounts;
  readonly usage: BatchUsage;
  /** The model of all its requests; absent if they have several. */
  readonly model?: string | undefined;
  readonly startedAt?: number | undefined;
  readonly cancelledAt?: number | undefined;
  readonly finalizingAt?: number | undefined;
  readonly ended?: BatchEnd | undefined;
}

export interface BatchEnd {
  readonly at: number;
  readonly status: "completed" | "failed" | "expired" | "cancelled";
  readonly errors?: readonly BatchError[] | undefined;
}

/** A request of a batch. */
export interface BatchLine {
  readonly customId: string;
  readonly body: JsonObject;
}

/** The answer of a request. */
export interface LineAnswer {
  readonly status: number;
  readonly requestId: string;
  /** JSON on one line. */
  readonly body: string;
}

/** Why a request of a batch has no answer. */
export type Unanswered = "cancelled" | "expired";

/** The form of one API's batches. */
export interface BatchForm {
  readonly api: BatchBeginning["api"];
  readonly errorFormat: ApiErrorFormat;
  /** The most requests of a batch. */
  readonly maxLines: number;
  /** Reads a line of the input that is valid JSON. Returns what is wrong with it, if it is not a request of the batch. */
  readLine(value: unknown, batch: BatchBeginning): BatchLine | BatchError;
  /** The line of an answer, without its line end. `id`: of the line. */
  answered(customId: string, answer: LineAnswer, id: string): string;
  unanswered(customId: string, why: Unanswered, id: string): string;
  /** `baseUrl`: where the client reaches this server, such as `http://localhost:8080`. */
  one(batch: BatchState, profile: Profile, baseUrl: string): string;
  page(batches: readonly BatchState[], hasMore: boolean, profile: Profile, baseUrl: string): string;
  /** 404. */
  missing(id: string): FailureError;
}
