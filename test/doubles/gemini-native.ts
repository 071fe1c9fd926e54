import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import { listen, listOf, objectOf, pieces, readBody, sendJson, sessionDouble, signer, stepOf } from "./chat-server.ts";
import type { Double, Json, Refusal, Turns } from "./chat-server.ts";
import { missingSignature } from "./gemini.ts";
import { Sessions } from "./task.ts";
import type { Conversation, Step, TaskCall } from "./task.ts";

/*
 * Gemini 3 at its own API. The first call of each step, and the last text, have a signature, which is demanded in all steps since the last text
 * of the user, and verified wherever it is. Sources: https://ai.google.dev/gemini-api/docs/thought-signatures (what is validated, the
 * sentinels); https://ai.google.dev/api/generate-content and https://ai.google.dev/api/caching#Schema (members); recordings in
 * crmne/ruby_llm, spec/fixtures/vcr_cassettes (the form of answers). The words of refusals: router-for-me/CLIProxyAPI#97 (unknown names),
 * google-gemini/gemini-cli#13467 (corrupted), crmne/ruby_llm#521 (base 64), googleapis/python-genai#842 (numbers of calls and results).
 */

const sentinels = new Set(["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"]);

const names = {
  body: "contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent serviceTier store labels",
  generationConfig:
    "stopSequences responseMimeType responseSchema responseJsonSchema candidateCount maxOutputTokens temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs logprobs thinkingConfig responseModalities speechConfig imageConfig mediaResolution",
  part: "text inlineData fileData functionCall functionResponse executableCode codeExecutionResult thought thoughtSignature videoMetadata",
  functionCall: "id name args",
  functionResponse: "id name response parts willContinue scheduling",
  declaration: "name description behavior parameters parametersJsonSchema response responseJsonSchema",
  schema:
    "type format title description nullable enum maxItems minItems properties required minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum",
} as const;

const known = Object.fromEntries(
  Object.entries(names).map(([of, list]) => [of, new Set(list.split(" "))]),
) as unknown as Readonly<Record<keyof typeof names, ReadonlySet<string>>>;

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const camelCase = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

function unknownNames(object: Json, of: keyof typeof names, place: string): string[] {
  const at = place === "" ? "" : ` at '${place}'`;
  return Object.keys(object)
    .filter((name) => !known[of].has(camelCase(name)))
    .map((name) => `Invalid JSON payload received. Unknown name "${name}"${at}: Cannot find field.`);
}

function schemaNames(schema: unknown, place: string): string[] {
  const { properties, items, anyOf } = objectOf(schema);
  const inner = Object.values(objectOf(properties)).flatMap((one, at) =>
    schemaNames(one, `${place}.properties[${at}].value`),
  );
  const others = listOf(anyOf).flatMap((one, at) => schemaNames(one, `${place}.any_of[${at}]`));
  const item = items === undefined ? [] : schemaNames(items, `${place}.items`);
  return [...unknownNames(objectOf(schema), "schema", place), ...inner, ...item, ...others];
}

function invalid(message: string): Refusal {
  return { status: 400, body: { error: { code: 400, message, status: "INVALID_ARGUMENT" } } };
}

/** The parts of a content, and the members of one, in either spelling. */
const partsOf = (content: Json): readonly Json[] => listOf(content["parts"]);
const member = (object: Json, name: string): unknown => object[name] ?? object[snakeCase(name)];

