import type { ComponentType, VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { InspectedRequest } from "../../judge/inspect/inspected-request.ts";
import { recordingOf as captureOfRequest } from "../../judge/inspect/inspected-request.ts";
import { announcement } from "../parts/changing.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Lazy } from "../parts/lazy.tsx";
import { saveFile } from "../parts/save-file.ts";
import type ResendDialog from "./resend-dialog.tsx";
import { curlOf, curlProblem, editProblem, resend, resendProblem, runningResent } from "./resend.ts";

const loadDialog = async (): Promise<ComponentType<Parameters<typeof ResendDialog>[0]>> =>
  (await import("./resend-dialog.tsx")).default;

/** What can be done with a request: send it again, copy it, save it. */
export function RequestActions({ request }: { readonly request: InspectedRequest | undefined }): VNode | null {
  const [isEditing, setEditing] = useState(false);
  const [problem, setProblem] = useState("");
  const body = request?.request.body;
  // The text of an open request is loaded again and again.
  const editReason = useMemo(() => request && editProblem(request), [request?.id, request?.outcome, body?.text]);
  if (!request) return null;
  const reason = resendProblem(request);
  const running = request.outcome === "open" ? runningResent(request.id) : undefined;
  const send = async (body: string | undefined): Promise<void> => {
    const { id } = await resend(request, body);
    setEditing(false);
    announcement.say("Sent again");
    // A new entry of the history: Back returns to the request that was sent again.
    location.hash = `#inspect/${id}/overview`;
  };
  return (
    <div class="stack request-actions">
      <div class="row">
        {running && (
          <button type="button" onClick={() => running.stop()}>
            Stop
          </button>
        )}
        <button
          type="button"
          disabled={reason !== undefined}
          onClick={() => {
            setProblem("");
            send(body?.text).catch((error: unknown) => {
              setProblem(error instanceof Error ? error.message : String(error));
            });
          }}
        >
          Resend
        </button>
        {request.method !== "GET" && (
          <button type="button" disabled={editReason !== undefined} onClick={() => setEditing(true)}>
            Edit and resend
          </button>
        )}
        {curlProblem(request) === undefined && (
          <CopyButton label="Copy as curl" quiet={false} text={() => curlOf(request)} />
        )}
        <Download request={request} />
      </div>
      {editReason !== undefined && request.method !== "GET" && (
        <p class="note">
          {reason === undefined ? "This request cannot be edited. " : "This request cannot be sent again. "}
          {editReason}
        </p>
      )}
      {problem !== "" && <p class="banner wrong">The request could not be sent again: {problem}</p>}
      {isEditing && <Lazy load={loadDialog} properties={{ request, onSend: send, onClose: () => setEditing(false) }} />}
    </div>
  );
}

/** The request with its answer as one file. */
function Download({ request }: { readonly request: InspectedRequest }): VNode {
  const capture = captureOfRequest(request);
  if (capture === null)
    return (
      <p class="note">
        {request.outcome === "open"
          ? "The request can be downloaded when its answer has ended."
          : "This request cannot be downloaded: it has no answer, or was too long to be kept completely."}
      </p>
    );
  const download = (): void => {
    saveFile(`${request.id}.jsonl`, "application/x-ndjson", `${capture}\n`);
    announcement.say("Downloaded");
  };
  return (
    <button
      type="button"
      onClick={download}
      title="One file, as truewire record writes it: for replay, repair and check"
    >
      Download with its answer
    </button>
  );
}
