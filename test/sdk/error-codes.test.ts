import { resolve } from "node:path";
import { APIError } from "@anthropic-ai/sdk";
import { expect, test } from "vitest";
import { anthropicFormat } from "../../src/wire/apis/messages/port.ts";
import { errorStatuses } from "../../src/wire/apis/messages/schema.ts";
import { exact, lean } from "../../src/wire/apis/profile.ts";
import { readFailure } from "../../src/wire/apis/tolerant/read-failure.ts";
import { namesOf } from "./names.ts";

/** The status of the classes that the classes of codes extend. */
const statuses: Readonly<Record<string, number>> = {
  BadRequestError: 400,
  PaymentRequiredError: 402,
  PermissionDeniedError: 403,
  NotFoundError: 404,
  ConflictError: 409,
  PreconditionFailedError: 412,
  ContentTooLargeError: 413,
  RateLimitError: 429,
  ServiceUnavailableError: 503,
  OverloadedError: 529,
};

const codes = namesOf("@anthropic-ai/sdk", resolve("node_modules/@anthropic-ai/sdk")).filter(
  ({ kind }) => kind === "error code",
);

// A code of status 503 became 529, so that the SDK threw another class.
test.each([lean, exact])("every error code of the SDK passes a gateway whole, in profile $name", (profile) => {
  for (const { name, about } of codes) {
    const [, base = ""] = /\((?:\w+\.)?(?:Errors)?(\w+)\)/.exec(about) ?? [];
    const status = statuses[base] ?? 0;
    const type = Object.keys(errorStatuses).find((each) => errorStatuses[each]?.includes(status)) ?? "api_error";
    const details = { error_code: name, paths: ["messages.0"] };
    const body = {
      type: "error",
      error: { type, message: "No.", details },
      request_id: "req_011CfjgdDYdRLnveh6xtmBbu",
    };
    const failure = readFailure(body, status);
    expect(failure, name).not.toBeNull();
    if (!failure) continue;
    const answer = anthropicFormat.writeFailure(failure, profile, "req_own");
    expect([name, answer.status, JSON.parse(answer.body)]).toEqual([name, status, body]);
    const error = APIError.generate(answer.status, JSON.parse(answer.body) as object, undefined, new Headers());
    expect(error).toMatchObject({ status, errorCode: name, details });
    expect([name, error.constructor.name]).toEqual([name, base]);
  }
  expect(codes.length).toBeGreaterThan(100);
});
