import * as z from "zod";
import { listOf } from "../../src/wire/apis/request/shapes.ts";

/**
 * What a type or a schema allows, reduced to what can be compared: literals, objects with their members, and arrays. A union has all of
 * its alternatives. Shapes may contain themselves.
 */
export interface Shape {
  /** Literal strings, and numbers as text. */
  readonly literals: Set<string>;
  readonly objects: Members[];
  /** Shapes of array elements. */
  readonly elements: Shape[];
  /** Also allows any string: literals are examples. */
  anyString: boolean;
  /** Allows any value, or members with any names: nothing inside is described. */
  anything: boolean;
}

/** The members of one kind of object. */
export type Members = ReadonlyMap<string, Shape>;

/** How a package declares a member. */
export interface Declaration {
  /** In TypeScript, with its values. */
  readonly type: string;
  /** Its doc comment; "" without one. */
  readonly doc: string;
}

/** The declarations of the members of objects. */
export type Declarations = WeakMap<Members, ReadonlyMap<string, Declaration>>;

/** Returns a shape that allows nothing yet. */
export function emptyShape(): Shape {
  return { literals: new Set(), objects: [], elements: [], anyString: false, anything: false };
}

/** Returns the shape of a zod schema. */
export function shapeOfSchema(schema: z.ZodType): Shape {
  const known = new Map<z.ZodType, Shape>();
  const shapeOf = (one: z.ZodType): Shape => {
    const before = known.get(one);
    if (before) return before;
    const shape = emptyShape();
    known.set(one, shape);
    add(one, shape);
    return shape;
  };
  const add = (one: z.ZodType, shape: Shape): void => {
    const list = listOf(one);
    if (list) shape.elements.push(shapeOf(list.item));
    else if (one instanceof z.ZodOptional || one instanceof z.ZodNullable || one instanceof z.ZodDefault)
      add(one.unwrap() as z.ZodType, shape);
    else if (one instanceof z.ZodLazy) add(one.unwrap() as z.ZodType, shape);
    else if (one instanceof z.ZodReadonly) add(one.unwrap() as z.ZodType, shape);
    else if (one instanceof z.ZodPipe) add(one.in as z.ZodType, shape);
    else if (one instanceof z.ZodUnion) for (const option of one.options) add(option as z.ZodType, shape);
    else if (one instanceof z.ZodIntersection) {
      const sides = [one.def.left, one.def.right].map((side) => shapeOf(side as z.ZodType));
      shape.objects.push(new Map(sides.flatMap(({ objects }) => objects.flatMap((members) => [...members]))));
    } else if (one instanceof z.ZodArray) shape.elements.push(shapeOf(one.element as z.ZodType));
    else if (one instanceof z.ZodTuple)
      for (const item of one.def.items) shape.elements.push(shapeOf(item as z.ZodType));
    else if (one instanceof z.ZodObject) {
      const members = Object.entries(one.shape as Readonly<Record<string, z.ZodType>>);
      // An object without members describes nothing: `z.looseObject({})`.
      if (members.length === 0) shape.anything = true;
      else shape.objects.push(new Map(members.map(([name, member]) => [name, shapeOf(member)])));
    } else if (one instanceof z.ZodLiteral) for (const value of one.values) shape.literals.add(String(value));
    else if (one instanceof z.ZodEnum) for (const value of one.options) shape.literals.add(String(value));
    else if (one instanceof z.ZodString) shape.anyString = true;
    else if (
      one instanceof z.ZodUnknown ||
      one instanceof z.ZodAny ||
      one instanceof z.ZodRecord ||
      one instanceof z.ZodCustom
    )
      shape.anything = true;
  };
  return shapeOf(schema);
}

/** Members whose value says which kind of object it is. */
const discriminators = ["type", "object", "role"];

/**
 * Returns what `sdk` has and `ours` does not describe: members, literals and kinds of objects, each as a path: `choices[].delta.role`,
 * `content[type=image].source`, `stop_reason = "refusal"`. Each named once, where it was found first.
 *
 * @param onMembers Is told the object that has the path, and the member that it names; `undefined`: it names the object.
 */
export function missing(
  sdk: Shape,
  ours: Shape,
  onMembers: (path: string, members: Members, member: string | undefined) => void = () => {},
): readonly string[] {
  const found = new Set<string>();
  const compared = new Map<Shape, Set<Shape>>();
  const compare = (theirs: Shape, mine: Shape, path: string): void => {
    if (mine.anything) return;
    const before = compared.get(theirs) ?? new Set();
    if (before.has(mine)) return;
    compared.set(theirs, before.add(mine));
    if (!mine.anyString && mine.literals.size > 0)
      for (const literal of theirs.literals) if (!mine.literals.has(literal)) found.add(`${path} = "${literal}"`);
    for (const element of theirs.elements) {
      if (mine.elements.length > 0) compare(element, union(mine.elements), `${path}[]`);
    }
    for (const members of theirs.objects) {
      if (mine.objects.length === 0) continue;
      const name = discriminators.find((each) => (members.get(each)?.literals.size ?? 0) > 0);
      const kinds = name === undefined ? [] : [...(members.get(name)?.literals ?? [])];
      // A kind that we have none of is one line, not one line for each of its members.
      for (const kind of name === undefined ? [undefined] : kinds) {
        // An object with any `type` (`z.looseObject({ type: z.string() })`) describes no kind.
        const alternatives = mine.objects.filter(
          (each) => kind === undefined || each.get(name ?? "")?.literals.has(kind),
        );
        const tag = kind === undefined || mine.objects.length === 1 ? "" : `[${name}=${kind}]`;
        if (alternatives.length === 0) {
          found.add(`${path}[${name}=${kind}]`);
          onMembers(`${path}[${name}=${kind}]`, members, undefined);
          continue;
        }
        for (const [member, shape] of members) {
          const described = alternatives.flatMap((each) => each.get(member) ?? []);
          const at = `${path}${tag}${path === "" && tag === "" ? "" : "."}${member}`;
          if (described.length === 0) {
            found.add(at);
            onMembers(at, members, member);
          } else compare(shape, union(described), at);
        }
      }
    }
  };
  compare(sdk, ours, "");
  return [...found];
}

const unions = new WeakMap<Shape, Map<Shape, Shape>>();

/** Returns one shape that allows what each of them allows; the same shape for the same two. */
function union(shapes: readonly Shape[]): Shape {
  return shapes.reduce((one, other) => {
    if (one === other) return one;
    const known = unions.get(one) ?? new Map<Shape, Shape>();
    unions.set(one, known);
    const before = known.get(other);
    if (before) return before;
    const both: Shape = {
      literals: new Set([...one.literals, ...other.literals]),
      objects: [...one.objects, ...other.objects],
      elements: [...one.elements, ...other.elements],
      anyString: one.anyString || other.anyString,
      anything: one.anything || other.anything,
    };
    known.set(other, both);
    return both;
  });
}
