"""The official Python SDK's streaming loop. BASE_URL and MODEL say where."""

import os
import sys

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("BASE_URL", "http://127.0.0.1:8080/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
)
stream = client.chat.completions.create(
    model=os.environ.get("MODEL", "demo"),
    messages=[{"role": "user", "content": sys.argv[1] if len(sys.argv) > 1 else "Hello!"}],
    stream=True,
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="", flush=True)
print()
