import type { GeneratedHostedCall } from "../../core/accumulate.ts";
import type { Annotation, HostedResultEvent } from "../../core/events.ts";
import { objectIn, type JsonObject } from "../../core/json.ts";
import type { CallState, ReasoningState } from "../../core/turn-state.ts";
import { orderedMembers } from "../members.ts";
import type { TurnSeal } from "../turn-seal.ts";
import { geminiPart } from "./schema.ts";
import { sealSignature, signatureIn } from "./signatures.ts";

export interface PartContext {
  readonly turnSeal: TurnSeal;
  readonly showsThoughts: boolean;
}

/** A call that is complete. */
export interface WrittenCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly kind?: "function" | "custom" | undefined;
  readonly state?: CallState | undefined;
}

interface EndedReasoning {
  readonly text: string;
  readonly summary?: readonly string[];
  readonly id?: string | undefined;
  readonly state?: ReasoningState | undefined;
}

/**
 * Writes the parts of one choice. The state of reasoning goes with the part that follows, because clients (Gemini CLI) return no thoughts;
 * without one, it goes with an empty text, as Gemini's own.
 */
export class PartWriter {
  readonly #context: PartContext;
  /** The signature of the next part. */
  #signature: string | undefined;
  /** What Google's tools have found and read. */
  readonly #queries: string[] = [];
  readonly #sources = new Map<string, string>();
  readonly #fetched: JsonObject[] = [];
  /** A call whose arguments are no JSON object, which has no part. */
  malformed: string | undefined;
  #calls = 0;

  constructor(context: PartContext) {
    this.#context = context;
  }

  get hasCalls(): boolean {
    return this.#calls > 0;
  }

  text(text: string): JsonObject {
    return this.#signed({ text });
  }

  /** A text of reasoning; undefined: it is not shown. */
  thought(text: string): JsonObject | undefined {
    return this.#context.showsThoughts && text !== "" ? { text, thought: true } : undefined;
  }

  /** Keeps the state of reasoning for the next part. Returns a part where that has a state already. */
  reasoningEnds({ text, summary = [], id, state }: EndedReasoning): JsonObject[] {
    if (!state) return [];
    const before = this.#waiting();
    const raw = text === "" ? signatureIn(state) : undefined;
    this.#signature =
      raw ??
      sealSignature(
        {
          ...(text !== "" && { text }),
          ...(summary.length > 0 && { summary }),
          ...(id !== undefined && { id }),
          state,
        },
        this.#context.turnSeal,
      );
    return before;
  }

  call({ id, name, arguments: text, kind, state }: WrittenCall): JsonObject[] {
    const args = kind === "custom" ? { input: text } : text.trim() === "" ? {} : objectIn(text);
    if (args === undefined) {
      this.malformed ??= `Malformed function call: ${name}(${text.slice(0, 1000)})`;
      return [];
    }
    this.#calls++;
    const before = state ? this.#waiting() : [];
    if (state) this.#signature = signatureIn(state) ?? sealSignature({ state, callId: id }, this.#context.turnSeal);
    const functionCall = { name, args, ...(id !== "" && { id }) };
    return [...before, this.#signed({ functionCall })];
  }

  /** Code that a hosted tool runs, and its output. Other results are for the candidate's metadata. */
  hosted(call: Pick<GeneratedHostedCall, "id" | "kind" | "arguments" | "native">): JsonObject[] {
    if (call.native?.dialect === "gemini") return [this.native(call.native.value)];
    const args = objectIn(call.arguments) ?? {};
    if (call.kind === "web_search" && typeof args["query"] === "string") this.#queries.push(args["query"]);
    if (call.kind !== "code_interpreter") return [];
    const code = typeof args["code"] === "string" ? args["code"] : call.arguments;
    return [this.#signed({ executableCode: { language: "PYTHON", code, id: call.id } })];
  }

  hostedResult({ id, kind, result, native }: HostedResultEvent): JsonObject[] {
    if (native?.dialect === "gemini") return [this.native(native.value)];
    if (result.kind === "search") for (const { url, title } of result.results) this.#sources.set(url, title);
    if (kind === "web_fetch")
      this.#fetched.push({
        ...(result.kind === "document" && { retrievedUrl: result.url }),
        urlRetrievalStatus: `URL_RETRIEVAL_STATUS_${result.kind === "document" ? "SUCCESS" : "ERROR"}`,
      });
    if (kind !== "code_interpreter") return [];
    const isDone = result.kind === "code" && result.returnCode === 0;
    const output =
      result.kind === "code" ? result.stdout + result.stderr : result.kind === "failure" ? result.message : "";
    return [{ codeExecutionResult: { outcome: isDone ? "OUTCOME_OK" : "OUTCOME_FAILED", output, id } }];
  }

  annotation({ url, title }: Annotation): void {
    if (url !== undefined) this.#sources.set(url, title ?? "");
  }

  /** The part of another kind that a source of this API has sent, unchanged. */
  native(part: JsonObject): JsonObject {
    return this.#signed(part);
  }

  /** The last parts: a signature that no part has had. */
  end(): JsonObject[] {
    return this.#waiting("text");
  }

  /** The members of the candidate about searches and pages. */
  get metadata(): JsonObject {
    const chunks = [...this.#sources].map(([uri, title]) => ({ web: { uri, ...(title !== "" && { title }) } }));
    return {
      ...((this.#queries.length > 0 || chunks.length > 0) && {
        groundingMetadata: {
          ...(chunks.length > 0 && { groundingChunks: chunks }),
          ...(this.#queries.length > 0 && { webSearchQueries: this.#queries }),
        },
      }),
      ...(this.#fetched.length > 0 && { urlContextMetadata: { urlMetadata: this.#fetched } }),
    };
  }

  #waiting(as: "thought" | "text" = "thought"): JsonObject[] {
    if (this.#signature === undefined) return [];
    return [this.#signed(as === "text" ? { text: "" } : { text: "", thought: true })];
  }

  #signed(part: JsonObject): JsonObject {
    const signature = this.#signature;
    if (signature === undefined) return part;
    this.#signature = undefined;
    return orderedMembers(geminiPart, { ...part, thoughtSignature: signature });
  }
}
