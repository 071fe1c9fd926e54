/**
 * The bounds of histograms' buckets, as OpenTelemetry's semantic conventions for generative AI recommend them. Source:
 * opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics, "ExplicitBucketBoundaries" of each metric.
 */

/** `gen_ai.server.request.duration`, in seconds. */
export const durationBuckets: number[] = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

/** `gen_ai.server.time_to_first_token`, in seconds. */
export const firstTokenBuckets: number[] = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];

/** `gen_ai.server.time_per_output_token`, in seconds. */
export const perTokenBuckets: number[] = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];

/** `gen_ai.client.token.usage`, in tokens. */
export const tokenBuckets: number[] = [
  1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
];
