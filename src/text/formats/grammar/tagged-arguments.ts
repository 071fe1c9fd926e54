import { parametersOf } from "../../../wire/core/custom-tool.ts";
import type { NamedCall, PlainFormat, TaggedArgs } from "../format.ts";
import { type DeclaredTypes, ToolTypes, typedValue } from "../reading/tool-types.ts";
import type { CallableTool, CallGrammarContext } from "./call-parts.ts";
import { codePoints } from "./code-points.ts";
import {
  chars,
  choice,
  empty,
  type GrammarExpression,
  never,
  optional,
  repeat,
  sequence,
  literal,
} from "./expression.ts";
import { acceptsAll, membersInOrder, propertyParts, shapeExpression, type ValueContext } from "./value-expression.ts";
import {
  anything,
  type ArrayLimits,
  isConstrained,
  isFree,
  isFreeString,
  type JsonType,
  jsonTypes,
  meantTypes,
  type ObjectLimits,
  type Parts,
  type Shape,
} from "./schema-shape.ts";
import { rawStrings, until } from "./strings.ts";
import { TaggedText } from "./tagged-text.ts";
import { asRaw, jsonSyntax } from "./value-syntax.ts";

/** The call around the parameters, unless a routed message is the call. */
export interface CallAround {
  readonly format: PlainFormat;
  readonly call: NamedCall;
}

/** The parameters of a call, one tag each, in the order of the schema. */
export function taggedArguments(
  context: CallGrammarContext,
  args: TaggedArgs,
  tool: CallableTool,
  around: CallAround | undefined,
): GrammarExpression {
  const { grammar, gap } = context;
  const { reader } = tool;
  const parameter = new Parameter(context, args, tool, around);
  if (tool.free) return sequence(gap, parameter.anyNumber());
  const shapes = reader.shapes(tool.parts).map(({ object: limits }) => {
    const names = [...new Set([...limits.properties.keys(), ...limits.required])];
    const members = names.map((name) => ({
      expression: parameter.declared(limits, name),
      required: limits.required.has(name),
    }));
    const hint = `${tool.name}-parameters`;
    return membersInOrder({ grammar, reader }, { members, other: parameter.other(limits), between: gap, limits, hint });
  });
  return sequence(gap, choice(...shapes));
}

/** Writes the tags of one tool's parameters. */
class Parameter {
  readonly #context: CallGrammarContext;
  readonly #args: TaggedArgs;
  readonly #tool: CallableTool;
  readonly #forbidden: readonly string[];
  readonly #types: ToolTypes;
  readonly #around: CallAround | undefined;

  constructor(context: CallGrammarContext, args: TaggedArgs, tool: CallableTool, around: CallAround | undefined) {
    this.#context = context;
    this.#args = args;
    this.#tool = tool;
    this.#around = around;
    const closes = [...(around?.call.close ?? []), ...(around?.format.section?.close ?? [])];
    this.#forbidden = [args.open, ...closes, ...(args.cdata === true ? ["<![CDATA["] : [])];
    this.#types = new ToolTypes([tool.tool]);
  }

  declared(limits: ObjectLimits, name: string): GrammarExpression {
    const { reader } = this.#tool;
    const { keyEnd, close } = this.#args;
    // The parser reads a name up to `keyEnd` and does not accept a line end or an angle bracket in it.
    const isName = name.trim() === name && name !== "" && !/[<\n]/.test(name) && !name.includes(keyEnd);
    // The close of a section is not read as the close of a parameter.
    const isSection = this.#around?.format.section?.close.includes(close.replace("{key}", name)) === true;
    if (!isName || isSection || (limits.names.length > 0 && !acceptsAll(reader, limits.names, name))) return never;
    return this.#tag(literal(name), name, propertyParts(reader, limits, name));
  }

