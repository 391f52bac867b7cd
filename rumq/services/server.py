"""The gRPC server: services by their tables, each call with its login, its shares, and its fault with details.

gRPC cancels what runs for a call whose deadline has passed or whose caller is gone. Requests and answers are bytes
here: a request that is malformed is the caller's fault, and answers may come from a kernel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

import grpc
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import SERVICE_NAME as HEALTH
from grpc_health.v1.health import aio as health  # type: ignore[attr-defined]
from grpc_reflection.v1alpha import reflection

from rumq.auth.quota_holder import holder_of
from rumq.services.access.callers import CallerLogin, Callers
from rumq.services.access.peers import address_of, maybe_certificate
from rumq.services.access.shares import Holder, Shares
from rumq.services.call_figures import CallFigures
from rumq.services.calls.call import Call, CallMethod, Service
from rumq.services.contract.faults import CallFault, shutting_down

HEADER = "authorization"
ALL = ""  # the name of the whole server, to the health service
KEEPALIVE_MS, KEEPALIVE_TIMEOUT_MS = 30_000, 10_000  # a peer that has vanished ends its calls after so long
PINGS_MS = 5_000  # a client may ping so often
METADATA_BYTES_MAX = 16_384  # of one call; grpc answers more with RESOURCE_EXHAUSTED
OTHER_CALLS_MAX = 1_000  # of health and reflection, for which there are no shares
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Server:
    """shares: of open calls; event: reports what is a bug of ours"""

    def __init__(
        self, services: Sequence[Service], callers: Callers, shares: Shares, figures: CallFigures,
        event: Callable[..., None], *, calls_max: int, request_bytes_max: int,
    ) -> None:  # fmt: skip
        self._callers, self._shares, self._figures, self._event = callers, shares, figures, event
        self._services = services
        self.stopping = asyncio.Event()
        self._health = health.HealthServicer()
        self._server = aio.server(
            options=[
                ("grpc.so_reuseport", 0),  # a port in use is refused, not shared
                ("grpc.max_receive_message_length", request_bytes_max),
                ("grpc.max_send_message_length", -1),
                # Two equal bounds: between them grpc would refuse calls at random.
                ("grpc.max_metadata_size", METADATA_BYTES_MAX),
                ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
                ("grpc.keepalive_time_ms", KEEPALIVE_MS),
                ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", PINGS_MS),
                ("grpc.max_concurrent_streams", calls_max + OTHER_CALLS_MAX),
            ],
            maximum_concurrent_rpcs=calls_max + OTHER_CALLS_MAX,
        )
        for service in services:
            handlers = {method.name: self._handler(service, method) for method in service.methods}
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, handlers),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = [*(service.name for service in services), HEALTH, reflection.SERVICE_NAME]
        reflection.enable_server_reflection(names, self._server)

    def bind(self, address: str, credentials: grpc.ServerCredentials | None) -> int:
        """The port. raises: RuntimeError"""
        if credentials is None:
            return int(self._server.add_insecure_port(address))
        return int(self._server.add_secure_port(address, credentials))

    async def start(self) -> None:
        await self.say(is_serving=False)  # until the broker was asked
        await self._server.start()

    async def say(self, *, is_serving: bool) -> None:
        """To the health service, and so to balancers."""
        is_serving = is_serving and not self.stopping.is_set()
        await self._health.set(ALL, SERVING if is_serving else NOT_SERVING)
        for service in self._services:
            await self._health.set(service.name, SERVING if is_serving and service.serves() else NOT_SERVING)

    @property
    def serving(self) -> tuple[bool, ...]:
        """Which services do, apart from the broker: `say` again when it changes."""
        return tuple(service.serves() for service in self._services)

    async def stop(self, drain_seconds: float, wake: Callable[[], None]) -> None:
        """Say that it stops, let calls end for so long, and end those that go on. wake: those that wait for records"""
        self.stopping.set()
        await self._health.enter_graceful_shutdown()
        wake()
        await self._server.stop(drain_seconds)

    def _handler(self, service: Service, method: CallMethod) -> grpc.RpcMethodHandler[bytes, bytes]:
        name = f"{service.name}/{method.name}"
        if method.takes_stream and method.gives_stream:
            return grpc.stream_stream_rpc_method_handler(partial(self._streamed, name, method))
        if method.gives_stream:
            return grpc.unary_stream_rpc_method_handler(partial(self._streamed, name, method))
        return grpc.unary_unary_rpc_method_handler(partial(self._answered, name, method))

    async def _answered(self, name: str, method: CallMethod, request: bytes, context: Any) -> bytes | None:
        return await self._framed(name, method, once(request), context)

    async def _streamed(self, name: str, method: CallMethod, requests: Any, context: Any) -> None:
        await self._framed(name, method, requests if method.takes_stream else once(requests), context)

    async def _framed(
        self, name: str, method: CallMethod, requests: AsyncIterator[bytes], context: Any
    ) -> bytes | None:
        """The answer of a call, or its fault."""
        with self._figures.counted(name) as code:
            try:
                answer = await self._in_shares(method, requests, context)
                code.append(grpc.StatusCode.OK)
                return answer
            except CallFault as fault:
                failed = fault
            except asyncio.CancelledError:
                if self.stopping.is_set():
                    code.append(grpc.StatusCode.UNAVAILABLE)
                raise
            except aio.InternalError:  # of gRPC: the caller is gone, and what is written to it goes nowhere
                raise asyncio.CancelledError from None
            except Exception as fault:  # ours
                self._event("grpc.failed", method=name, exc_info=fault)
                failed = CallFault("INTERNAL", "a fault of the server, which its events tell of")
            code.append(failed.code)
            await context.abort(failed.code, failed.detail, failed.trailing())
        return None

    async def _in_shares(self, method: CallMethod, requests: AsyncIterator[bytes], context: Any) -> bytes | None:
        if self.stopping.is_set():
            raise shutting_down()
        peer = context.peer()
        address = address_of(peer)
        login = await self._login(address, context)  # those that wait have bounds of their own
        holders: tuple[Holder, ...] = (("connection", peer), ("network", holder_of(address)))
        if login.caller.holder:
            holders = (*holders, ("user", login.caller.holder))
        with self._shares.hold(1, holders):
            begin = partial(context.send_initial_metadata, ())
            call = Call(login, holders, requests, context.write, begin, self.stopping)
            return await method.answer(call)

    async def _login(self, address: str, context: Any) -> CallerLogin:
        """raises: CallFault"""
        header = next((value for key, value in context.invocation_metadata() or () if key == HEADER), None)
        try:
            certificate = maybe_certificate(context.auth_context() or {})
        except ValueError as fault:
            raise CallFault("LOGIN_REQUIRED", f"the client's certificate cannot be read: {fault}") from None
        return await self._callers.login(header, address, certificate)


async def once(request: bytes) -> AsyncIterator[bytes]:
    yield request
