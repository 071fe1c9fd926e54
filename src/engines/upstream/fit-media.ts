import { textOfFile, type UnfitPart, withParts } from "../../wire/apis/adapt/fit-media.ts";
import type { NoteAdaptation, ServerProfile } from "../../wire/apis/adapt/server-profile.ts";
import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import type { ContentPart, FilePart, ImagePart } from "../../wire/core/message.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { JobOrigin } from "../lifecycle/limited-jobs.ts";
import type { Background } from "./background/background.ts";

/** The most files and images of one request that are read or converted. */
const maxParts = 100;
/** How long reading all of them may take. */
const maxMs = 60_000;

/**
 * Replaces the parts of a request that the server does not take: files by their text, images by data URLs of a type and size that it takes.
 * URLs are downloaded from the public internet only. `origin`: of the request. Rejects with `FailureError`, which names the part's place in the client's request.
 */
export async function fitMedia(
  request: GenerationRequest,
  parts: readonly UnfitPart[],
  profile: ServerProfile,
  background: Background,
  note: NoteAdaptation,
  origin: JobOrigin = {},
): Promise<GenerationRequest> {
  const [first] = parts;
  if (first && parts.length > maxParts)
    throw unreadable(first, `the request has ${parts.length} of them, and at most ${maxParts} are converted`);
  const replaced = new Map<ContentPart, ContentPart>();
  const deadline = performance.now() + maxMs;
  // One after another: an owner has one process at a time, and only one of them is in memory.
  for (const unfit of parts) {
    const { part, name, place } = unfit;
    if (performance.now() > deadline)
      throw unreadable(unfit, `reading all files and images took longer than ${maxMs / 1000} seconds`);
    // Whether an image is converted shows when it has been read; the others are always changed.
    const isCertain = part.type === "file" || /^https?:/i.test(part.url);
    if (isCertain) note(name, place);
    try {
      const other =
        part.type === "file"
          ? await fileAsText(part, background, origin)
          : await fittingImage(part, profile, background, origin);
      if (!other) continue;
      replaced.set(part, other);
    } catch (error) {
      if (error instanceof FailureError) throw error;
      throw unreadable(unfit, error instanceof Error ? error.message : String(error), error);
    }
    if (!isCertain) note(name, place);
  }
  return withParts(request, replaced);
}

async function fileAsText(
  { name, data, url, cacheMinutes }: FilePart,
  background: Background,
  origin: JobOrigin,
): Promise<ContentPart> {
  const address = url ?? (/^https?:/i.test(data ?? "") ? data : undefined);
  const bytes = address === undefined ? (data ?? "") : await background.download(address, "*/*", origin);
  const { text, isCut } = await background.documentText(bytes, origin);
  return { type: "text", text: textOfFile(name, text, isCut), ...(cacheMinutes !== undefined && { cacheMinutes }) };
}

/** null: the image fits as it is. */
async function fittingImage(
  part: ImagePart,
  { imageTypes, maxImageSide }: ServerProfile,
  background: Background,
  origin: JobOrigin,
): Promise<ImagePart | null> {
  const isRemote = /^https?:/i.test(part.url);
  if (!isRemote && !/^data:/i.test(part.url)) throw new Error("its URL must begin with https:, http: or data:");
  const data = isRemote ? await background.download(part.url, "image/*", origin) : part.url;
  const limits = {
    ...(imageTypes && { types: imageTypes }),
    ...(maxImageSide !== undefined && { maxSide: maxImageSide }),
  };
  const { url } = await background.convertImage(data, limits, origin);
  return url === null ? null : { ...part, url };
}

function unreadable({ part, place }: UnfitPart, reason: string, cause?: unknown) {
  const what = part.type === "file" ? "The file" : "The image";
  const name = part.type === "file" && part.name !== undefined ? ` ${JSON.stringify(part.name.slice(0, 100))}` : "";
  const failure = invalidRequest(
    `${place}: ${what}${name} cannot be ${part.type === "file" ? "read as text, and the model takes no files" : "sent to the model"}: ${reason}.`,
    place,
    "unsupported_value",
  );
  failure.cause = cause;
  return failure;
}