  /** Any parameters with any values: declared ones, and others if the tags allow unknown names. */
  anyNumber(): GrammarExpression {
    const names = declaredNames(this.#tool) ?? [];
    const limits = anything.object;
    const one = choice(this.other(limits), ...names.map((name) => this.declared(limits, name)));
    return optional(sequence(one, repeat(sequence(this.#context.gap, one), 0, null)));
  }

  /** An undeclared parameter, if the schema does not restrict it. The parser cannot determine its type, so it may have any value. */
  other(limits: ObjectLimits): GrammarExpression {
    const { grammar } = this.#context;
    const open = limits.additional === undefined ? !limits.closed && limits.required.size === 0 : true;
    const anything = (limits.additional ?? []).every(({ schema }) => schema === true || isEmptyObject(schema));
    if (!open || !anything || limits.properties.size > 0 || limits.patterns.length > 0 || limits.names.length > 0) {
      return never;
    }
    if (this.#args.close.includes("{key}") || this.#args.strict === true) return never;
    const name = sequence(chars(codePoints("az", "AZ", "_")), repeat(chars(codePoints("az", "AZ", "09", "_")), 0, 63));
    return grammar.define("parameter", this.#tag(name, null, []));
  }

  #tag(name: GrammarExpression, key: string | null, parts: Parts): GrammarExpression {
    const { grammar } = this.#context;
    const args = this.#args;
    const close = args.close.replace("{key}", key ?? "");
    const head = sequence(literal(args.open), name, literal(args.keyEnd));
    const opened = args.valueOpen === undefined ? empty : sequence(this.#context.gap, literal(args.valueOpen));
    const path = parts[0]?.path ?? "";
    if (args.nestedItem !== undefined) {
      const nested = { open: args.open, keyEnd: args.keyEnd, item: args.nestedItem };
      const around = { close, outer: key ?? "", texts: this.#texts(close) };
      return sequence(head, nestedValue(this.#valueContext(close), nested, parts, around));
    }
    const declared = key === null ? undefined : this.#types.parameter(this.#tool.name, key);
    const written = this.#tool.reader
      .shapes(parts)
      .flatMap((shape) => this.#byType(shape, declared, path, close))
      .map(({ attribute, value }) => sequence(literal(attribute), opened, value));
    return sequence(head, grammar.define(`${this.#tool.name}-${key ?? "any"}-value`, choice(...written)));
  }

  /** The values of a shape, each with the attribute for its type, and closed. */
  #byType(
    shape: Shape,
    declared: DeclaredTypes | undefined,
    path: string,
    close: string,
  ): { attribute: string; value: GrammarExpression }[] {
    const { grammar } = this.#context;
    const { hint, trim } = this.#args;
    const edge = trim === "newline" ? "\n" : "";
    const raw = rawStrings(grammar, { open: "", close, edge, forbidden: this.#forbidden, texts: this.#texts(close) });
    const context = this.#valueContext(close);
    const types = shape.values === undefined ? meantTypes(shape) : jsonTypes;
    // Without a hint, any text is a string, which includes all other values.
    if (hint === undefined && shape.values === undefined && types.includes("string") && isFreeString(shape)) {
      this.#reportMixture(declared, path);
      return [{ attribute: this.#attribute("string"), value: raw.any }];
    }
    return types.flatMap((type) => {
      const only: Shape = { ...shape, types: new Set([type].filter((known) => shape.types.has(known))) };
      const attribute = this.#attribute(type);
      if (type !== "string") {
        const value = sequence(literal(edge), shapeExpression(context, only, path, `${this.#tool.name}-value`));
        return [{ attribute, value: sequence(value, literal(edge), literal(close)) }];
      }
      const rawContext = { ...context, syntax: asRaw(context.syntax, raw) };
      if (hint === undefined && declared !== undefined && shape.values !== undefined) {
        const values = shape.values.filter((value) => typeof value === "string" && readsBack(value, declared));
        return [{ attribute, value: shapeExpression(rawContext, { ...only, values }, path, "value") }];
      }
      this.#reportMixture(declared, path);
      return [{ attribute, value: shapeExpression(rawContext, only, path, "value") }];
    });
  }

  /** The texts of raw strings that the parser reads as one value, or undefined if they are not described and contain no markers at all. */
  #texts(close: string): TaggedText | undefined {
    const args = this.#args;
    if (this.#around === undefined) return undefined;
    const declared = declaredNames(this.#tool);
    const keys = declared && [...new Set(this.#context.tools.flatMap((tool) => declaredNames(tool) ?? []))];
    const texts = new TaggedText({ ...this.#around, args, close, keys });
    return texts.isExact ? texts : undefined;
  }

  /** Without a hint, the parser reads text that fits another declared type as a value of that type, which may violate constraints. */
  #reportMixture(declared: DeclaredTypes | undefined, path: string): void {
    if (this.#args.hint !== undefined || declared === undefined || isOnlyString(declared)) return;
    const shapes = this.#tool.reader.shapes([{ schema: declared.schema, path }]);
    if (shapes.some((shape) => !isFree(shape))) this.#tool.reader.report(path, "type");
  }

  #attribute(type: JsonType): string {
    const { hint, tagEnd = "" } = this.#args;
    if (hint === undefined) return tagEnd;
    const value = type === "string" ? hint.string : hint.other.replace("{type}", type);
    return ` ${hint.attribute}="${value}"${tagEnd}`;
  }

  #valueContext(close: string): ValueContext {
    const { grammar } = this.#context;
    return { grammar, reader: this.#tool.reader, syntax: jsonSyntax(grammar, [close, ...this.#forbidden]) };
  }
}

/** The names of the parameters that a tool declares, or null if it declares nothing. */
function declaredNames({ tool }: CallableTool): readonly string[] | null {
  const parameters = parametersOf(tool);
  if (parameters === undefined) return null;
  const properties = typeof parameters === "object" ? parameters["properties"] : undefined;
  return typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
}

function isOnlyString(declared: DeclaredTypes | undefined): boolean {
  return declared?.types.size === 1 && declared.types.has("string");
}

/** Whether the parser reads this text as this string. */
function readsBack(value: string, declared: DeclaredTypes): boolean {
  return typedValue(value, declared) === JSON.stringify(value);
}

function isEmptyObject(schema: unknown): boolean {
  return typeof schema === "object" && schema !== null && Object.keys(schema).length === 0;
}

/** How a format nests tags: `open` key `keyEnd` … `open` `/` key `keyEnd`; `item` is the tag of an array's items. */
interface NestedTags {
  readonly open: string;
  readonly keyEnd: string;
  readonly item: string;
}

/** The tag around a value: its close, and the name of the outermost parameter, whose close ends everything. */
interface Around {
  readonly close: string;
  readonly outer: string;
  /** The texts of strings, if it is the tag of a parameter. In nested tags, strings contain no tags. */
  readonly texts?: TaggedText | undefined;
}

/**
 * A value and its close. Objects and arrays with members are written as tags, empty ones as JSON. Where a string is allowed, everything is
 * a string, as the parser reads it (minimax-m3).
 */
function nestedValue(context: ValueContext, tags: NestedTags, parts: Parts, around: Around): GrammarExpression {
  const { grammar, reader } = context;
  // Any value: text, JSON, or nested tags.
  const { close, outer, texts } = around;
  if (parts.length === 0) return texts?.expression(grammar) ?? until(grammar, close);
  const key = `${reader.scope} nested ${JSON.stringify([close, outer, texts !== undefined])} ${JSON.stringify(parts.map((part) => part.schema))}`;
  return grammar.shared(key, "nested", () =>
    choice(...reader.shapes(parts).map((shape) => shapeValue(context, tags, shape, parts[0]?.path ?? "", around))),
  );
}

function shapeValue(
  context: ValueContext,
  tags: NestedTags,
  shape: Shape,
  path: string,
  { close, outer, texts }: Around,
): GrammarExpression {
  const raw = rawStrings(context.grammar, { open: "", close, forbidden: [tags.open], texts });
  const types = shape.values === undefined ? meantTypes(shape) : [...shape.types];
  const mayBeString = types.includes("string");
  return choice(
    ...types.map((type) => {
      const only: Shape = { ...shape, types: new Set([type]) };
      if (type === "string")
        return shapeExpression({ ...context, syntax: asRaw(context.syntax, raw) }, only, path, "value");
      const isScalar = type !== "object" && type !== "array";
      if (isScalar || mayBeString || shape.values !== undefined || !isConstrained(only)) {
        return sequence(shapeExpression(context, only, path, "value"), literal(close));
      }
      return sequence(
        type === "object" ? members(context, tags, shape.object, outer) : items(context, tags, shape.array, outer),
        literal(close),
      );
    }),
  );
}

function members(context: ValueContext, tags: NestedTags, limits: ObjectLimits, outer: string): GrammarExpression {
  const names = [...new Set([...limits.properties.keys(), ...limits.required])];
  const declared = names.map((name) => ({
    // A close with the name of the parameter itself would end the parameter.
    expression:
      writable(name, tags) && name !== outer
        ? tagged(context, tags, name, propertyParts(context.reader, limits, name), outer)
        : never,
    required: limits.required.has(name),
  }));
  const body = membersInOrder(context, {
    members: declared,
    other: never,
    between: empty,
    limits: { ...limits, min: Math.max(1, limits.min) },
    hint: "nested",
  });
  // Without tags, the value would be read as an empty string.
  const none = limits.required.size === 0 && limits.min === 0 ? literal("{}") : never;
  return choice(none, body);
}

function items(context: ValueContext, tags: NestedTags, limits: ArrayLimits, outer: string): GrammarExpression {
  if (tags.item === outer) return limits.min === 0 ? literal("[]") : never;
  const first = limits.first.map((parts) => tagged(context, tags, tags.item, parts, outer));
  const open = limits.rest ?? (limits.closed || first.length > 0 ? null : []);
  const further = open === null ? never : tagged(context, tags, tags.item, open, outer);
  const least = Math.max(1, limits.min);
  const from = (position: number): GrammarExpression => {
    if (limits.max !== null && position >= limits.max) return empty;
    const item = first[position];
    if (item === undefined) {
      return repeat(further, Math.max(0, least - position), limits.max === null ? null : limits.max - position);
    }
    const rest = sequence(item, from(position + 1));
    return position >= least ? optional(rest) : rest;
  };
  const none = limits.min === 0 ? literal("[]") : never;
  return limits.max === 0 ? none : choice(none, from(0));
}

function tagged(context: ValueContext, tags: NestedTags, name: string, parts: Parts, outer: string): GrammarExpression {
  const close = `${tags.open}/${name}${tags.keyEnd}`;
  return sequence(literal(`${tags.open}${name}${tags.keyEnd}`), nestedValue(context, tags, parts, { close, outer }));
}

function writable(name: string, tags: NestedTags): boolean {
  return name !== "" && name.trim() === name && !/[<>\n/]/.test(name) && !name.includes(tags.keyEnd);
}
