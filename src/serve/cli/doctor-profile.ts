import { readFile, realpath, stat, writeFile } from "node:fs/promises";
import { isMap, isScalar, isSeq, parseDocument, stringify } from "yaml";
import { knownServer } from "../../wire/apis/adapt/known-servers.ts";
import { learnRefusal } from "../../wire/apis/adapt/learn-refusal.ts";
import { mergedProfile } from "../../wire/apis/adapt/lessons.ts";
import type { ServerProfile } from "../../wire/apis/adapt/server-profile.ts";
import type { ListedModel } from "../../wire/apis/models/models.ts";
import { failureOfText, readFailure } from "../../wire/apis/tolerant/read-failure.ts";
import type { ProfileProbe } from "../../judge/check/probe/profile-probes.ts";
import type { Exchange } from "../../judge/check/rules/exchange.ts";
import { modelOfTarget } from "../config/target.ts";
import { replaceFile } from "../kv/replace-file.ts";
import { parsedOrNothing } from "./doctor-answer.ts";

/** What Truewire knows of a server by its host or its list of models. */
export function knownProfile(url: string, entry: ListedModel | undefined): ServerProfile {
  return knownServer(url, entry && { ...entry, ownedBy: entry.ownedBy ?? "" })?.profile ?? {};
}

/** What the refusal of a probe shows about a server beyond `profile`: by its words, else by what the probe asks for. */
export function lessonOf(
  { members, refused, isAdaptedAnyway }: ProfileProbe,
  { request, response: { status, body } }: Exchange,
  profile: ServerProfile,
): ServerProfile {
  if (isAdaptedAnyway) return {};
  const failure = readFailure(parsedOrNothing(body), status) ?? failureOfText(body, status);
  const { tool_choice: choice, response_format: format } = members;
  const learned = (message: string, sent: Readonly<Record<string, unknown>>): ServerProfile | null =>
    learnRefusal({ status: 400, message, param: null, code: null }, sent, profile);
  const found =
    learnRefusal(failure, request.body ?? {}, profile) ??
    // Members that have several forms: the forms that are left without the refused one.
    (choice !== undefined ? learned("Invalid tool_choice:", { tool_choice: choice }) : null) ??
    (format !== undefined ? learned("'response_format.type' must be another", { response_format: format }) : null) ??
    refused;
  return Object.fromEntries(
    Object.entries(found).filter(([name, value]) => {
      const merged = mergedProfile(profile, { [name]: value }) as Readonly<Record<string, unknown>>;
      return JSON.stringify(merged[name]) !== JSON.stringify((profile as Readonly<Record<string, unknown>>)[name]);
    }),
  );
}

/** The entry of an upstream for the configuration, as YAML. */
export function entryText(url: string, profile: ServerProfile): string {
  return stringify({ models: [{ kind: "upstream", url, requests: profile }] });
}

/**
 * Writes what a server accepts into the `requests` of its entry in a configuration file, and leaves the members that are set there, and
 * comments. Adds an entry, and creates the file, if they are missing. Throws an Error for a file that is no configuration.
 */
export async function writeProfile(file: string, url: string, profile: ServerProfile): Promise<void> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  const next = text.trim() === "" ? entryText(url, profile) : withProfile(file, text, url, profile);
  const place = await realpath(file).catch(() => file);
  const mode = (await stat(place).catch(() => undefined))?.mode;
  // Whoever reads the file finds the old one or the new one, also if this process ends now.
  const unfinished = `${place}.${process.pid}`;
  await writeFile(unfinished, next, mode === undefined ? {} : { mode });
  await replaceFile(unfinished, place);
}

function withProfile(file: string, text: string, url: string, profile: ServerProfile): string {
  const document = parseDocument(text);
  const models = document.get("models");
  if (document.errors.length > 0 || !isMap(document.contents) || (models !== undefined && !isSeq(models)))
    throw new Error(`${file} is not a configuration: expected a mapping with a list of models`);
  const at = isSeq(models) ? models.items.findIndex((item) => urlsOf(item).includes(url)) : -1;
  const entry = isSeq(models) ? models.items[at] : undefined;
  if (isMap(entry)) {
    for (const [name, value] of Object.entries(profile))
      if (!entry.hasIn(["requests", name])) document.setIn(["models", at, "requests", name], value);
  } else if (isScalar(entry)) {
    document.setIn(["models", at], document.createNode({ ...modelOfTarget(String(entry.value)), requests: profile }));
  } else {
    const added = document.createNode({ kind: "upstream", url, requests: profile });
    if (isSeq(models)) models.add(added);
    else document.set("models", document.createNode([added]));
  }
  return document.toString({ lineWidth: 0 });
}

/** The base URLs of an entry of `models`, without a slash at the end. */
function urlsOf(item: unknown): readonly string[] {
  const entry: unknown = isScalar(item) ? modelOfTarget(String(item.value)) : isMap(item) ? item.toJSON() : undefined;
  const { url } = (entry ?? {}) as { readonly url?: unknown };
  return [url].flat().flatMap((one) => (typeof one === "string" ? [one.replace(/\/$/, "")] : []));
}
