import { learnRefusal, mayTeach } from "../../wire/apis/adapt/learn-refusal.ts";
import { lessonsIn, mergedProfile, withoutLesson } from "../../wire/apis/adapt/lessons.ts";
import type { RequestBody, ServerProfile } from "../../wire/apis/adapt/server-profile.ts";
import type { ServerProfileReport } from "../../wire/core/engine.ts";
import type { GenerationFailure } from "../../wire/core/events.ts";
import type { LogListener } from "../../wire/core/generation-observer.ts";
import { isObject } from "../../wire/core/json.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";

/** What was learned about a model of a server. */
export interface LearnedProfile {
  readonly profile: ServerProfile;
  /** When each lesson (see `lessonsIn`) was learned, in ISO 8601. */
  readonly dates?: Readonly<Record<string, string>>;
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
  readonly log?: LogListener | undefined;
  readonly configured: Omit<ServerProfile, "model">;
  readonly store: ProfileStore;
  /** What servers of the API accept, if nothing else is known. */
  readonly defaults?: ServerProfile | undefined;
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

/** A longer body is not read again for a lesson, in characters. */
const maxReadBody = 4 * 1024 * 1024;

/** What a server has taught about a model. */
interface RequestLesson {
  readonly url: string;
  readonly model: string;
  /** To which this request is adapted. */
  readonly profile: ServerProfile;
  /** What the last refusal has taught: if the server accepts the next attempt, this alone made the difference. */
  readonly last: ServerProfile;
}

/**
 * What the refusals of one request have taught. A lesson holds for this request immediately. It holds for others when the server has accepted
 * the attempt that was adapted to it and to nothing else that is new: the words of a refusal may be wrong.
 */
export class RequestLessons {
  /** Absent until something was learned: most requests are not refused. */
  #lessons: Map<string, RequestLesson> | undefined;

  /** What the request was taught about a model of a server. */
  of(url: string, model: string): ServerProfile | undefined {
    return this.#lessons?.get(keyOf(url, model))?.profile;
  }

  /** The lessons, by server and model, that an accepted request confirms. */
  list(): Iterable<RequestLesson> {
    return this.#lessons?.values() ?? [];
  }

  /** Returns what the refusal of a request shows; null: nothing new. `sent`: the refused body as JSON; `profile`: to which it was adapted. */
  read(failure: GenerationFailure, sent: string, profile: ServerProfile): ServerProfile | null {
    if (sent.length > maxReadBody || failure.answerLimit || !mayTeach(failure)) return null;
    const body: unknown = JSON.parse(sent);
    return isObject(body) ? learnRefusal(failure, body as RequestBody, profile) : null;
  }

  /** Adapts the next attempt to a lesson. */
  add(url: string, model: string, last: ServerProfile): void {
    const profile = mergedProfile(this.of(url, model) ?? {}, last);
    (this.#lessons ??= new Map()).set(keyOf(url, model), { url, model, profile, last });
  }
}

/** The profile with the date of each lesson: of those in `before` the old one. */
export function datedProfile(before: LearnedProfile | undefined, profile: ServerProfile): LearnedProfile {
  const now = new Date().toISOString();
  const dates = Object.fromEntries(lessonsIn(profile).map(({ id }) => [id, before?.dates?.[id] ?? now]));
  return { ...before, profile, dates };
}

/** What a model can or cannot do. The rest of a profile is about the form of requests, which all models of a server share. */
const capabilities = ["tools", "images", "files"] as const;

type Capability = (typeof capabilities)[number];

/** When this many models of a server have lost a capability within `suddenMs`, and none has shown it, the server is to blame. */
const minSudden = 3;
const suddenMs = 60 * 60 * 1000;
/** The maximum number of models whose capabilities are remembered. */
const maxRemembered = 1000;

/** What the models of servers have shown in this process. */
class ShownCapabilities {
  /** By server and capability: each model, with the time when it was found not to have it; 0: it has it. */
  readonly #models = new Map<string, Map<string, number>>();

  accepted(url: string, model: string, capability: Capability): void {
    this.#of(url, capability).set(model, 0);
  }

  refused(url: string, model: string, capability: Capability): void {
    this.#of(url, capability).set(model, Date.now());
  }

  isShown(url: string, model: string, capability: Capability): boolean {
    return this.#of(url, capability).get(model) === 0;
  }

