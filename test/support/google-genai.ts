import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { npmPackage } from "./npm-package.ts";

/* What the tests use of @google/genai, which has 30 MB of dependencies, and is installed once, where the registry can be reached. */

export const genaiVersion = "2.32.0";

export interface GenaiPart {
  readonly text?: string;
  readonly thought?: boolean;
  readonly thoughtSignature?: string;
  readonly functionCall?: {
    readonly id?: string;
    readonly name?: string;
    readonly args?: Readonly<Record<string, unknown>>;
  };
}

export interface GenaiContent {
  readonly role?: string;
  readonly parts?: readonly GenaiPart[];
}

export interface GenaiAnswer {
  readonly text?: string;
  readonly functionCalls?: readonly NonNullable<GenaiPart["functionCall"]>[];
  readonly candidates?: readonly { readonly content?: GenaiContent; readonly finishReason?: string }[];
  readonly usageMetadata?: Readonly<Record<string, unknown>>;
  readonly modelVersion?: string;
  readonly responseId?: string;
}

interface Asked {
  readonly model: string;
  readonly contents: unknown;
  readonly config?: object;
}

export interface Genai {
  readonly models: {
    generateContent(asked: Asked): Promise<GenaiAnswer>;
    generateContentStream(asked: Asked): Promise<AsyncIterable<GenaiAnswer>>;
    countTokens(asked: Asked): Promise<{ readonly totalTokens?: number }>;
    embedContent(asked: Asked): Promise<{ readonly embeddings?: readonly { readonly values?: readonly number[] }[] }>;
    list(): Promise<AsyncIterable<{ readonly name?: string }>>;
    get(asked: { readonly model: string }): Promise<{ readonly name?: string; readonly inputTokenLimit?: number }>;
  };
  readonly chats: {
    create(asked: Omit<Asked, "contents">): {
      sendMessage(message: { readonly message: unknown }): Promise<GenaiAnswer>;
      sendMessageStream(message: { readonly message: unknown }): Promise<AsyncIterable<GenaiAnswer>>;
      getHistory(): readonly GenaiContent[];
    };
  };
}

interface Module {
  readonly GoogleGenAI: new (options: object) => Genai;
}

/** The library, from the registry; undefined where that cannot be reached. */
export async function googleGenai(): Promise<((url: string, apiKey?: string) => Genai) | undefined> {
  const modules = npmPackage(`@google/genai@${genaiVersion}`);
  if (modules === undefined) return undefined;
  const entry = pathToFileURL(join(modules, "@google/genai/dist/node/index.mjs")).href;
  const { GoogleGenAI } = (await import(entry)) as Module;
  return (baseUrl, apiKey = "none") => new GoogleGenAI({ apiKey, httpOptions: { baseUrl } });
}
