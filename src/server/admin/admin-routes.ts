import { FailureError, invalidRequest } from "../../core/failure.ts";
import { openaiVoice } from "../../apis/openai-voice.ts";
import type { Mask } from "../mask.ts";
import { readJson } from "../read-json.ts";
import type { Reply } from "../reply.ts";
import type { Answer, Route } from "../route.ts";
import type { Service } from "../service.ts";
import { tellEvents } from "../tell-events.ts";
import { checkServer } from "./check-server.ts";
import { eventHeaders, eventText } from "./event-text.ts";
import { failureEvent } from "./failure-event.ts";
import type { ModelControl, Progress, Task } from "./model-control.ts";

const admin = { voice: openaiVoice, admin: true } as const;

/** The paths for whoever runs the server. */
export const adminRoutes: readonly (readonly [path: string, route: Route])[] = [
  [
    "/admin/models",
    {
      ...admin,
      methods: {
        async GET(reply, service) {
          reply.send(200, "application/json", JSON.stringify(await controlOf(service).list()));
        },
      },
    },
  ],
  ["/admin/models/load", { ...admin, methods: { POST: doing((control, name, task) => control.load(name, task)) } }],
  ["/admin/models/unload", { ...admin, methods: { POST: doing((control, name, task) => control.unload(name, task)) } }],
  ["/admin/models/pull", { ...admin, methods: { POST: doing((control, name, task) => control.pull(name, task)) } }],
  ["/admin/check", { ...admin, methods: { POST: checkServer } }],
  [
    "/admin/reload",
    {
      ...admin,
      methods: { POST: (reply, service) => tellTask(reply, service, () => controlOf(service).reload()) },
    },
  ],
];

function controlOf({ control }: Service): ModelControl {
  if (control) return control;
  throw new FailureError({ message: "There is nothing to control yet.", status: 503, kind: "unavailable" });
}

/** Does something to the model that the body names: `{"model": "…"}`. */
function doing(act: (control: ModelControl, name: string, task: Task) => Promise<object>): Answer {
  return async (reply, service) => {
    const { value: body } = await readJson(reply, service);
    const name = typeof body === "object" && body !== null && "model" in body ? body.model : undefined;
    if (typeof name !== "string" || name === "")
      throw invalidRequest('Expected a body such as {"model": "NAME"}.', "model", "missing_required_parameter");
    reply.record.model = name;
    await tellTask(reply, service, (task) => act(controlOf(service), name, task));
  };
}

/** Tells how far a task is: `progress` events, and at last `done` or `error`. What fails at once has a status of its own. */
async function tellTask(reply: Reply, service: Service, run: (task: Task) => Promise<object>): Promise<void> {
  await tellEvents(reply, taskEvents(reply, service.settings.mask, run), eventHeaders, service.settings.keepAliveMs);
}

async function* taskEvents(reply: Reply, mask: Mask, run: (task: Task) => Promise<object>): AsyncGenerator<string> {
  const seen: { progress?: Progress | undefined; outcome?: { result: object } | { error: unknown } } = {};
  let wake = (): void => {};
  const { signal } = reply.exchange.departure;
  const task: Task = {
    signal,
    tell(progress) {
      seen.progress = progress;
      wake();
    },
  };
  run(task)
    .then(
      (result) => (seen.outcome = { result }),
      (error: unknown) => (seen.outcome = { error }),
    )
    .finally(() => wake());
  while (!seen.outcome || seen.progress) {
    if (seen.progress) {
      const { progress } = seen;
      seen.progress = undefined;
      yield eventText({ type: "progress", ...progress });
    } else await new Promise<void>((resolve) => (wake = resolve));
  }
  const { outcome } = seen;
  if ("result" in outcome) yield eventText({ type: "done", ...outcome.result });
  else if (!reply.sent) throw outcome.error;
  else yield eventText(failureEvent(reply, mask, outcome.error));
}
