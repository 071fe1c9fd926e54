import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { API } from "typescript/unstable/sync";
import type { Checker, Type } from "typescript/unstable/sync";
import { isTypeAliasDeclaration } from "typescript/unstable/ast/is";
import { emptyShape } from "./shape.ts";
import type { Declarations, Shape } from "./shape.ts";

/** A type that a package's declarations export: `{ module: "resources/messages/messages", type: "Message" }`. */
export interface SdkType {
  /** Path of the module in the package, without ending. */
  readonly module: string;
  readonly type: string;
}

/**
 * Reads types from the declarations of an installed package with the TypeScript compiler.
 *
 * @param folder Absolute path of the package: `/…/node_modules/openai`.
 * @param declarations Where the declarations of all members are added; absent: they are not read.
 * @returns The shape of each type; `undefined` for a type that the package does not export.
 */
export function readSdk(
  folder: string,
  types: readonly SdkType[],
  declarations?: Declarations,
): readonly (Shape | undefined)[] {
  const probe = mkdtempSync(join(tmpdir(), "truewire-sdk-"));
  const compilerOptions = {
    module: "nodenext",
    target: "esnext",
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
  };
  writeFileSync(join(probe, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["probe.ts"] }));
  writeFileSync(join(probe, "package.json"), '{ "type": "module" }');
  const file = join(probe, "probe.ts");
  writeFileSync(
    file,
    types
      .map(({ module, type }, at) => `export type T${at} = import("${join(folder, `${module}.js`)}").${type};\n`)
      .join(""),
  );
  const api = new API({ cwd: probe });
  try {
    const [project] = api.updateSnapshot({ openProjects: [join(probe, "tsconfig.json")] }).getProjects();
    const source = project?.program.getSourceFile(file);
    if (!project || !source) throw new Error("The TypeScript compiler did not open its project.");
    const shapeOf = shapes(project.checker, declarations);
    return source.statements.filter(isTypeAliasDeclaration).map((alias) => {
      const type = project.checker.getTypeFromTypeNode(alias.type);
      return type === undefined || type.isErrorType() ? undefined : shapeOf(type);
    });
  } finally {
    api.close();
    rmSync(probe, { recursive: true, force: true });
  }
}

function shapes(checker: Checker, declarations: Declarations | undefined): (type: Type) => Shape {
  const known = new Map<number, Shape>();
  const shapeOf = (type: Type): Shape => {
    const before = known.get(type.id);
    if (before) return before;
    const shape = emptyShape();
    known.set(type.id, shape);
    add(type, shape);
    return shape;
  };
  const add = (type: Type, shape: Shape): void => {
    if (type.isUnionType()) for (const each of type.getTypes()) add(each, shape);
    else if (type.isLiteralType()) {
      if (typeof type.value !== "boolean") shape.literals.add(String(type.value));
    } else if (type.isIntrinsicType()) {
      if (["any", "unknown"].includes(type.intrinsicName)) shape.anything = true;
      if (type.intrinsicName === "string") shape.anyString = true;
    } else if (type.isIntersectionType() && type.getTypes().some((each) => each.isIntrinsicType())) {
      // `string & {}`: any string, next to examples.
      shape.anyString = true;
    } else if (type.isObjectType() && checker.isArrayLikeType(type)) {
      const [element] = type.isTypeReference() ? checker.getTypeArguments(type) : [];
      if (element) shape.elements.push(shapeOf(element));
    } else if (type.isObjectType() || type.isIntersectionType()) {
      // The compiler makes names for members whose names are symbols: `__@iterator@123`, another in each version.
      const members = checker.getPropertiesOfType(type).filter(({ name }) => !name.startsWith("__@"));
      if (members.length === 0) {
        shape.anything = true;
        return;
      }
      const types = checker.getTypeOfSymbol(members);
      const shapes = new Map(
        members.map(({ name }, at) => [name, types[at] ? shapeOf(types[at]) : emptyShape()] as const),
      );
      shape.objects.push(shapes);
      declarations?.set(
        shapes,
        new Map(
          members.map((member, at) => [
            member.name,
            {
              type: types[at] ? checker.typeToString(types[at]) : "",
              doc: member.getDocumentationComment(checker),
            },
          ]),
        ),
      );
    }
  };
  return shapeOf;
}
