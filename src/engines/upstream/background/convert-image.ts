import { Buffer } from "node:buffer";
import { imageSize } from "../../../wire/core/image-size.ts";
import { imageTypeOf } from "../../../wire/apis/adapt/fit-media.ts";
import type { ConvertedImage, ImageLimits } from "./background.ts";

/** The part of sharp's interface that is used. */
interface Sharp {
  metadata(): Promise<{ readonly format?: string; readonly width?: number; readonly height?: number }>;
  rotate(): Sharp;
  resize(options: { width: number; height: number; fit: "inside"; withoutEnlargement: true }): Sharp;
  flatten(options: { background: string }): Sharp;
  png(): Sharp;
  jpeg(options: { quality: number }): Sharp;
  toBuffer(): Promise<Uint8Array>;
}

export type OpenSharp = (bytes: Uint8Array, options: { limitInputPixels: number }) => Sharp;

/** The most pixels of an image that is decoded. */
const maxPixels = 100_000_000;

/**
 * Converts an image to PNG or JPEG if the server does not take its type, and makes it smaller if a side is too long. Needs the optional
 * package `sharp` where something changes. `isData`: the client
 * sent a data URL, which needs no other one if nothing changes. Throws an Error with a reason.
 */
export async function convertImage(
  bytes: Uint8Array,
  { types, maxSide }: ImageLimits,
  isData: boolean,
  open: (need: string) => Promise<OpenSharp> = openSharp,
): Promise<ConvertedImage> {
  const type = imageTypeOf(Buffer.from(bytes.subarray(0, 12)).toString("latin1"));
  if (type === undefined) throw new Error("it is not an image of a known type");
  const isTaken = types === undefined || types.includes(type);
  const size = imageSize(bytes);
  const isSmall = maxSide === undefined || (size !== undefined && Math.max(...size) <= maxSide);
  const same = isData ? null : dataUrl(bytes, type);
  if (isTaken && isSmall) return { url: same };
  const sharp = await open(isTaken ? `it is larger than ${maxSide} pixels` : `the server does not take ${type}`);
  const image = sharp(bytes, { limitInputPixels: maxPixels });
  const { width = 0, height = 0 } = await image.metadata();
  if (isTaken && Math.max(width, height) <= (maxSide ?? Infinity)) return { url: same };
  const limit = maxSide ?? Math.max(width, height);
  const smaller = image.rotate().resize({ width: limit, height: limit, fit: "inside", withoutEnlargement: true });
  const isPhoto = type === "image/jpeg" || (types !== undefined && !types.includes("image/png"));
  const written = isPhoto ? smaller.flatten({ background: "#fff" }).jpeg({ quality: 90 }) : smaller.png();
  return { url: dataUrl(await written.toBuffer(), isPhoto ? "image/jpeg" : "image/png") };
}

function dataUrl(bytes: Uint8Array, type: string): string {
  return `data:${type};base64,${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64")}`;
}

async function openSharp(need: string): Promise<OpenSharp> {
  try {
    // A name that is not a literal: the package is optional.
    const name = "sharp";
    const module = (await import(name)) as { readonly default: OpenSharp };
    return module.default;
  } catch {
    throw new Error(`${need}, and it cannot be converted without the package sharp: run "npm install sharp"`);
  }
}
