"""In place of OGX' own conftest, which starts its server."""

from tests.integration.fixtures.common import *  # noqa: F403
