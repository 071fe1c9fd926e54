import { join } from "node:path";
import { descriptions } from "./descriptions.ts";
import { readSdk } from "./read-sdk.ts";
import { missing, shapeOfSchema } from "./shape.ts";

/** What the installed version of an SDK declares and a description of ours lacks. */
export interface Difference {
  /** The description's name: `chat: request`. */
  readonly name: string;
  /** Paths, see `missing`; `["…"]` with a sentence where the SDK no longer has the type. */
  readonly missing: readonly string[];
}

/** The SDKs that are compared. */
export const sdks: readonly string[] = [...new Set(descriptions.map(({ sdk }) => sdk))];

/**
 * Compares an SDK's type declarations with our descriptions.
 *
 * @param sdk Name of the package.
 * @param modules Absolute path of the `node_modules` folder that has the package.
 */
export function compareWith(sdk: string, modules: string): readonly Difference[] {
  const compared = descriptions.filter((description) => description.sdk === sdk);
  const types = compared.map(({ type: path }) => {
    const [module = "", type = ""] = path.split(":");
    return { module, type };
  });
  const shapes = readSdk(join(modules, sdk), types);
  return compared.map(({ name, type, schema }, at) => {
    const shape = shapes[at];
    return { name, missing: shape ? missing(shape, shapeOfSchema(schema)) : [`the SDK no longer exports ${type}`] };
  });
}
