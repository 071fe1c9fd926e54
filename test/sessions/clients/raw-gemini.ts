import { listOf, objectOf } from "../../doubles/chat-server.ts";
import type { Json } from "../../doubles/chat-server.ts";
import { tools } from "../../doubles/task.ts";
import type { TaskCall } from "../../doubles/task.ts";
import { dataOf, maxSteps, post, Refused, run } from "./client.ts";
import type { Returns, SessionClient } from "./client.ts";

const declarations = tools.map(({ name, description, schema }) => ({
  name,
  description,
  parametersJsonSchema: schema,
}));

/**
 * A client of Gemini's API without a library. "everything": each chunk of a stream as it came; "half": without thoughts, as Gemini CLI;
 * "nothing": also without signatures and ids.
 */
export function rawGemini(returns: Returns): SessionClient {
  return {
    name: `Gemini, returns ${returns}`,
    open(url, key) {
      const contents: Json[] = [];
      let requests = 0;
      return {
        async turn(model, text, at = url) {
          contents.push({ role: "user", parts: [{ text }] });
          const ran: TaskCall[] = [];
          for (let step = 0; step < maxSteps; step++) {
            const isStream = requests++ % 2 === 0;
            const method = isStream ? "streamGenerateContent?alt=sse" : "generateContent";
            const response = await post(
              `${at}/v1beta/models/${encodeURIComponent(model)}:${method}`,
              {
                contents,
                tools: [{ functionDeclarations: declarations }],
                generationConfig: { thinkingConfig: { includeThoughts: true } },
              },
              key === undefined ? {} : { "x-goog-api-key": key },
            );
            const answers = isStream ? await dataOf(response) : [(await response.json()) as Json];
            const parts = answers.flatMap(partsOf);
            for (const answer of answers) keep(partsOf(answer), returns, contents);
            const calls = parts.flatMap(({ functionCall }) =>
              functionCall === undefined ? [] : [objectOf(functionCall)],
            );
            if (calls.length === 0) {
              const texts = parts.filter(({ thought }) => thought !== true);
              return { text: texts.map((part) => String(part["text"] ?? "")).join(""), calls: ran };
            }
            const results = calls.map(({ id, name, args }) => {
              const result = run(String(name), args);
              ran.push(result.call);
              const response = result.isError ? { error: result.text } : { output: result.text };
              return { functionResponse: { name, response, ...(returns !== "nothing" && id !== undefined && { id }) } };
            });
            contents.push({ role: "user", parts: results });
          }
          throw new Error("the turn does not end");
        },
      };
    },
  };
}

function partsOf(answer: Json): readonly Json[] {
  if (answer["error"] !== undefined) throw new Refused(JSON.stringify(answer));
  return listOf(answer["candidates"]).flatMap(({ content }) => listOf(objectOf(content)["parts"]));
}

function keep(parts: readonly Json[], returns: Returns, contents: Json[]): void {
  const kept = parts.flatMap((part): Json[] => {
    if (returns === "everything") return [part];
    if (part["thought"] === true) return [];
    if (returns === "half") return [part];
    const { thoughtSignature: _, functionCall: call, ...others } = part;
    if (call === undefined) return others["text"] === "" ? [] : [others];
    const { id: __, ...named } = objectOf(call);
    return [{ functionCall: named }];
  });
  if (kept.length === 0) return;
  // Google's libraries keep a content for each chunk; parallel calls come in one.
  contents.push({ role: "model", parts: kept });
}
