import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { compareWith, sdks } from "./compare.ts";
import { descriptions } from "./descriptions.ts";
import { gaps } from "./gaps.ts";
import { emptyShape, missing, shapeOfSchema } from "./shape.ts";

// A member that a vendor added was found by users: nothing compared what the vendors' SDKs declare with what we describe.
describe.each(Object.entries(sdks))(
  "everything that %s declares is described, or listed with a reason",
  (sdk, packages) => {
    const listed = (name: string): string[] => Object.keys(gaps[name] ?? {}).sort();
    const compared = packages.map((folder) => compareWith(sdk, resolve("node_modules", folder)));

    test.each(packages.map((folder, at) => ({ folder, differences: compared[at] ?? [] })))(
      "in $folder",
      ({ differences }) => {
        for (const { name, missing } of differences)
          expect([name, missing.filter((path) => !listed(name).includes(path))]).toEqual([name, []]);
      },
    );

    test("and every line of the list is true of one of these versions", () => {
      const missing = compared.flat();
      for (const name of new Set(missing.map(({ name }) => name))) {
        const found = new Set(missing.flatMap((each) => (each.name === name ? each.missing : [])));
        expect([name, listed(name).filter((path) => !found.has(path))]).toEqual([name, []]);
      }
    });
  },
);

test("every list of gaps belongs to a description", () => {
  const names = new Set(descriptions.map(({ name }) => name));
  expect(Object.keys(gaps).filter((name) => !names.has(name))).toEqual([]);
});

describe("the comparison", () => {
  const ours = z.object({
    type: z.literal("message"),
    role: z.enum(["user", "assistant"]),
    content: z.array(
      z.discriminatedUnion("type", [
        z.object({ type: z.literal("text"), text: z.string() }),
        z.object({ type: z.literal("image"), source: z.object({ url: z.string() }).optional() }),
      ]),
    ),
  });

  test("finds nothing between equal descriptions", () => {
    expect(missing(shapeOfSchema(ours), shapeOfSchema(ours))).toEqual([]);
  });

  test("tells which object has what is missing, and which member it is", () => {
    const theirs = z.object({ ...ours.shape, owner: z.object({ id: z.string() }) });
    const told: unknown[] = [];
    missing(shapeOfSchema(theirs), shapeOfSchema(ours), (path, members, member) =>
      told.push([path, [...members.keys()], member]),
    );
    expect(told).toEqual([["owner", ["type", "role", "content", "owner"], "owner"]]);
  });

  test("names members, values and kinds by their place", () => {
    const theirs = ours.extend({
      role: z.enum(["user", "assistant", "system"]),
      content: z.array(
        z.union([
          z.object({ type: z.literal("text"), text: z.string(), citations: z.array(z.string()) }),
          z.object({ type: z.literal("image"), source: z.object({ url: z.string(), detail: z.string() }) }),
          z.object({ type: z.literal("audio"), data: z.string() }),
        ]),
      ),
      usage: z.object({ tokens: z.int() }),
    });
    expect(missing(shapeOfSchema(theirs), shapeOfSchema(ours))).toEqual([
      'role = "system"',
      "content[][type=text].citations",
      "content[][type=image].source.detail",
      "content[][type=audio]",
      "usage",
    ]);
  });

  test("ends for shapes that contain themselves", () => {
    const shape = emptyShape();
    shape.objects.push(new Map([["inner", shape]]));
    expect(missing(shape, shape)).toEqual([]);
  });
});
