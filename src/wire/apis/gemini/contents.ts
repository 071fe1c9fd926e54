import type * as z from "zod";
import { invalidRequest } from "../../core/failure.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { assistantContent } from "../../core/message.ts";
import type { AssistantPart, Content, ContentPart, Message, ReasoningPart, TextPart } from "../../core/message.ts";
import type { CallState } from "../../core/turn-state.ts";
import { StepCounter, type Steps } from "../../core/steps.ts";
import { BodyCounter } from "../body-counter.ts";
import type { Profile } from "../profile.ts";
import { OpenCalls } from "../request/open-calls.ts";
import { refuseOrWarn } from "../request/vendor-rules.ts";
import type { SealedReasoning, TurnSeal } from "../turn-seal.ts";
import { invalidBytes, standardBase64 } from "./proto-json.ts";
import type { geminiRequest, geminiRequestPart } from "./request-schema.ts";
import { callState, openSignature } from "./signatures.ts";

type Body = z.infer<typeof geminiRequest>;
export type ReadContent = NonNullable<NonNullable<Body["contents"]>[number]>;
type RequestPart = z.infer<typeof geminiRequestPart>;
type FunctionResponse = NonNullable<RequestPart["functionResponse"]>;

export interface ReadContents {
  readonly messages: readonly Message[];
  /** See `Passthrough`. */
  readonly sealed: ReadonlyMap<string, SealedReasoning>;
  readonly isTextPrompt: boolean;
}

interface Judging {
  readonly profile: Profile;
  readonly forwards: boolean;
  readonly warnings: string[];
}

/**
 * Converts the contents of a request into messages: results of calls as messages of their own, and consecutive contents of the model as one
 * message, because the clients of streams return each chunk as a content.
 */
export function* readContents(
  { contents, systemInstruction }: Body,
  seal: TurnSeal,
  judging: Judging,
): Steps<ReadContents> {
  if (!contents || contents.length === 0)
    throw invalidRequest("* GenerateContentRequest.contents: contents is not specified\n", "contents");
  const reader = new ContentReader(seal, judging);
  if (systemInstruction) yield* reader.read({ ...systemInstruction, role: "system" }, "systemInstruction");
  for (const [at, content] of contents.entries()) yield* reader.read(content, `contents[${at}]`);
  return reader.end();
}

/** The data members of parts. Other parts have none. */
const dataMembers = [
  "text",
  "inlineData",
  "fileData",
  "functionCall",
  "functionResponse",
  "executableCode",
  "codeExecutionResult",
  "toolCall",
  "toolResponse",
] as const;

class ContentReader {
  readonly #seal: TurnSeal;
  readonly #judging: Judging;
  readonly #counter = new BodyCounter();
  readonly #sealed = new Map<string, SealedReasoning>();
  readonly #messages: Message[] = [];
  readonly #calls = new OpenCalls();
  readonly #pace = new StepCounter();
  /** The message of the model that further contents may continue. */
  #turn: { readonly parts: AssistantPart[]; readonly path: string } | undefined;
  #isTextPrompt = true;

  constructor(seal: TurnSeal, judging: Judging) {
    this.#seal = seal;
    this.#judging = judging;
  }

