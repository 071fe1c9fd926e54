import { setStackSize } from "../process/c-api/llama-api.ts";
import type { Koffi } from "../process/c-api/structs.ts";
import { findDriver, systemGpu } from "./drivers.ts";
import { libraryFolders, type LibraryFolder } from "./library-folders.ts";

/** The libraries to load, and why they use no GPU; `noGpu` is absent if a GPU may be used. */
export interface ChosenLibraries {
  readonly libraries: LibraryFolder;
  readonly noGpu?: string;
}

/** Chooses the fastest installed build whose device is there. Returns undefined if no build is installed. */
export function chooseLibraries(koffi: Koffi, wantsGpu: boolean): ChosenLibraries | undefined {
  setStackSize(koffi);
  const [forProcessor] = libraryFolders(false);
  if (!wantsGpu) return forProcessor && { libraries: forProcessor, noGpu: "gpu is off" };
  const misfits: string[] = [];
  for (const libraries of libraryFolders(true)) {
    const { backend = "cpu" } = libraries;
    if (backend === "cpu") continue;
    const { fits, why } = findDriver(koffi, backend);
    if (fits) return { libraries };
    misfits.push(`${backend}: ${why}`);
  }
  const gpu = systemGpu();
  const noGpu =
    misfits.length > 0
      ? misfits.join("; ")
      : gpu === undefined
        ? "no GPU was found"
        : `${gpu} is there, and no build of llama.cpp for it: truewire libraries install`;
  return forProcessor && { libraries: forProcessor, noGpu };
}
