/**
 * How a family of models writes what it says: tool calls, reasoning, special tokens. A format is data, without functions, so that
 * one engine reads them all, one generator makes grammars from the same description, and a configuration file can hold one.
 *
 * Three families cover what is known: *object* (a call is a JSON object, found by markers or by shape), *named* (the name stands in
 * plain text before its arguments) and *routed* (every message has a header that says where it goes).
 */
export type Format = PlainFormat | RoutedFormat;

/** Spellings of one marker. The first is what a grammar writes; the others are only read. */
export type Markers = readonly [string, ...string[]];

export interface Common {
  readonly id: string;
  /** Further names of a known format: other models write the same. */
  readonly aliases?: readonly string[];
  readonly reasoning?: Reasoning;
  /** Special tokens that are removed from the visible text. */
  readonly strip?: readonly string[];
  /** Blocks that are removed, markers included. */
  readonly drop?: readonly (readonly [open: string, close: string])[];
}

export interface Reasoning {
  readonly open: Markers;
  readonly close: Markers;
  /** Openers of calls and the like that end a thought without being part of it. */
  readonly endedBy?: readonly string[];
  /** Where a text starts if the prompt's end is not known; "unknown": a `close` before any `open` makes all before it a thought. */
  readonly assume: "outside" | "inside" | "unknown";
  /** The template opens the thought when thinking is asked for. */
  readonly askedMeansInside?: boolean;
  /** A word right after `open` that does not belong to the thought (gemma4: `thought⏎`). */
  readonly label?: string;
  /** A thought may open again after visible text. */
  readonly anywhere?: boolean;
  /** What a `close` outside of a thought is; default "text". */
  readonly strayClose?: "text" | "strip" | "strip-at-start";
}

export interface PlainFormat extends Common {
  readonly kind: "plain";
  /** Markers around all calls, or (`perCall`) around each. `required`: a call outside of it is text. */
  readonly section?: {
    readonly open: Markers;
    readonly close: readonly string[];
    readonly required?: boolean;
    readonly perCall?: boolean;
  };
  /** The first is written, all are read: what follows an opener decides which it is. None: the format has no calls. */
  readonly calls: readonly Call[];
  /** A call that does not parse is text (the default), vanishes, or keeps its name and its arguments as they are. */
  readonly invalid?: "text" | "drop" | "raw";
}

export type Call = ObjectCall | NamedCall;

export interface Delimited {
  readonly open?: Markers;
  readonly close?: Markers;
  /** Recognised by its shape alone: where the text starts, anywhere, or only if it is the whole text. */
  readonly bare?: "start" | "anywhere" | "whole";
  /** The JSON stands in a Markdown code fence. */
  readonly fence?: boolean;
}

/** A call is a JSON object. */
export interface ObjectCall extends Delimited {
  readonly form: "object";
  /** One object an opener; one array of them; or objects in a row, with `;`, `,` or white space between. */
  readonly list: "one" | "array" | "stream";
  /** JSON keys that hold the name; "key": the object is `{"<name>": <arguments>}`. */
  readonly name: Markers | "key";
  readonly arguments: Markers;
  /** An object without arguments is not a call. */
  readonly argumentsRequired?: boolean;
  /** JSON key of the call's id. */
  readonly id?: string;
  /** JSON key of an object that may hold name and arguments: `{"function": {"name": …}}`. Only read. */
  readonly nested?: string;
}

/** A call has its name in plain text, between `open` and `headEnd`, then its arguments. */
export interface NamedCall extends Delimited {
  readonly form: "named";
  /** `{name}`, with literal text around it and perhaps `{id}` and `{index}`: `functions.{name}:{index}`. Only the name must be there. */
  readonly head: string;
  readonly headEnd: Markers;
  /** The whole head is the call's id (kimi-k2). */
  readonly headIsId?: boolean;
  /** Those of `headEnd` that already belong to what follows: `{`, `<arg_key>`, the close. */
  readonly headEndKept?: readonly string[];
  /** Attributes may follow the name up to here; with `/` before it the call has no body. */
  readonly tagEnd?: string;
  /** Several calls behind one opener: `[f(…), g(…)]`, or one a line. Both are read. */
  readonly list?: "python" | "lines";
  readonly args: Args;
}

/** How arguments are written. */
export type Args =
  | { readonly kind: "json" }
  /** JSON without quotes around keys, and with tokens of its own as quotes, inside which nothing is escaped. */
  | { readonly kind: "loose"; readonly quotes: Markers }
  /** Keyword arguments of a Python call. */
  | { readonly kind: "kwargs" }
  | TaggedArgs;

/** A tag a parameter: `open` key `keyEnd` value `close`. */
export interface TaggedArgs {
  readonly kind: "tagged";
  readonly open: string;
  readonly keyEnd: string;
  /** Attributes may follow the key up to here. */
  readonly tagEnd?: string;
  /** Stands before the value (`<arg_value>`). */
  readonly valueOpen?: string;
  /** May hold `{key}`. */
  readonly close: string;
  /** What is taken off the ends of a string: one newline each, or nothing. */
  readonly trim: "newline" | "none";
  /** An attribute that tells a string from other values; `other` is what is written for those (`{type}`: the JSON type). */
  readonly hint?: { readonly attribute: string; readonly string: string; readonly other: string };
  /** Objects and arrays are nested tags; an array's items have this name. */
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

/** `start` header `headerEnd` body, up to one of `ends`; the prompt has already begun the first header. */
export interface RoutedFormat extends Common {
  readonly kind: "routed";
  readonly start: string;
  readonly headerEnd: string;
  readonly ends: readonly string[];
  /** The first whose header matches decides; no match: content. */
  readonly routes: readonly Route[];
}

export interface Route {
  /** A regular expression for the header; the group `name` is the tool's name. */
  readonly header: string;
  /** Headers as a grammar writes them, with `{name}`. */
  readonly write?: Markers;
  readonly to: "content" | "reasoning" | "drop" | Args | PlainFormat;
}
