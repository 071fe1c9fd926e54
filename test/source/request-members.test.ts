import { relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { SyntaxKind } from "typescript/unstable/ast";
import type { Node } from "typescript/unstable/ast";
import {
  isBindingElement,
  isIdentifier,
  isInterfaceDeclaration,
  isPropertyAccessExpression,
} from "typescript/unstable/ast/is";
import { API } from "typescript/unstable/sync";
import type { Project } from "typescript/unstable/sync";
import { beforeAll, describe, expect, test } from "vitest";

// `truncation: "auto"` was read into the request and documented as supported, and no engine read it. Nothing compared what a request can
// say with what engines read.

type Kind = "local" | "program" | "chat" | "completions" | "responses" | "messages";

const chatWriters = ["src/wire/apis/chat/send.ts", "src/wire/apis/chat/write-messages.ts"];
const sampling = "src/wire/apis/adapt/server-profile.ts";
const upstream = "src/engines/upstream/";
/** Where each kind of engine reads requests, an upstream by the API that it speaks. */
const places: Readonly<Record<Kind, readonly string[]>> = {
  local: ["src/engines/llama/", "src/text/templates/"],
  program: ["src/engines/program/", sampling, ...chatWriters, "src/wire/apis/completions/send.ts"],
  chat: [upstream, sampling, ...chatWriters],
  completions: [upstream, sampling, "src/wire/apis/completions/send.ts"],
  responses: [upstream, sampling, "src/wire/apis/responses/send.ts"],
  messages: [upstream, "src/wire/apis/messages/send.ts"],
};
/** It writes every member of a request for the model's process, and reads none. */
const copies = "src/engines/llama/request-text.ts";
/** What the server does for every kind of engine. */
const forAll = "src/serve/server/source.ts";

const hosted = "the tool loop runs hosted tools and counts their calls (src/serve/server/hosted/)";
const shown = "the API's writer decides how reasoning is shown";
const noPlace = "the API has no member for it (docs/messages.md, Upstreams)";
const ofTemplates = "the upstream renders the template, and its API cannot say how";
const ofOtherPrompts = "the API takes the other kind of prompt";
const writtenWhole = "its parent is written as the client sent it";
const ofServer = "the server's writers read it, in the request";
const ofUpstreams = "only an upstream can do something with it";
const unread = "completions models know neither tools nor reasoning";

/** What `Passthrough` says of states, and what sealed values contain. */
const passedStates = ["Passthrough.sealed", "Passthrough.hasOtherStates"];
const sealedMembers = ["SealedValues.text", "SealedValues.state"];
const elsewhere =
  "read where the states of messages are fitted (apis/adapt/message-states.ts, apis/responses/fit-items.ts)";

const everyUpstream = {
  "GenerationRequest.hostedTools": hosted,
  "AnswerLimits.maxToolCalls": hosted,
  "Sampling.adapters.id": writtenWhole,
  "Sampling.adapters.scale": writtenWhole,
};
const withoutTemplates = reasons(ofTemplates, [
  "ChatPrompt.template",
  ...["variables", "documents", "addGenerationPrompt", "continueFinalMessage", "responsePrefix"].map(
    (name) => `TemplateOptions.${name}`,
  ),
]);
const withoutTexts = reasons(
  ofOtherPrompts,
  ["suffix", "echo", "bestOf"].map((name) => `TextPrompt.${name}`),
);

/** What an engine ignores, and why. */
const ignored: Readonly<Record<Kind, Readonly<Record<string, string>>>> = {
  local: {
    "GenerationRequest.model": "a local engine has one model",
    "GenerationRequest.hostedTools": hosted,
    "AnswerLimits.maxToolCalls": hosted,
    "GenerationRequest.verbosity": "local models are not trained for it (docs/parameters.md)",
    "GenerationRequest.wantsUsage": ofServer,
    "GenerationRequest.wantsTimings": "timings always go to the writers, which show them where they are asked for",
    "GenerationRequest.stream": ofServer,
    "GenerationRequest.extra": ofUpstreams,
    "GenerationRequest.clientKey": ofUpstreams,
    "GenerationRequest.passthrough": ofUpstreams,
    "Passthrough.dialect": ofUpstreams,
    "Passthrough.body": ofUpstreams,
    "Passthrough.headers": ofUpstreams,
    ...reasons(ofUpstreams, [...passedStates, ...sealedMembers]),
    "ReasoningOptions.show": shown,
  },
  program: {
    "GenerationRequest.clientKey": ofUpstreams,
    ...reasons(ofUpstreams, sealedMembers),
    "GenerationRequest.hostedTools": hosted,
    "AnswerLimits.maxToolCalls": hosted,
    "Passthrough.headers": ofUpstreams,
    "ReasoningOptions.show": shown,
    "Sampling.adapters.id": writtenWhole,
    "Sampling.adapters.scale": writtenWhole,
  },
  chat: { ...everyUpstream, ...withoutTexts, ...reasons(elsewhere, sealedMembers), "ReasoningOptions.show": shown },
  completions: {
    ...everyUpstream,
    ...withoutTemplates,
    ...reasons(unread, [
      ...["prediction", "verbosity"].map((name) => `GenerationRequest.${name}`),
      ...["effort", "budgetTokens", "show"].map((name) => `ReasoningOptions.${name}`),
      ...passedStates,
      ...sealedMembers,
    ]),
  },
  responses: {
    ...reasons(elsewhere, [...passedStates, ...sealedMembers]),
    ...everyUpstream,
    ...withoutTemplates,
    ...withoutTexts,
    "GenerationRequest.prediction": "it makes answers faster, not different, and the API has no member for it",
    "ReasoningOptions.budgetTokens": "the API has efforts, not budgets",
  },
  messages: {
    ...reasons(elsewhere, ["SealedValues.state"]),
    ...everyUpstream,
    ...withoutTemplates,
    ...withoutTexts,
    ...reasons(noPlace, [
      ...["logprobs", "logprobs.top", "prediction", "promptLogprobs.top", "verbosity"].map(
        (name) => `GenerationRequest.${name}`,
      ),
      ...["cachePrompt", "ignoreEos", "minTokens", "stopTokenIds"].map((name) => `AnswerLimits.${name}`),
      ...["adapters", "frequencyPenalty", "presencePenalty", "repeatPenalty", "repeatLastN", "minP", "seed"].map(
        (name) => `Sampling.${name}`,
      ),
      ...["logitBias", "textBias", "textBias.text", "textBias.bias"].map((name) => `Sampling.${name}`),
      ...["xtc", "xtc.probability", "xtc.threshold"].map((name) => `Sampling.${name}`),
      ...["dry", "dry.multiplier", "dry.base", "dry.allowedLength", "dry.lastN", "dry.sequenceBreakers"].map(
        (name) => `Sampling.${name}`,
      ),
    ]),
    "GenerationRequest.wantsRunningUsage": "the API says usage at the beginning and the end",
    "GenerationRequest.wantsProgress": "the API has no events for it",
    "GenerationRequest.wantsTimings": "the API has no member for it; they are an extension of llama.cpp's",
  },
};

function reasons(reason: string, names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, reason]));
}

