"""A site, and the certificates of the run."""

import ssl
from collections.abc import Callable, Iterator

import pytest

from tests.net.authorities import Authorities
from tests.net.site import Site

Trusting = Callable[..., ssl.SSLContext]


@pytest.fixture(scope="session")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> Authorities:
    return Authorities(tmp_path_factory.mktemp("authorities"))


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.end()


@pytest.fixture
def trusting(authorities: Authorities) -> Trusting:
    """trusting(certificate=None, version=None, authority="ca") -> a client's context that knows the authority."""

    def call(
        certificate: str | None = None, version: ssl.TLSVersion | None = None, authority: str = "ca"
    ) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=authorities.path(authority))
        if certificate is not None:
            context.load_cert_chain(authorities.path(certificate), authorities.path(certificate, "key"))
        if version is not None:
            context.maximum_version = version
        return context

    return call
