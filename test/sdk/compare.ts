import { descriptions } from "./descriptions.ts";
import type { Description } from "./descriptions.ts";
import { readSdk } from "./read-sdk.ts";
import { missing, shapeOfSchema } from "./shape.ts";
import type { Declarations, Shape } from "./shape.ts";

/** What a version of an SDK declares and a description of ours lacks. */
export interface Difference {
  /** The description's name: `chat: request`. */
  readonly name: string;
  /** Paths, see `missing`; a sentence if the SDK does not have the type. */
  readonly missing: readonly string[];
}

/**
 * The SDKs that are compared → the packages of `node_modules` that are versions of each: the one that the client tests use, and the newest
 * one if that is another.
 */
export const sdks: Readonly<Record<string, readonly string[]>> = {
  openai: ["openai", "openai-7"],
  "@anthropic-ai/sdk": ["@anthropic-ai/sdk"],
  ollama: ["ollama"],
};

/** Returns the descriptions of an SDK's types. */
export function descriptionsOf(sdk: string): readonly Description[] {
  return descriptions.filter((description) => description.sdk === sdk);
}

/**
 * Reads the types of an SDK that we describe, in the order of `descriptionsOf`; `undefined` for a type that the package does not have.
 *
 * @param folder Absolute path of a package that is a version of it: `/…/node_modules/openai-7`.
 * @param declarations Where the declarations of all members are added.
 */
export function shapesOf(sdk: string, folder: string, declarations?: Declarations): readonly (Shape | undefined)[] {
  const types = descriptionsOf(sdk).map(({ type: path }) => {
    const [module = "", type = ""] = path.split(":");
    return { module, type };
  });
  return readSdk(folder, types, declarations);
}

/** Compares the type declarations of a version of an SDK with our descriptions. Parameters as in `shapesOf`. */
export function compareWith(sdk: string, folder: string): readonly Difference[] {
  const shapes = shapesOf(sdk, folder);
  return descriptionsOf(sdk).map(({ name, type, schema }, at) => {
    const shape = shapes[at];
    return { name, missing: shape ? missing(shape, shapeOfSchema(schema)) : [`the SDK does not export ${type}`] };
  });
}
