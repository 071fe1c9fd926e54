"""LangChain's standard tests over the Truewire of TRUEWIRE_URL. The files that tests load from the internet are made here."""

import base64
import os

import httpx
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_ollama import ChatOllama, OllamaEmbeddings
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langchain_tests.integration_tests import ChatModelIntegrationTests, EmbeddingsIntegrationTests

url = os.environ["TRUEWIRE_URL"]
model_name = os.environ["TRUEWIRE_MODEL"]
embeddings = os.environ["TRUEWIRE_EMBEDDINGS"]
pixel = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
wav = b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\2\0\0\0\0\0"
files = {".png": pixel, ".pdf": b"%PDF-1.1\n%%EOF\n", ".wav": wav}


@pytest.fixture(autouse=True)
def files_of_the_internet(monkeypatch):
    def get(address, **_):
        return httpx.Response(200, content=files[os.path.splitext(str(address))[1]])

    monkeypatch.setattr(httpx, "get", get)


class _Everything(ChatModelIntegrationTests):
    supports_image_inputs = True
    supports_image_tool_message = True
    supports_json_mode = True
    supports_model_override = True
    model_override_value = "other"

    @property
    def supported_usage_metadata_details(self):
        return {"invoke": [], "stream": []}


class TestOpenAIChat(_Everything):
    chat_model_class = ChatOpenAI
    chat_model_params = {"model": model_name, "base_url": f"{url}/v1", "api_key": "none", "stream_usage": True}
    supports_audio_inputs = True
    supports_pdf_inputs = True
    supports_anthropic_inputs = True


class TestOpenAIResponses(_Everything):
    chat_model_class = ChatOpenAI
    chat_model_params = {
        "model": model_name,
        "base_url": f"{url}/v1",
        "api_key": "none",
        "use_responses_api": True,
    }
    supports_pdf_inputs = True
    supports_pdf_tool_message = True


class TestAnthropic(_Everything):
    chat_model_class = ChatAnthropic
    chat_model_params = {"model": model_name, "base_url": url, "api_key": "none"}
    supports_json_mode = False
    supports_pdf_inputs = True
    supports_pdf_tool_message = True
    supports_anthropic_inputs = True


class TestOllama(_Everything):
    chat_model_class = ChatOllama
    chat_model_params = {"model": model_name, "base_url": url}
    has_tool_choice = False
    supports_image_tool_message = False


@pytest.mark.skipif(embeddings == "", reason="no model of embeddings is installed")
class TestOpenAIEmbeddings(EmbeddingsIntegrationTests):
    embeddings_class = OpenAIEmbeddings
    embedding_model_params = {
        "model": embeddings,
        "base_url": f"{url}/v1",
        "api_key": "none",
        "check_embedding_ctx_length": False,
    }


@pytest.mark.skipif(embeddings == "", reason="no model of embeddings is installed")
class TestOllamaEmbeddings(EmbeddingsIntegrationTests):
    embeddings_class = OllamaEmbeddings
    embedding_model_params = {"model": embeddings, "base_url": url}