  *read({ role: given, parts }: ReadContent, path: string): Steps<void> {
    const role = this.#roleOf(given, path);
    if ((parts ?? []).length === 0)
      this.#refuse(`* GenerateContentRequest.${path}.parts: contents.parts must not be empty.\n`, `${path}.parts`);
    const others: ContentPart[] = [];
    for (const [at, part] of (parts ?? []).entries()) {
      const place = `${path}.parts[${at}]`;
      if (role === "model") this.#modelPart(part, place);
      else if (part.functionResponse) this.#result(part.functionResponse, place);
      else others.push(...this.#contentOf(part, place));
      if (this.#pace.endsStep()) yield;
    }
    if (role === "model") return;
    if (others.length === 0) return;
    this.#endTurn();
    const content = contentOf(others);
    this.#messages.push(role === "system" ? { role, content, path } : { role: "user", content, path });
  }

  end(): ReadContents {
    this.#endTurn();
    return { messages: this.#messages, sealed: this.#sealed, isTextPrompt: this.#isTextPrompt };
  }

  #refuse(words: string, param: string): void {
    const { forwards, profile } = this.#judging;
    if (!forwards || profile.isVendor) refuseOrWarn(invalidRequest(words, param), "Google", this.#judging);
  }

  #roleOf(role: string | null | undefined, path: string): "user" | "model" | "system" {
    switch (role?.toLowerCase()) {
      case undefined:
      case "":
      case "user":
      case "function":
      case "tool":
        return "user";
      case "model":
        return "model";
      case "system":
        if (path !== "systemInstruction") this.#refuse("Please use a valid role: user, model.", `${path}.role`);
        return "system";
      default: {
        const words = "Please use a valid role: user, model.";
        if (role !== "assistant" && !this.#judging.forwards) throw invalidRequest(words, `${path}.role`);
        this.#refuse(words, `${path}.role`);
        return role === "assistant" ? "model" : "user";
      }
    }
  }

  #endTurn(): void {
    const turn = this.#turn;
    this.#turn = undefined;
    if (turn && turn.parts.length > 0)
      this.#messages.push({ role: "assistant", content: assistantContent(joined(turn.parts)), path: turn.path });
  }

  #modelPart(part: RequestPart, place: string): void {
    const { parts } = (this.#turn ??= { parts: [], path: place.replace(/\.parts\[\d+\]$/, "") });
    const { text, functionCall, executableCode, codeExecutionResult } = part;
    const signature = part.thoughtSignature || undefined;
    const opened = signature === undefined ? undefined : openSignature(signature, this.#seal, this.#counter);
    if (signature !== undefined && opened && "sealed" in opened) this.#sealed.set(signature, opened.sealed);
    const sealed = opened && "sealed" in opened ? opened.sealed : undefined;
    const raw = opened && "raw" in opened ? opened.raw : undefined;
    if (sealed && sealed.state?.kind !== "call") restoreReasoning(parts, sealed);
    if (part.thought === true && typeof text === "string") {
      if (!sealed) parts.push({ type: "reasoning", text, ...(raw && { state: { kind: "part", value: raw } }) });
      return;
    }
    if (functionCall) {
      const name = functionCall.name ?? "";
      const id = functionCall.id || `call_${place.replaceAll(/\D+/g, "_").slice(1, -1)}`;
      if (name === "")
        throw invalidRequest(
          `* GenerateContentRequest.${place}.function_call.name: Name cannot be empty.\n`,
          `${place}.functionCall.name`,
        );
      const state: CallState | undefined =
        sealed?.state?.kind === "call" ? sealed.state : raw === undefined ? undefined : callState(raw);
      this.#calls.add({ id, name });
      const call = { type: "tool-call", id, name, arguments: JSON.stringify(functionCall.args ?? {}) } as const;
      parts.push({ ...call, ...(state && { state }) });
      return;
    }
    if (typeof text === "string") {
      if (text !== "") parts.push({ type: "text", text });
    } else if (executableCode) parts.push({ type: "text", text: fenced(executableCode.code ?? "", "python") });
    else if (codeExecutionResult) parts.push({ type: "text", text: fenced(codeExecutionResult.output ?? "", "") });
    else if (signature === undefined || hasData(part))
      parts.push(...this.#contentOf(part, place).filter(isAssistantPart));
    // The signature of a text ends it.
    if (raw) parts.push({ type: "reasoning", text: "", state: { kind: "part", value: raw } });
  }

  #result(response: FunctionResponse, place: string): void {
    this.#endTurn();
    const call = this.#calls.take(response.id, response.name);
    const { content, isError } = resultOf(response.response ?? {});
    const parts = (response.parts ?? []).flatMap((part, at) =>
      this.#contentOf(part, `${place}.functionResponse.parts[${at}]`),
    );
    const name = response.name || call?.name;
    this.#messages.push({
      role: "tool",
      content:
        parts.length === 0
          ? content
          : [...(content === "" ? [] : [{ type: "text" as const, text: content }]), ...parts],
      toolCallId: response.id || call?.id || `call_${place.replaceAll(/\D+/g, "_").slice(1, -1)}`,
      path: place,
      ...(name && { name }),
      ...(isError && { isError }),
    });
  }

  #contentOf(part: RequestPart, place: string): ContentPart[] {
    const { text, inlineData, fileData, executableCode, codeExecutionResult } = part;
    if (typeof text === "string") return [{ type: "text", text }];
    if (inlineData) {
      const data = standardBase64(inlineData.data ?? "");
      if (data === undefined || data === "") throw invalidBytes(`${place}.inlineData.data`, inlineData.data ?? "");
      this.#isTextPrompt = false;
      return [mediaPart(inlineData.mimeType ?? "", data, inlineData.displayName, place)];
    }
    if (fileData) {
      this.#isTextPrompt = false;
      return [this.#filePart(fileData, place)];
    }
    if (executableCode) return [{ type: "text", text: fenced(executableCode.code ?? "", "python") }];
    if (codeExecutionResult) return [{ type: "text", text: fenced(codeExecutionResult.output ?? "", "") }];
    if (part.functionCall)
      this.#refuse(
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        place,
      );
    else if (!hasData(part))
      this.#refuse(
        `* GenerateContentRequest.${place}.data: required oneof field 'data' must have one initialized field\n`,
        place,
      );
    return [];
  }

  #filePart({ fileUri: uri, mimeType, displayName }: NonNullable<RequestPart["fileData"]>, place: string): ContentPart {
    const url = uri ?? "";
    const [, type, data] = /^data:([^;,]{0,200});base64,(.*)$/s.exec(url) ?? [];
    if (type !== undefined && data !== undefined) return mediaPart(mimeType || type, data, displayName, place);
    const isStored = !/^https?:\/\//i.test(url) || /^https:\/\/generativelanguage\.googleapis\.com\//i.test(url);
    if (isStored && !this.#judging.forwards)
      throw invalidRequest(
        `${place}.fileData.fileUri: this server has no files of Google's File API ('${url.slice(0, 200)}'). Send the bytes as inlineData, or a URL that begins with https://.`,
        `${place}.fileData.fileUri`,
      );
    if (mimeType?.startsWith("image/")) return { type: "image", url };
    return { type: "file", url, ...(displayName && { name: displayName }) };
  }
}

