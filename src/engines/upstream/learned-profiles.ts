import { learnRefusal, mayTeach, mergedProfile } from "../../apis/adapt/learn-refusal.ts";
import type { RequestBody, ServerProfile } from "../../apis/adapt/server-profile.ts";
import type { ServerProfileReport } from "../../core/engine.ts";
import type { GenerationFailure } from "../../core/events.ts";
import { isObject } from "../../core/json.ts";

/** What was learned about a model of a server. */
export interface LearnedProfile {
  readonly profile: ServerProfile;
  /** The server's name and version as it reports them; a server of another version is asked again. Absent: not asked. */
  readonly server?: string;
  /** All probes were sent to this version. */
  readonly probed?: boolean;
}

/** Keeps what was learned, by the URL of the server (without credentials) and its name of the model. */
export interface ProfileStore {
  get(url: string, model: string): LearnedProfile | undefined;
  /** Must not throw: a file that cannot be written loses what was learned at the next start. */
  set(url: string, model: string, learned: LearnedProfile): void;
}

/** The maximum number of kept profiles: a server may list thousands of models. */
const maxProfiles = 1000;

/** Where the entries of profiles come from. */
export interface ProfileOrigins {
  readonly configured: Omit<ServerProfile, "model">;
  readonly store: ProfileStore;
  known(model: string, url: string): { readonly name: string; readonly profile: ServerProfile } | undefined;
  /** Whether the server lists that the model reasons. */
  reasons(model: string): boolean;
}

/** Keeps profiles while the process runs. Above the maximum, the oldest one is dropped. */
export class ProfileMemory implements ProfileStore {
  readonly #profiles = new Map<string, LearnedProfile>();

  get(url: string, model: string): LearnedProfile | undefined {
    return this.#profiles.get(keyOf(url, model));
  }

  set(url: string, model: string, learned: LearnedProfile): void {
    const [oldest] = this.#profiles.keys();
    if (oldest !== undefined && this.#profiles.size >= maxProfiles) this.#profiles.delete(oldest);
    this.#profiles.set(keyOf(url, model), learned);
  }
}

function keyOf(url: string, model: string): string {
  // A URL contains no space.
  return `${url} ${model}`;
}

/** A longer body is not read again for a lesson. */
const maxReadBody = 16 * 1024 * 1024;

/** What a server has taught about a model. */
interface Lesson {
  readonly url: string;
  readonly model: string;
  readonly profile: ServerProfile;
}

/**
 * What the refusals of one request have taught. A lesson holds for this request immediately, and for others when the server has accepted a
 * request that was adapted to it: the words of a refusal may quote the client.
 */
export class RequestLessons {
  /** Absent until something was learned: most requests are not refused. */
  #lessons: Map<string, Lesson> | undefined;

  /** What the request was taught about a model of a server. */
  of(url: string, model: string): ServerProfile | undefined {
    return this.#lessons?.get(keyOf(url, model))?.profile;
  }

  /** All lessons, by server and model. */
  list(): Iterable<Lesson> {
    return this.#lessons?.values() ?? [];
  }

  /**
   * Learns from the refusal of a request. Returns what is new; null: nothing. `sent`: the refused body as JSON; `profile`: to which it was
   * adapted.
   */
  learn(
    url: string,
    model: string,
    failure: GenerationFailure,
    sent: string,
    profile: ServerProfile,
  ): ServerProfile | null {
    if (sent.length > maxReadBody || failure.answerLimit || !mayTeach(failure)) return null;
    const body: unknown = JSON.parse(sent);
    const lesson = isObject(body) ? learnRefusal(failure, body as RequestBody, profile) : null;
    if (lesson)
      (this.#lessons ??= new Map()).set(keyOf(url, model), {
        url,
        model,
        profile: mergedProfile(this.of(url, model) ?? {}, lesson),
      });
    return lesson;
  }
}

/** The number of merged profiles that are kept. */
const maxMerged = 1000;

/** A profile, and what it was merged from. */
interface MergedProfile {
  readonly known: ServerProfile | undefined;
  readonly reasons: boolean;
  readonly learned: ServerProfile | undefined;
  readonly profile: ServerProfile;
}

/** The profiles of the servers of an upstream, by their URLs (without credentials) and their names of the models. */
export class UpstreamProfiles {
  readonly #options: ProfileOrigins;
  /** By URL and model: each request asks several times. */
  readonly #merged = new Map<string, MergedProfile>();

  constructor(options: ProfileOrigins) {
    this.#options = options;
  }

  /** What a server accepts: the configured profile, over what was learned, over that of a known server. */
  of(model: string, url: string, lessons?: RequestLessons): ServerProfile {
    const { configured, store } = this.#options;
    const known = this.#options.known(model, url)?.profile;
    const reasons = this.#options.reasons(model);
    const learned = store.get(url, model)?.profile;
    const lesson = lessons?.of(url, model);
    const key = keyOf(url, model);
    const before = lesson ? undefined : this.#merged.get(key);
    if (before && before.known === known && before.reasons === reasons && before.learned === learned)
      return before.profile;
    const effort = reasons ? { reasoningEffort: true } : {};
    const profile = mergedProfile(known ?? {}, effort, learned ?? {}, lesson ?? {}, configured, { model });
    if (!lesson) {
      if (this.#merged.size >= maxMerged) this.#merged.clear();
      this.#merged.set(key, { known, reasons, learned, profile });
    }
    return profile;
  }

  /** Keeps what the refusals of a server have taught. */
  confirm(lessons: RequestLessons, server: string): void {
    const { store } = this.#options;
    for (const { url, model, profile } of lessons.list()) {
      if (url !== server) continue;
      const learned = store.get(url, model);
      store.set(url, model, { ...learned, profile: mergedProfile(learned?.profile ?? {}, profile) });
    }
  }

  /** The profile with the origin of each entry. */
  report(model: string, url: string): ServerProfileReport {
    const { configured, store, known } = this.#options;
    // Added members may contain secrets.
    const { add: _, ...shown } = configured;
    const server = known(model, url);
    const learned = store.get(url, model);
    const name = learned?.server ?? server?.name;
    return {
      url,
      model,
      ...(name !== undefined && { server: name }),
      known: { ...server?.profile },
      learned: { ...learned?.profile },
      configured: shown,
    };
  }
}
