"""The fixtures of OGX' integration tests, over the Truewire of TRUEWIRE_URL in place of OGX' own server."""

import os
from types import SimpleNamespace

import pytest
from openai import OpenAI

url = os.environ["TRUEWIRE_URL"]


def _model(name, variable):
    @pytest.fixture(scope="session", name=name)
    def model():
        value = os.environ.get(variable, "")
        if value == "":
            pytest.skip(f"no model of {name}")
        return value

    return model


text_model_id = _model("text_model_id", "TRUEWIRE_MODEL")
vision_model_id = _model("vision_model_id", "TRUEWIRE_MODEL")
embedding_model_id = _model("embedding_model_id", "TRUEWIRE_EMBEDDINGS")


class _Client:
    """OpenAI's client, with what OGX' client adds: where each model comes from."""

    base_url = url
    api_key = "none"

    def __init__(self):
        self._openai = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60)
        self.providers = SimpleNamespace(
            list=lambda: [SimpleNamespace(api="inference", provider_id="truewire", provider_type="remote::openai")]
        )
        self.models = SimpleNamespace(list=self._list_models)

    def _list_models(self):
        return [
            SimpleNamespace(
                id=model.id,
                custom_metadata={
                    "provider_id": "truewire",
                    "provider_resource_id": model.id,
                    "embedding_dimension": 384,
                    "model_type": "llm",
                },
            )
            for model in self._openai.models.list()
        ]

    def __getattr__(self, name):
        return getattr(self._openai, name)


@pytest.fixture(scope="session")
def ogx_client():
    return _Client()


@pytest.fixture(scope="session")
def client_with_models(ogx_client):
    return ogx_client


@pytest.fixture(scope="session")
def inference_provider_type():
    return "remote::openai"


@pytest.fixture(scope="session")
def require_server():
    pass


@pytest.fixture(scope="session")
def openai_client():
    with OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield client


@pytest.fixture(params=["openai_client"])
def compat_client(request):
    return request.getfixturevalue(request.param)
