import * as z from "zod";
import { membersOf, presenceOf, unwrapped } from "../../src/wire/apis/members.ts";
import { listOf } from "../../src/wire/apis/request/shapes.ts";
import type { Description } from "./descriptions.ts";
import { gaps } from "./gaps.ts";

/** What a path of `missing` names. */
export function kindOf({ name }: Description, path: string): string {
  if (/ = ".*"$/.test(path)) return "value";
  if (!path.endsWith("]") || path.endsWith("[]")) return "member";
  return name.endsWith("event") && !path.includes("].") ? "event" : "type of object";
}

/**
 * Returns what Truewire does with a member, value or type of object of an SDK: the reason for which it, or the object around it, is not
 * described, the treatment of the request parameter, or which answers have the member. `undefined` if it is neither described nor listed as
 * a gap.
 *
 * @param path As `missing` returns it.
 * @param undescribed All paths that the description lacks.
 */
export function treatmentOf(
  { name, schema, parameters }: Description,
  path: string,
  undescribed: ReadonlySet<string>,
): string | undefined {
  const gap = [...undescribed].find(
    (each) => path === each || path.startsWith(`${each}.`) || path.startsWith(`${each}[`),
  );
  if (gap !== undefined) return gaps[name]?.[gap];
  const names = (path.split(" = ")[0] ?? "").split(".").map((part) => part.replaceAll(/\[.*?\]/g, ""));
  const members = memberAt(
    schema,
    names.filter((each) => each !== ""),
  );
  const parameter = parameters.find((each) => each.name === names[0]);
  const isDescribed =
    members.length > 0 && (!path.endsWith("]") || members.some((each) => objectsIn(each.schema).length > 0));
  if (parameter) {
    const treatment = { honoured: "supported", accepted: "accepted, without effect", refused: "refused" }[
      parameter.treatment
    ];
    return isDescribed ? treatment : `not described; \`${parameter.name}\` is ${treatment}`;
  }
  if (path.startsWith("[")) return "read and written";
  if (!isDescribed) return "inside of what is described as any value";
  if (/ = ".*"$|\]$/.test(path)) return "read and written";
  const [lean = [], exact = []] = (["lean", "exact"] as const).map((profile) =>
    members.map((each) => presenceOf(each, profile)),
  );
  if (lean.every((each) => each === "never"))
    return exact.every((each) => each === "always") ? "written in profile exact" : "known, not written";
  return [...lean, ...exact].every((each) => each === "always") ? "always written" : "written where it applies";
}

type Member = ReturnType<typeof membersOf>[number];

/** Returns the members that a path of names leads to, in all alternatives of unions. */
function memberAt(schema: z.ZodType, [first = "", ...rest]: readonly string[]): readonly Member[] {
  const found = objectsIn(schema).flatMap((object) => membersOf(object).filter(({ name }) => name === first));
  return rest.length === 0 ? found : found.flatMap((member) => memberAt(member.schema, rest));
}

function objectsIn(schema: z.ZodType): readonly z.ZodObject[] {
  const inner = unwrapped(schema);
  const list = listOf(inner);
  if (list) return objectsIn(list.item);
  if (inner instanceof z.ZodArray) return objectsIn(inner.element as z.ZodType);
  if (inner instanceof z.ZodUnion) return inner.options.flatMap((option) => objectsIn(option as z.ZodType));
  return inner instanceof z.ZodObject ? [inner] : [];
}
