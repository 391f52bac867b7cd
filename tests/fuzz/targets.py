"""All targets by name, and how much of a run's time each has."""

from tests.fuzz.auth import Auth
from tests.fuzz.campaign import Target
from tests.fuzz.codec import Codec
from tests.fuzz.layers import Layers
from tests.fuzz.proxy import Proxy
from tests.fuzz.session import Sessions
from tests.fuzz.tls import Tls
from tests.fuzz.websocket import WebSockets

TARGETS: dict[str, type[Target]] = {
    target.name: target for target in (Codec, Sessions, Layers, WebSockets, Proxy, Tls, Auth)
}
# Of 1000 inputs, how many are for each: what takes a thousand times as long gets a thousandth.
SHARES = {"codec": 938, "session": 4, "layers": 2, "websocket": 24, "proxy": 20, "tls": 1, "auth": 11}