function violations(body: Json): string[] {
  const config = objectOf(member(body, "generationConfig"));
  const schema = member(config, "responseSchema");
  return [
    ...unknownNames(body, "body", ""),
    ...unknownNames(config, "generationConfig", "generation_config"),
    ...(schema === undefined ? [] : schemaNames(schema, "generation_config.response_schema")),
    ...listOf(body["contents"]).flatMap((content, at) =>
      partsOf(content).flatMap((part, index) => {
        const place = `contents[${at}].parts[${index}]`;
        const [call, response] = [member(part, "functionCall"), member(part, "functionResponse")];
        return [
          ...unknownNames(part, "part", place),
          ...unknownNames(objectOf(call), "functionCall", `${place}.function_call`),
          ...unknownNames(objectOf(response), "functionResponse", `${place}.function_response`),
        ];
      }),
    ),
    ...listOf(body["tools"]).flatMap((tool, at) =>
      listOf(member(tool, "functionDeclarations")).flatMap((declared, index) => {
        const place = `tools[${at}].function_declarations[${index}]`;
        const { parameters } = declared;
        return [
          ...unknownNames(declared, "declaration", place),
          ...(parameters === undefined ? [] : schemaNames(parameters, `${place}.parameters`)),
        ];
      }),
    ),
  ];
}

function callOf(part: Json): TaskCall | undefined {
  const call = member(part, "functionCall");
  if (call === undefined) return undefined;
  return { name: String(objectOf(call)["name"]), input: objectOf(objectOf(call)["args"]) };
}

const isTask = (content: Json): boolean =>
  content["role"] !== "model" && partsOf(content).some(({ text }) => String(text).includes("Session "));

function readContents(body: Json): Conversation {
  const contents = listOf(body["contents"]);
  const last = contents.findLastIndex(isTask);
  const since = contents.slice(last + 1).flatMap(partsOf);
  return {
    userText: partsOf(contents[last] ?? {})
      .map(({ text }) => (typeof text === "string" ? text : ""))
      .join(""),
    calls: since.flatMap((part) => callOf(part) ?? []),
    results: since.filter((part) => member(part, "functionResponse") !== undefined).length,
  };
}