describe("every member of a request is read by each kind of engine, or ignored for a reason", () => {
  let members: ReturnType<typeof readMembers>;
  beforeAll(() => {
    members = readMembers();
  });

  test("the members are found", () => {
    expect(members.size).toBeGreaterThan(60);
    expect([...members.keys()]).toEqual(
      expect.arrayContaining(["GenerationRequest.prompt", "AnswerLimits.overflow", "Sampling.dry.base"]),
    );
  });

  test.each(Object.keys(places) as Kind[])("%s", (kind) => {
    const names = [...members]
      .filter(([, files]) => !files.some((file) => isPlaceOf(kind, file)))
      .map(([name]) => name);
    const listed = Object.keys(ignored[kind]);
    expect({
      "read by no engine of this kind, and not listed here": names.filter((name) => !listed.includes(name)),
      "listed here as ignored, and read or not there": listed.filter((name) => !names.includes(name)),
    }).toEqual({
      "read by no engine of this kind, and not listed here": [],
      "listed here as ignored, and read or not there": [],
    });
  });
});

function isPlaceOf(kind: Kind, file: string): boolean {
  return file !== copies && [forAll, ...places[kind]].some((place) => file.startsWith(place));
}

/** The members of all interfaces in `request.ts`, by their paths, with the files of engines that read them. */
function readMembers(): ReadonlyMap<string, readonly string[]> {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const api = new API({ cwd: root });
  try {
    const [project] = api.updateSnapshot({ openProjects: [resolve(root, "tsconfig.build.json")] }).getProjects();
    const source = project?.program.getSourceFile(resolve(root, "src/wire/core/request.ts"));
    if (!project || !source) throw new Error("src/wire/core/request.ts is not in the project of tsconfig.build.json.");
    const found = new Map<string, readonly string[]>();
    const visit = (node: Node, path: string): void => {
      node.forEachChild((child) => {
        const name = "name" in child ? (child.name as Node | undefined) : undefined;
        if (child.kind === SyntaxKind.PropertySignature && name && isIdentifier(name)) {
          found.set(path + name.text, readersOf(project, name, root));
          visit(child, `${path}${name.text}.`);
        } else if (isInterfaceDeclaration(child)) visit(child, `${child.name.text}.`);
        // A type of its own (`OutputConstraint`) is read as a whole.
        else if (path !== "") visit(child, path);
      });
    };
    visit(source, "");
    return found;
  } finally {
    api.close();
  }
}

function readersOf(project: Project, name: Node, root: string): readonly string[] {
  const files = new Set<string>();
  for (const { references } of project.checker.getReferencedSymbolsForNode(name, name.getStart())) {
    for (const reference of references) {
      const file = relative(root, reference.path).replaceAll("\\", "/");
      const isEngines = (Object.keys(places) as Kind[]).some((kind) => isPlaceOf(kind, file));
      if (!isEngines || file.endsWith(".test.ts") || files.has(file)) continue;
      const node = reference.resolve(project);
      if (node && isRead(node)) files.add(file);
    }
  }
  return [...files];
}

/** `request.name`, or `name` of a pattern that takes an object apart; not a member that is written. */
function isRead(node: Node): boolean {
  const { parent } = node;
  if (isPropertyAccessExpression(parent)) return parent.name === node;
  return isBindingElement(parent) && (parent.propertyName ?? parent.name) === node;
}
