"""The brokers that are measured side by side, by name."""

from bench.peers.amqtt import Amqtt
from bench.peers.mosquitto import Mosquitto
from bench.peers.nats import Nats
from bench.peers.peer import Peer
from bench.peers.rabbitmq import Rabbitmq
from bench.peers.rumq import Rumq, RumqTwoShards
from bench.peers.rumq_cluster import RumqCluster
from bench.peers.wire import Wire

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (Rumq(), RumqTwoShards(), RumqCluster(), Mosquitto(), Nats(), Rabbitmq(), Amqtt(), Wire())
}
DEFAULT = ("rumq", "mosquitto", "nats")
