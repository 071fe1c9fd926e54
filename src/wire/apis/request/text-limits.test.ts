import { expect, test } from "vitest";
import { FailureError } from "../../core/failure.ts";
import { checkTotalLength, maxTextsLength } from "./refusals.ts";

// 20 MB of one stop string took 4.6 GB of a local model's process, which ended for everyone.
test("the total length of texts is limited, and the error names the parameter and the limit", () => {
  checkTotalLength("stop", ["s".repeat(maxTextsLength)]);
  checkTotalLength(
    "stop",
    Array.from({ length: 4 }, () => "s".repeat(maxTextsLength / 4)),
  );
  const refused = (texts: readonly string[]): unknown => {
    try {
      checkTotalLength("stop", texts);
    } catch (error) {
      return error instanceof FailureError ? error.failure : error;
    }
    return undefined;
  };
  for (const texts of [["s".repeat(maxTextsLength + 1)], Array.from({ length: maxTextsLength + 1 }, () => "s")])
    expect(refused(texts)).toMatchObject({
      status: 400,
      param: "stop",
      message: `Invalid value for 'stop': the strings have ${maxTextsLength + 1} characters in total, and ${maxTextsLength} is the limit.`,
    });
});
