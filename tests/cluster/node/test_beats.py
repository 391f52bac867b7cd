"""Beats of a leader that opens its log: followers hear it until its own links do that."""

from rumq.cluster.node.beats import OpeningBeats
from rumq.cluster.node.frame_link import FrameLink
from rumq.cluster.replication.messages import Beat, ReplicaMessage
from rumq.net.frames import MessageReader
from tests.cluster.node.world import tcp_pair


def test_each_follower_hears_beats_until_the_leader_itself_speaks() -> None:
    pairs = [tcp_pair(), tcp_pair()]
    gone, far = tcp_pair()
    lost = FrameLink(gone)
    lost.close()
    beats = OpeningBeats(7, [lost, *(FrameLink(near) for near, _ in pairs)])
    for _, follower in pairs:
        reader: MessageReader[ReplicaMessage] = MessageReader(ReplicaMessage)
        heard: list[ReplicaMessage] = []
        while len(heard) < 2:
            heard += [message for message, _ in reader.feed(follower.recv(1 << 16))]
        assert heard[:2] == [Beat(7, {}), Beat(7, {})]
    beats.stop()
    beats.stop()
    for _, follower in pairs:
        while follower.recv(1 << 16):  # until the link has ended
            pass
        follower.close()
    far.close()


def test_a_follower_that_has_gone_takes_no_beat_from_the_others() -> None:
    (near, far), (other, dead) = tcp_pair(), tcp_pair()
    dead.close()
    beats = OpeningBeats(7, [FrameLink(other), FrameLink(near)])
    got = b""
    while len(got) < 60:
        got += far.recv(1 << 16)
    beats.stop()
    far.close()
