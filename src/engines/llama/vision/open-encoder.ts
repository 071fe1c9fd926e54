import type { LogListener } from "../../../wire/core/generation-observer.ts";
import { ModelOpenError } from "../model-open-error.ts";
import { readProjectorFile } from "../file/read-model-file.ts";
import { checkIsGguf } from "../process/model-file.ts";
import type { OpenModelMessage } from "../protocol.ts";
import { EncoderProcess } from "./encoder-process.ts";
import { projectorNextTo } from "./find-projector.ts";
import { findMtmd, mtmdPackage } from "./mtmd-api.ts";

/** The text model that images are encoded for. */
export interface TextModel {
  readonly path: string;
  /** Numbers of a row that it takes in place of a token. */
  readonly rowLength: number;
  readonly threads: number;
}

/** An encoder of images, and the projector's file. `encoder` is `null` without libmtmd; `hint` then says what to install. */
export type OpenEncoder =
  | { readonly encoder: EncoderProcess; readonly mmproj: string; readonly hint?: never }
  | { readonly encoder: null; readonly mmproj?: never; readonly hint: string };

/**
 * Opens the encoder of a model's images: with the configured projector, or one that is next to the model. Returns `null` for a model without
 * a projector, and if one that was not configured cannot be used, which is logged. Throws ModelOpenError if a configured one cannot be used.
 */
export async function openEncoder(
  { path, rowLength, threads }: TextModel,
  options: Pick<OpenModelMessage, "mmproj" | "llamaLibraries" | "gpu">,
  log: LogListener,
): Promise<OpenEncoder | null> {
  if (options.mmproj === "off") return null;
  const mmproj = options.mmproj ?? (await projectorNextTo(path));
  if (mmproj === null) return null;
  try {
    await checkIsGguf(mmproj);
    const { isLazy, takes } = await readProjectorFile(mmproj);
    const source = findMtmd(options.llamaLibraries);
    if (!source) {
      const hint =
        `Images need llama.cpp's libmtmd, which is not installed here: npm install ${mtmdPackage}, or pass a folder with a build of ` +
        "llama.cpp (--llama-libraries FOLDER).";
      if (options.mmproj !== undefined) throw new ModelOpenError("library-missing", hint);
      if (!isLazy) log(`The projector ${mmproj} is not used, so the model takes text only: ${hint}`, "warn");
      return { encoder: null, hint };
    }
    const open = { type: "open", source, model: path, mmproj, rowLength, threads, gpu: options.gpu !== "off" } as const;
    if (isLazy) return { encoder: new EncoderProcess(open, log, takes), mmproj };
    const encoder = await EncoderProcess.open(open, log).catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : String(cause);
      const where = "folder" in source ? source.folder : source.file;
      throw new ModelOpenError("load-failed", `libmtmd of ${where} cannot be used: ${reason}.`, cause);
    });
    const { images, audio } = encoder.takes;
    const media = [images && "images", audio && "audio"].filter(Boolean).join(" and ");
    log(`Takes ${media}, with the projector ${mmproj}.`, "info");
    return { encoder, mmproj };
  } catch (error) {
    if (options.mmproj !== undefined || !(error instanceof ModelOpenError)) throw error;
    log(`The projector ${mmproj} is not used, so the model takes text only: ${error.message}`, "warn");
    return null;
  }
}
