/**
 * How a family of models writes tool calls, reasoning and special tokens. A format is plain data: one parser reads all formats, one
 * generator makes grammars from the same description, and a configuration file can contain one.
 *
 * There are three families: *object* (a call is a JSON object, found by markers or by its shape), *named* (the name is in plain text before
 * the arguments) and *routed* (every message has a header that contains its recipient).
 */
export type Format = PlainFormat | RoutedFormat;

/** The spellings of one marker. Grammars write the first; the parser reads all of them. */
export type Markers = readonly [string, ...string[]];

export interface Common {
  readonly id: string;
  /** Further names of a known format, for other models that write the same. */
  readonly aliases?: readonly string[];
  readonly reasoning?: Reasoning;
  /** Special tokens that are removed from the visible text. */
  readonly strip?: readonly string[];
  /** Blocks that are removed, including their markers. */
  readonly drop?: readonly (readonly [open: string, close: string])[];
}

export interface Reasoning {
  readonly open: Markers;
  readonly close: Markers;
  /** Markers, such as openers of calls, that end reasoning without being part of it. */
  readonly endedBy?: readonly string[];
  /**
   * Where a text starts if the end of the prompt is unknown. "unknown": if a `close` precedes any `open`, the text before it is reasoning.
   */
  readonly assume: "outside" | "inside" | "unknown";
  /** The template opens the reasoning if reasoning is requested. */
  readonly askedMeansInside?: boolean;
  /** A word directly after `open` that is not part of the reasoning (gemma4: `thought⏎`). */
  readonly label?: string;
  /** Reasoning may also follow visible text. */
  readonly anywhere?: boolean;
  /** How a `close` outside of reasoning is treated. Default "text". */
  readonly strayClose?: "text" | "strip" | "strip-at-start";
}

export interface PlainFormat extends Common {
  readonly kind: "plain";
  /** Markers around all calls, or (`perCall`) around each call. `required`: a call outside of a section is text. */
  readonly section?: {
    readonly open: Markers;
    readonly close: readonly string[];
    readonly required?: boolean;
    readonly perCall?: boolean;
  };
  /**
   * The syntaxes of calls: the first is written, all are read, and what follows an opener decides between them. Empty: the format has no
   * calls.
   */
  readonly calls: readonly CallSyntax[];
  /** How an invalid call is treated: it is text (the default), it is removed, or it keeps its name and its arguments unchanged. */
  readonly invalid?: "text" | "drop" | "raw";
}

export type CallSyntax = ObjectCall | NamedCall;

export interface Delimited {
  readonly open?: Markers;
  readonly close?: Markers;
  /** A call without markers is recognized at the beginning of the text, anywhere, or only if it is the whole text. */
  readonly bare?: "start" | "anywhere" | "whole";
  /** The JSON is in a Markdown code fence. */
  readonly fence?: boolean;
}

/** A call is a JSON object. */
export interface ObjectCall extends Delimited {
  readonly form: "object";
  /** One object per opener; one array of objects; or objects in a row, separated by `;`, `,` or white space. */
  readonly list: "one" | "array" | "stream";
  /** The JSON keys of the name; "key": the object is `{"<name>": <arguments>}`. */
  readonly name: Markers | "key";
  readonly arguments: Markers;
  /** An object without arguments is not a call. */
  readonly argumentsRequired?: boolean;
  /** The JSON key of the call's id. */
  readonly id?: string;
  /** The JSON key of an object that may contain name and arguments: `{"function": {"name": …}}`. Only read, never written. */
  readonly nested?: string;
}

/** A call has its name in plain text, between `open` and `headEnd`, followed by its arguments. */
export interface NamedCall extends Delimited {
  readonly form: "named";
  /** `{name}`, optionally with literal text, `{id}` and `{index}`: `functions.{name}:{index}`. When reading, only the name is required. */
  readonly head: string;
  readonly headEnd: Markers;
  /** The whole head is the call's id (kimi-k2). */
  readonly headIsId?: boolean;
  /** Those of `headEnd` that are the beginning of what follows: `{`, `<arg_key>`, the close. */
  readonly headEndKept?: readonly string[];
  /** Attributes may follow the name up to this marker. With `/` before it, the call has no body. */
  readonly tagEnd?: string;
  /** Several calls after one opener: `[f(…), g(…)]`, or one call per line. Both are read. */
  readonly list?: "python" | "lines";
  readonly args: Args;
}

/** How arguments are written. */
export type Args =
  | { readonly kind: "json" }
  /** JSON without quotes around keys, and with quote tokens of its own, inside which nothing is escaped. */
  | { readonly kind: "loose"; readonly quotes: Markers }
  /** Keyword arguments of a Python call. */
  | { readonly kind: "kwargs" }
  | TaggedArgs;

/** One tag per parameter: `open` key `keyEnd` value `close`. */
export interface TaggedArgs {
  readonly kind: "tagged";
  readonly open: string;
  readonly keyEnd: string;
  /** Attributes may follow the key up to this marker. */
  readonly tagEnd?: string;
  /** Precedes the value (`<arg_value>`). */
  readonly valueOpen?: string;
  /** May contain `{key}`. */
  readonly close: string;
  /** What is removed from both ends of a string: one newline, or nothing. */
  readonly trim: "newline" | "none";
  /** An attribute that distinguishes strings from other values, for which `other` is written (`{type}`: the JSON type). */
  readonly hint?: { readonly attribute: string; readonly string: string; readonly other: string };
  /** Objects and arrays are nested tags; this is the tag of an array's items. */
  readonly nestedItem?: string;
  /** A value may be a CDATA section. */
  readonly cdata?: boolean;
  /** An unnamed, unknown or repeated parameter makes the call text. */
  readonly strict?: boolean;
  /** The body may be one JSON object instead of tags. */
  readonly jsonBody?: boolean;
  /** Names of a single undeclared parameter whose value is the whole object of arguments. */
  readonly unwrap?: readonly string[];
}

/** `start` header `headerEnd` body, up to one of `ends`. The prompt has already begun the first header. */
export interface RoutedFormat extends Common {
  readonly kind: "routed";
  readonly start: string;
  readonly headerEnd: string;
  readonly ends: readonly string[];
  /** The first route whose header matches applies. If none matches, the body is content. */
  readonly routes: readonly FormatRoute[];
}

export interface FormatRoute {
  /** A regular expression for the header; its group `name` is the tool's name. */
  readonly header: string;
  /** The headers that grammars write, with `{name}`. */
  readonly write?: Markers;
  readonly to: "content" | "reasoning" | "drop" | Args | PlainFormat;
}

/** The format in which everything is content: no calls, no reasoning, no special tokens. */
export const plainText: PlainFormat = { kind: "plain", id: "plain-text", calls: [] };
