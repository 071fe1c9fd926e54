import * as z from "zod";
import { isOpen, membersOf } from "../members.ts";
import { list, listOf } from "../request/shapes.ts";

import { type ApiFeatures, messageRequest, requiredBetas, strictVersion } from "./request-schema.ts";

type Members = ReadonlyMap<string, z.ZodType>;
const lenient: Members = new Map(membersOf(messageRequest).map(({ name, schema }) => [name, schema]));
const strict = new Map<string, Members>();

/**
 * Returns the schemas of a request's members by name. With `features`, they refuse what Anthropic refuses for this version and these betas:
 * unknown members of objects, and values outside the schemas of `.meta({ exact })`.
 */
export function requestMembers(features?: ApiFeatures): Members {
  if (!features) return lenient;
  // Clients may send any version and beta, so the key has only those that matter.
  const betas = Object.values(requiredBetas).filter((beta) => features.betas.has(beta));
  const key = [features.version >= strictVersion, ...betas].join();
  let members = strict.get(key);
  if (!members) {
    members = new Map(Object.entries(exactShape(messageRequest.shape, features)));
    strict.set(key, members);
  }
  return members;
}

/** Returns the members of an object as profile `exact` uses them, without those that the version or the betas exclude. */
function exactShape(shape: Readonly<Record<string, z.ZodType>>, features: ApiFeatures): Record<string, z.ZodType> {
  const available = Object.entries(shape).filter(([, member]) => {
    const { until, beta, exact } = member.meta() ?? {};
    const isOver = typeof until === "string" && features.version >= until;
    return !isOver && (typeof beta !== "string" || exact !== undefined || features.betas.has(beta));
  });
  return Object.fromEntries(available.map(([name, member]) => [name, exactly(member, features)]));
}

/** Returns `schema` as profile `exact` uses it. */
function exactly(schema: z.ZodType, features: ApiFeatures): z.ZodType {
  const { exact, beta } = schema.meta() ?? {};
  const hasBeta = typeof beta === "string" && features.betas.has(beta);
  if (exact instanceof z.ZodType && !hasBeta) return exact;
  const inner = (one: unknown) => exactly(one as z.ZodType, features);
  const items = listOf(schema);
  if (items) {
    const item = inner(items.item);
    return item === items.item ? schema : list(item, { most: items.most });
  }
  if (schema instanceof z.ZodOptional) return inner(schema.unwrap()).optional();
  if (schema instanceof z.ZodNullable) return inner(schema.unwrap()).nullable();
  if (schema instanceof z.ZodDiscriminatedUnion)
    return z.discriminatedUnion(
      schema.def.discriminator,
      schema.options.map((option) => inner(option) as z.ZodObject) as [z.ZodObject],
    );
  if (schema instanceof z.ZodUnion) return z.union(schema.options.map(inner));
  if (!(schema instanceof z.ZodObject)) return schema;
  const shape = exactShape(schema.shape, features);
  return isOpen(schema) ? z.looseObject(shape) : z.strictObject(shape);
}