  /** The models that have lost a capability suddenly, all of the server's; none: that is not so. */
  suddenlyLost(url: string, capability: Capability): readonly string[] {
    const all = [...this.#of(url, capability)];
    const recent = all.filter(([, time]) => time > Date.now() - suddenMs);
    return recent.length >= minSudden && recent.length === all.length ? recent.map(([model]) => model) : [];
  }

  #of(url: string, capability: Capability): Map<string, number> {
    const key = keyOf(url, capability);
    let models = this.#models.get(key);
    if (!models || models.size >= maxRemembered) this.#models.set(key, (models = new Map()));
    return models;
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

/** The capabilities that a request needs of its model. */
export function neededCapabilities({ prompt, tools = [] }: GenerationRequest): readonly Capability[] {
  const types = new Set<string>();
  for (const { content } of prompt.kind === "chat" ? prompt.messages : [])
    if (Array.isArray(content)) for (const { type } of content) types.add(type);
  return capabilities.filter((name) =>
    name === "tools" ? tools.length > 0 : types.has(name === "images" ? "image" : "file"),
  );
}

/** The profiles of the servers of an upstream, by their URLs (without credentials) and their names of the models. */
export class UpstreamProfiles {
  readonly #options: ProfileOrigins;
  /** By URL and model: each request asks several times. */
  readonly #merged = new Map<string, MergedProfile>();
  readonly #shown = new ShownCapabilities();

  constructor(options: ProfileOrigins) {
    this.#options = options;
  }

  /** What a server accepts: the configured profile, over what was learned, over that of a known server. */
  of(model: string, url: string, lessons?: RequestLessons): ServerProfile {
    const { configured, store, defaults = {} } = this.#options;
    const known = this.#options.known(model, url)?.profile;
    const reasons = this.#options.reasons(model);
    const learned = store.get(url, model)?.profile;
    const lesson = lessons?.of(url, model);
    const key = keyOf(url, model);
    const before = lesson ? undefined : this.#merged.get(key);
    if (before && before.known === known && before.reasons === reasons && before.learned === learned)
      return before.profile;
    const effort = reasons ? { reasoningEffort: true } : {};
    const profile = mergedProfile(defaults, known ?? {}, effort, learned ?? {}, lesson ?? {}, configured, { model });
    if (!lesson) {
      if (this.#merged.size >= maxMerged) this.#merged.clear();
      this.#merged.set(key, { known, reasons, learned, profile });
    }
    return profile;
  }

  /** A server has accepted a request that needs these capabilities. */
  accepted(model: string, url: string, needed: readonly Capability[]): void {
    for (const capability of needed) this.#shown.accepted(url, model, capability);
  }

  /**
   * Whether a lesson can be true. A model does not lose a capability that it has shown, and no server's models lose one all at once: the
   * server is out of order, and its clients see its words.
   */
  believes(lesson: ServerProfile, model: string, url: string): boolean {
    return capabilities.every(
      (name) =>
        lesson[name] !== false ||
        (!this.#shown.isShown(url, model, name) && this.#shown.suddenlyLost(url, name).length === 0),
    );
  }

  /** Keeps what the last refusal of a server has taught, which has accepted the request that was adapted to it. */
  confirm(lessons: RequestLessons, server: string): void {
    const { store } = this.#options;
    for (const { url, model, last } of lessons.list()) {
      if (url !== server || !this.believes(last, model, url)) continue;
      const learned = store.get(url, model);
      store.set(url, model, datedProfile(learned, mergedProfile(learned?.profile ?? {}, last)));
      for (const name of capabilities) if (last[name] === false) this.#refused(url, model, name);
    }
  }

  #refused(url: string, model: string, capability: Capability): void {
    this.#shown.refused(url, model, capability);
    const lost = this.#shown.suddenlyLost(url, capability);
    if (lost.length === 0) return;
    for (const one of lost) this.forget(one, url, capability);
    this.#options.log?.("not believed: every model of the server suddenly refuses the same", "warn", {
      url,
      capability,
      models: lost,
    });
  }

  /** Forgets a lesson, or all of a model. Returns the ids of those that were forgotten. */
  forget(model: string, url: string, lesson?: string): readonly string[] {
    const { store } = this.#options;
    const learned = store.get(url, model);
    const forgotten = lessonsIn(learned?.profile ?? {}).flatMap(({ id }) =>
      lesson === undefined || id === lesson ? [id] : [],
    );
    if (!learned || forgotten.length === 0) return [];
    const profile = forgotten.reduce<ServerProfile>((left, id) => withoutLesson(left, id), learned.profile);
    store.set(url, model, datedProfile(learned, profile));
    return forgotten;
  }

  /** The profile with the origin of each entry. */
  report(model: string, url: string): ServerProfileReport {
    const { configured, store, known } = this.#options;
    // Added members may contain secrets.
    const { add: _, ...shown } = configured;
    const server = known(model, url);
    const learned = store.get(url, model);
    const name = server?.name;
    return {
      url,
      model,
      ...(name !== undefined && { server: name }),
      known: { ...server?.profile },
      learned: { ...learned?.profile },
      lessons: lessonsIn(learned?.profile ?? {}).map(({ id, value }) => ({
        id,
        value,
        ...(learned?.dates?.[id] !== undefined && { learned: learned.dates[id] }),
      })),
      configured: shown,
    };
  }
}
