import { openaiErrorFormat } from "./api-error-format.ts";
import type { ApiErrorFormat } from "./api-error-format.ts";

/** Ollama's native API, below `/api`, which this server does not have. Its errors are texts. Source: Ollama, server/routes.go. */
export const ollamaErrorFormat: ApiErrorFormat = {
  ...openaiErrorFormat,
  writeFailure: ({ status, message }) => ({
    status,
    contentType: "application/json; charset=utf-8",
    body: JSON.stringify({ error: message }),
  }),
};