/** Starts a server with a key of its own. Its model answers with `turn`, or does the task of all sessions. */
export async function startGeminiNative(
  turn?: Turns,
  models: readonly string[] = ["gemini-3-pro-preview"],
): Promise<Double> {
  const { sign, isValid } = signer("gemini-native");
  const sessions = new Sessions();
  const requests: Json[] = [];
  const refusals: string[] = [];
  // Arguments are a Struct, whose members have no order.
  const signedCall = ({ name, input }: TaskCall) => [name, JSON.stringify(input, Object.keys(input).toSorted())];
  let calls = 0;

  function refusal(body: Json): Refusal | undefined {
    const unknown = violations(body);
    if (unknown.length > 0) return invalid(unknown.join("\n"));
    const contents = listOf(body["contents"]);
    if (contents.length === 0) return invalid("* GenerateContentRequest.contents: contents is not specified\n");
    const last = contents.findLastIndex(isTask);
    for (const [at, content] of contents.entries()) {
      const parts = partsOf(content);
      if (parts.length === 0)
        return invalid(`* GenerateContentRequest.contents[${at}].parts: contents.parts must not be empty.\n`);
      if (content["role"] !== undefined && content["role"] !== "user" && content["role"] !== "model")
        return invalid("Please use a valid role: user, model.");
      if (content["role"] !== "model") continue;
      const made = parts.filter((part) => callOf(part));
      const answered = partsOf(contents[at + 1] ?? {}).filter((part) => member(part, "functionResponse") !== undefined);
      if (made.length > 0 && made.length !== answered.length)
        return invalid(
          "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
        );
      for (const part of parts) {
        const signature = member(part, "thoughtSignature");
        const call = callOf(part);
        if (call && part === made[0] && at > last && signature === undefined)
          return invalid(missingSignature(call.name, at));
        if (signature === undefined || sentinels.has(String(signature))) continue;
        const isOwn = call ? isValid(signature, ...signedCall(call)) : isValid(signature, "text");
        if (!isOwn) return invalid("Corrupted thought signature.");
      }
    }
    return undefined;
  }

  function partsOfStep({ reasoning, text, calls: made }: Step, body: Json): Json[] {
    const thinking = objectOf(member(objectOf(member(body, "generationConfig")), "thinkingConfig"));
    const isShown = member(thinking, "includeThoughts") === true && reasoning !== undefined;
    return [
      ...(isShown ? [{ text: reasoning, thought: true }] : []),
      ...(text === undefined ? [] : [{ text, ...(made.length === 0 && { thoughtSignature: sign("text") }) }]),
      ...made.map((call, at) => ({
        functionCall: { name: call.name, args: call.input, id: `call_${++calls}` },
        ...(at === 0 && { thoughtSignature: sign(...signedCall(call)) }),
      })),
    ];
  }

  function answer(response: ServerResponse, body: Json, isStream: boolean): void {
    const step = turn === undefined ? sessions.next(readContents(body), body["contents"]) : stepOf(turn, body);
    const parts = partsOfStep(step, body);
    const promptTokenCount = Math.ceil(JSON.stringify([body["contents"], body["tools"]]).length / 4);
    const usage = {
      promptTokenCount,
      candidatesTokenCount: 5,
      totalTokenCount: promptTokenCount + 8,
      cachedContentTokenCount: 2,
      thoughtsTokenCount: 3,
    };
    const chunk = (list: readonly Json[], more: Json = {}): Json => ({
      candidates: [{ content: { parts: list, role: "model" }, ...more, index: 0 }],
      usageMetadata: usage,
      modelVersion: models[0],
      responseId: "r1",
    });
    if (!isStream) return sendJson(response, 200, chunk(parts, { finishReason: "STOP" }));
    const streamed = parts.flatMap((part): Json[] => {
      const { text, thoughtSignature, ...others } = part;
      if (typeof text !== "string") return [part];
      return [
        ...pieces(text).map((piece) => ({ text: piece, ...others })),
        ...(thoughtSignature === undefined ? [] : [{ text: "", thoughtSignature }]),
      ];
    });
    const chunks = [
      ...streamed.slice(0, -1).map((part) => chunk([part])),
      chunk(streamed.slice(-1), { finishReason: "STOP" }),
    ];
    response
      .writeHead(200, { "content-type": "text/event-stream" })
      .end(chunks.map((one) => `data: ${JSON.stringify(one)}\r\n\r\n`).join(""));
  }

  const http = createServer((request, response) => {
    void readBody(request).then((text) => {
      const { pathname, searchParams } = new URL(request.url ?? "", "http://localhost");
      if (double.turns >= double.downAt)
        return sendJson(response, 503, {
          error: { code: 503, message: "The model is overloaded. Please try again later.", status: "UNAVAILABLE" },
        });
      if (pathname === "/v1beta/models")
        return sendJson(response, 200, {
          models: models.map((name) => ({
            name: `models/${name}`,
            inputTokenLimit: 1_048_576,
            supportedGenerationMethods: ["generateContent", "countTokens", "embedContent"],
          })),
        });
      const [, model = "", method = ""] = /^\/v1beta\/models\/([^:]+):(\w+)$/.exec(pathname) ?? [];
      if (!models.includes(decodeURIComponent(model)))
        return sendJson(response, 404, {
          error: { code: 404, message: `models/${model} is not found for API version v1beta`, status: "NOT_FOUND" },
        });
      const body = JSON.parse(text) as Json;
      if (method === "countTokens") return sendJson(response, 200, { totalTokens: 7 });
      if (method === "batchEmbedContents")
        return sendJson(response, 200, { embeddings: listOf(body["requests"]).map(() => ({ values: [0.6, 0.8] })) });
      requests.push(body);
      const refused = refusal(body);
      if (refused) {
        refusals.push(JSON.stringify(refused.body));
        return sendJson(response, refused.status, refused.body);
      }
      answer(response, body, method === "streamGenerateContent" && searchParams.get("alt") === "sse");
    });
  });
  const { url, close } = await listen(http);
  const double = sessionDouble({ url: `${url}/v1beta`, requests, refusals, close }, sessions);
  return double;
}
