"""An impostor is told once in a while, however often it is dialled."""

from rumq.cluster.links.impostor_log import QUIET_SECONDS, ImpostorLog


def test_each_node_is_told_once_in_a_while() -> None:
    told: list[tuple[object, object]] = []
    log = ImpostorLog(lambda name, *, node, why: told.append((name, node)))
    for at in range(20):
        log.met("n1#1", "x", at / 10)
        log.met("n2#2", "x", at / 10)
    assert told == [("cluster.certificate_refused", "n1#1"), ("cluster.certificate_refused", "n2#2")]
    log.met("n1#1", "x", QUIET_SECONDS)
    assert len(told) == 3
