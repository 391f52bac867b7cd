"""Re-authentication on an open connection. MQTT 5.0, 4.12.1."""

import trio

from rumq.client.login.enhanced_login import EnhancedLogin
from rumq.client.session.connection import BrokerConnection
from rumq.client.session.packet_stream import PacketStream
from rumq.mqtt.packets import Auth
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason


async def reauthenticate(connection: BrokerConnection, login: EnhancedLogin | None, stream: PacketStream) -> None:
    """raises: LoginFailed; ConnectionLost or Refused where the broker ends the connection instead"""
    if login is None:
        raise ValueError("this connection began without a login of enhanced authentication: connect(login=...)")
    if connection.auths is not None:
        raise ValueError("another task is logging in again")
    connection.auths = []
    try:
        send(stream, login, Reason.RE_AUTHENTICATE, login.first())
        while True:
            while not connection.auths:
                if connection.failure is not None:
                    raise connection.failure
                if connection.stream is not stream:
                    return  # another connection has begun, with a login of its own
                await connection.changed.park()
            auth = connection.auths.pop(0)
            data = auth.properties.get("authentication_data", b"")
            if auth.reason == Reason.SUCCESS:
                login.finish(data)
                return
            answer = await trio.to_thread.run_sync(login.answer, data)
            send(stream, login, Reason.CONTINUE_AUTHENTICATION, answer)
    finally:
        connection.auths = None


def send(stream: PacketStream, login: EnhancedLogin, reason: Reason, data: bytes | None) -> None:
    properties = Properties(authentication_method=login.method)
    if data is not None:
        properties["authentication_data"] = data
    stream.send(Auth(reason, properties))
