import { command, inPlace } from "../place.ts";
import { existsSync } from "node:fs";
import { join } from "node:path";

/** A test suite of another project, which runs against Truewire. */
export interface Suite {
  /** As files and the command line name it. */
  readonly id: string;
  /** As people call it. */
  readonly name: string;
  /** Where it comes from, such as `pip langchain-tests`. */
  readonly from: string;
  /** What is not run, and why; undefined: all is run. */
  readonly leftOut?: string;
  /** Why tests fail, by a part of their names: Truewire, the model that answers, or the suite itself. */
  readonly reasons: readonly (readonly [test: string, whose: "Truewire" | "model" | "suite", why: string])[];
  /** Returns the installed version; undefined: it is not installed. */
  version(): string | undefined;
  /** Installs it. Rejects with the reason where that is not possible. */
  install(): Promise<void>;
  /** Runs its tests. */
  run(place: SuitePlace): Promise<SuiteCase[]>;
}

/** A Truewire with the models of `run.ts`. */
export interface SuitePlace {
  /** Without `/v1`. */
  readonly url: string;
  /** A model that does what is asked. */
  readonly capable: string;
  /** A model of embeddings; undefined: none is installed. */
  readonly embeddings: string | undefined;
}

export interface SuiteCase {
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** The error, or why it was skipped. */
  readonly detail: string;
}

/** A public repository at a commit, in a folder of its own. */
export interface Source {
  readonly folder: string;
  /** Its first twelve digits and the date of the commit; undefined: it is not there. */
  version(): string | undefined;
  install(): Promise<void>;
}

/** Returns the source of a repository of GitHub (`owner/name`) at a commit of the date. */
export function sourceOf(repository: string, commit: string, date: string): Source {
  const folder = inPlace("sources", repository.replace("/", "+"));
  return {
    folder,
    version: () => (existsSync(join(folder, ".git", "FETCH_HEAD")) ? `${commit.slice(0, 12)} of ${date}` : undefined),
    async install() {
      await command("git", ["init", "--quiet", folder]);
      const address = `https://github.com/${repository}.git`;
      await command("git", ["-C", folder, "fetch", "--quiet", "--depth", "1", address, commit]);
      await command("git", ["-C", folder, "checkout", "--quiet", "--force", "FETCH_HEAD"]);
    },
  };
}
