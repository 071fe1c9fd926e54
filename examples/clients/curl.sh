#!/bin/sh
# A stream with curl; -N shows each event as it comes.
curl -sN "${BASE_URL:-http://127.0.0.1:8080/v1}/chat/completions" \
  -H "Content-Type: application/json" \
  -H "Authorization: Bearer ${OPENAI_API_KEY:-none}" \
  -d "{\"model\": \"${MODEL:-demo}\", \"stream\": true, \"messages\": [{\"role\": \"user\", \"content\": \"${1:-Hello!}\"}]}"
