"""What the agent is told already is not told each second, and yet now and then."""

from rumq.cluster.connections.report_filter import ReportFilter
from rumq.cluster.control.agent_messages import Report

IDLE = Report(1, "standby", 4, {"ends": {"main/g1/p1": 7}, "hears_leader": True})


def test_of_reports_that_say_the_same_every_fifth_is_sent() -> None:
    reports = ReportFilter()
    assert [reports.wants(IDLE) for _ in range(11)] == [True, *[False] * 4] * 2 + [True]


def test_what_is_new_is_sent_at_once() -> None:
    reports = ReportFilter()
    reports.wants(IDLE)
    changed = Report(1, "standby", 4, {"ends": {"main/g1/p1": 7}, "hears_leader": False})
    assert reports.wants(changed) and not reports.wants(changed)
    assert reports.wants(IDLE)


def test_an_agent_that_came_anew_is_told() -> None:
    reports = ReportFilter()
    reports.wants(IDLE)
    reports.forget()
    assert reports.wants(IDLE)
