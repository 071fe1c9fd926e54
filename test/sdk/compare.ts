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

/**
 * The SDKs that are compared → the packages of `node_modules` that are versions of each: the one that the client tests use, and the newest
 * one if that is another.
 */
export const sdks: Readonly<Record<string, readonly string[]>> = {
  openai: ["openai", "openai-7"],
  "@anthropic-ai/sdk": ["@anthropic-ai/sdk"],
};

/**
 * Compares an SDK's type declarations with our descriptions.
 *
 * @param sdk Name of the SDK.
 * @param folder Absolute path of a package that is a version of it: `/…/node_modules/openai-7`.
 */
export function compareWith(sdk: string, folder: string): readonly Difference[] {
  const compared = descriptions.filter((description) => description.sdk === sdk);
  const types = compared.map(({ type: path }) => {
    const [module = "", type = ""] = path.split(":");
    return { module, type };
  });
  const shapes = readSdk(folder, types);
  return compared.map(({ name, type, schema }, at) => {
    const shape = shapes[at];
    return { name, missing: shape ? missing(shape, shapeOfSchema(schema)) : [`the SDK no longer exports ${type}`] };
  });
}