function hasData(part: RequestPart): boolean {
  return dataMembers.some((name) => isObject(part[name]));
}

function isAssistantPart(part: ContentPart): part is Extract<ContentPart, AssistantPart> {
  return part.type === "text" || part.type === "image";
}

/** Reasoning that this server has sealed replaces the thoughts before the part, which are its text. */
function restoreReasoning(parts: AssistantPart[], { text, summary, id, state }: SealedReasoning): void {
  let shown = "";
  for (let last = parts.at(-1); last?.type === "reasoning" && last.state === undefined; last = parts.at(-1)) {
    shown = last.text + shown;
    parts.pop();
  }
  const own = text ?? (summary ? "" : shown);
  if (own === "" && !summary && !state) return;
  const reasoning: ReasoningPart = {
    type: "reasoning",
    text: own,
    ...(summary && { summary }),
    ...(id !== undefined && { id }),
    ...(state && state.kind !== "call" && { state }),
  };
  parts.push(reasoning);
}

/** Joins the chunks of a text, and those of reasoning. */
function joined(parts: readonly AssistantPart[]): AssistantPart[] {
  const groups: { readonly part: AssistantPart; readonly texts: string[] }[] = [];
  for (const part of parts) {
    const last = groups.at(-1);
    const isChunk = part.type === "text" || (part.type === "reasoning" && !part.state && !part.summary);
    const continues = isChunk && last?.part.type === part.type && (last.part.type !== "reasoning" || !last.part.state);
    if (continues) last.texts.push(part.text);
    else groups.push({ part, texts: isChunk ? [part.text] : [] });
  }
  return groups.map(({ part, texts }) =>
    texts.length > 1 ? ({ ...part, text: texts.join("") } as TextPart | ReasoningPart) : part,
  );
}

function contentOf(parts: readonly ContentPart[]): Content {
  const [first] = parts;
  return parts.length === 1 && first?.type === "text" ? first.text : parts;
}

function fenced(text: string, language: string): string {
  return `\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\n`;
}

function mediaPart(mimeType: string, data: string, name: string | null | undefined, path: string): ContentPart {
  const type = mimeType.toLowerCase().replace(/;.*$/s, "").trim();
  if (type.startsWith("image/")) return { type: "image", url: `data:${type};base64,${data}` };
  const audio = /^audio\/(?:x-)?([\w.-]{1,40})$/.exec(type)?.[1];
  if (audio !== undefined) return { type: "audio", data, format: audio === "mpeg" ? "mp3" : audio, path };
  return { type: "file", data: `data:${type};base64,${data}`, ...(name && { name }) };
}

/** The keys that Google names for a result and for an error. Source: https://ai.google.dev/api/caching#FunctionResponse. */
function resultOf(response: JsonObject): { readonly content: string; readonly isError: boolean } {
  const { output, result, error } = response;
  const names = Object.keys(response);
  const only = names.length === 1;
  if (only && typeof error === "string") return { content: error, isError: true };
  const value = only ? (output ?? result) : undefined;
  if (typeof value === "string") return { content: value, isError: false };
  return { content: JSON.stringify(response), isError: "error" in response && only };
}
