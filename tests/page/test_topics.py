"""Topics in a browser: the tree, the list, a topic's page with its records, retained messages, names that mean harm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.conftest import Gateway, started
from tests.page import scene
from tests.page.conftest import BROWSER, REASON
from tests.page.page import Page

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=REASON)]
ROWS = "tbody tr"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = started(tmp_path_factory.mktemp("topics"))
    scene.publish(made, scene.readings(60))
    scene.publish(made, [scene.message(topic, topic.encode(), retain=True) for topic in scene.HOSTILE])
    yield made
    made.broker.end()


def test_the_tree_opens_by_keyboard_and_enter_opens_a_topic(page: Page) -> None:
    browser = page.browser
    page.show("/topics")
    browser.sees(".tree td", "plant/")
    browser.run("testFind('.tree tr', 'plant/').focus()")
    browser.press("ArrowRight")
    browser.sees(".tree td", "line-3/")
    for _ in range(1 + 2):
        browser.press("ArrowDown")
    browser.until("document.activeElement.innerText.startsWith('line-3')")
    browser.press("ArrowRight")
    browser.sees(".tree td", "press-6/")
    browser.press("ArrowDown")
    browser.press("Enter")
    browser.sees("h1", "plant/line-3/energy")
    browser.sees("pre", '"kwh": 59')
    browser.run("history.back()")
    browser.sees(".tree td", "press-6/")  # as it was left


def test_the_tree_closes_what_is_below(page: Page) -> None:
    browser = page.browser
    page.show("/topics")
    browser.click(".tree tr", "rtl/")
    browser.sees(".tree td", "\\u202egnp.exe")
    browser.press("ArrowLeft")
    browser.sees_no(".tree td", "\\u202egnp.exe")


def test_topics_that_begin_with_a_slash_are_below_the_empty_level(page: Page, gateway: Gateway) -> None:
    scene.publish(gateway, [scene.message(topic, b"on") for topic in ("/hall/lamp", "//deep")])
    browser = page.browser
    page.show("/topics")
    browser.click(".tree tr", "(empty level)")
    browser.click(".tree tr", "hall/")
    browser.sees(".tree tr", "lamp")
    browser.click(".tree tr[aria-level='2']", "(empty level)")
    browser.sees(".tree tr[aria-level='3']", "deep")
    browser.click(".tree tr[aria-level='1']", "(empty level)")
    browser.sees_no(".tree tr", "deep")
    browser.sees(".tree td", "plant/")
    browser.click(".tree tr", "(empty level)")
    browser.click(".tree tr", "hall/")
    browser.click(".tree a", "lamp")
    browser.sees("h1", "/hall/lamp")
    browser.run("history.back()")
    browser.click(".tree tr[aria-level='1']", "(empty level)")  # the tree outlives the view


def test_topics_are_found_by_filter(page: Page) -> None:
    browser = page.browser
    page.show("/topics")
    browser.press("/")
    browser.type("plant/+/vibration")
    browser.until(f"document.querySelectorAll({ROWS!r}).length == 4")
    assert [text.split("\t")[0] for text in browser.texts(ROWS)] == [f"plant/line-{n}/vibration" for n in range(1, 5)]
    browser.sees(ROWS, '"rms": [')  # MessagePack, decoded
    browser.fill("[data-search]", "plant/line-2/press-1")
    browser.until(f"document.querySelectorAll({ROWS!r}).length == 2")  # it and what is below it
    browser.fill("[data-search]", "nothing/here")
    browser.sees(".empty", "No topic matches")


def test_records_are_paged_back_to_the_first_one(page: Page) -> None:
    browser = page.browser
    page.show("/topic?topic=plant/line-1/press-1/process")
    browser.sees(".records header", "offsets 59 to 35 of 60")
    browser.click("button", "Older")
    browser.sees(".records header", "offsets 34 to 10 of 60")
    browser.click("button", "Older")
    browser.sees(".records header", "offsets 9 to 0 of 60")
    assert browser.run("testFind('button', 'Older').disabled") is True
    browser.click("button", "Newer")
    browser.sees(".records header", "offsets 34 to 10 of 60")
    browser.fill("input[name=offset]", "7")
    browser.press("Enter")
    browser.sees(".records header", "offsets 7 to 0 of 60")
    browser.click(".records tbody tr", '"cycle": 22')
    browser.sees(".detail pre", '"cycle": 22')
    browser.sees(".detail dd", "7 of the topic")
    browser.choose(".detail select", "hex")
    browser.sees(".detail pre", "000000  7b 22 63 65")
    browser.click("button", "Newest")
    browser.sees(".records header", "offsets 59 to 35 of 60")


def test_payloads_are_searched_and_a_topic_is_downloaded(page: Page, tmp_path: Path) -> None:
    browser = page.browser
    page.show("/topic?topic=plant/line-1/press-1/process")
    browser.fill(".records input[name=find]", '"cycle": 46')
    browser.press("Enter")
    browser.sees("#found header", "1 record in all")
    browser.sees("#found td", '"cycle": 46')
    browser.run(
        "(() => { const real = URL.createObjectURL; window.saved = [];"
        " URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); return real(blob); };"
        " HTMLAnchorElement.prototype.click = function () { window.saved.push(this.download); }; return true; })()"
    )
    browser.click(".actions button", "Download")
    browser.click("dialog button.main", "Download")
    browser.sees("dialog", "1 record in plant_line-1_press-1_process.jsonl")
    browser.until("window.saved.length == 2")
    assert browser.run("window.saved.find((each) => each.startsWith('{'))").count("\n") == 1
    browser.click("dialog button", "Close")
    browser.click("#found td button", "15")
    browser.sees(".records header", "offsets 15 to 0 of 60")
    browser.run("window.saved = []")
    browser.click(".actions button", "Download")
    browser.click("dialog button.main", "Download")
    browser.sees("dialog", "60 records in")


def test_records_are_found_by_time(page: Page) -> None:
    browser = page.browser
    topic = "plant/line-1/press-2/process"
    page.show(f"/topic?topic={topic}&at=-1h")
    browser.sees(".records header", "offsets 24 to 0 of 60")
    page.show(f"/topic?topic={topic}&at=2100-01-01T00:00:00Z")
    browser.sees(".empty", "no record at or after this time")


def test_new_records_appear(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    scene.publish(gateway, [scene.message("new/topic", b"first")])
    page.show("/topic?topic=new/topic")
    browser.sees(".records td", "first")
    scene.publish(gateway, [scene.message("new/topic", b"second")])
    browser.sees(".records td", "second")
    browser.sees(".payload pre", "second")


def test_a_replay_is_offered_for_other_programs(page: Page) -> None:
    browser = page.browser
    page.show("/topic?topic=plant/line-1/press-1/process")
    browser.click(".records button", "Replay from here")
    browser.sees("dialog h2", "Replay plant/line-1/press-1/process")
    commands = "\n".join(browser.texts("dialog pre"))
    where = "127.0.0.1 -p 1883"  # the broker of a test has port 0 in its settings: any
    assert f"mosquitto_sub -h {where} -v -t '$log/59/plant/line-1/press-1/process'" in commands
    assert "rumqd sub plant/line-1/press-1/process --from 59 --host 127.0.0.1 --port 1883" in commands
    assert '.option("subscribe", "plant/line-1/press-1/process")' in commands
    assert '.where("topic_offset >= 59")' in commands
    browser.press("Escape")
    browser.sees_no("dialog")


def test_a_topic_is_traced_live(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    page.show("/topic?topic=traced")
    browser.sees(".empty", "Nothing has been published")
    scene.publish(gateway, [scene.message("traced", b"1")])
    browser.sees(".records button", "Replay from here")  # the page has been laid out anew
    browser.click("button", "Trace …")
    browser.sees("dialog", "never its payload")
    browser.click("dialog button", "Trace")
    browser.sees(".empty", "Waiting for a message")
    scene.publish(gateway, [scene.message("traced", b"12345")])
    browser.sees("table[aria-label='Traced messages'] td", "5 B")
    browser.click("button", "End")
    browser.sees("button", "Trace …")
    assert gateway.get("traces")["traces"] == []


def test_retained_messages_by_filter(page: Page) -> None:
    browser = page.browser
    page.show("/retained")
    browser.press("/")
    browser.type("plant/line-4/+/state")
    browser.until(f"document.querySelectorAll({ROWS!r}).length == 6")
    browser.click(ROWS, "plant/line-4/press-5/state")
    browser.sees("h1", "plant/line-4/press-5/state")
    browser.sees(".panel h2", "Retained")


def test_retained_messages_are_deleted_one_and_all_that_match(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    scene.publish(gateway, [scene.message(f"old/{n}", b"on", retain=True) for n in range(3)])
    page.show("/retained?topic=old")
    browser.until(f"document.querySelectorAll({ROWS!r}).length == 3")
    browser.click(f"{ROWS} button", "Delete")
    browser.sees("dialog .explain", "Records stay")
    browser.click("dialog button.danger", "Delete")
    browser.sees(".toast", "1 retained message deleted")
    browser.until(f"document.querySelectorAll({ROWS!r}).length == 2")
    browser.click(".actions button", "Delete all that match")
    browser.sees("dialog .explain", "2 of these messages")
    browser.click("dialog button.danger", "Delete")
    browser.sees(".toast", "2 retained messages deleted")
    browser.sees(".empty", "No retained message matches")
    assert gateway.get("retained?topic=old/%23")["messages"] == []
    assert len(gateway.get("retained?topic=plant/%23")["messages"]) == 24


def test_what_a_log_can_delete_of_a_topic_is_said(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    scene.publish(gateway, [scene.message("leaked", b"sesame", retain=True)])
    page.show("/topic?topic=leaked")
    browser.click(".actions button", "Delete")
    browser.sees("dialog", "cannot be deleted alone")
    browser.click("dialog button", "Delete the retained message")
    browser.click("dialog button.danger", "Delete")
    browser.sees(".toast", "1 retained message deleted")
    browser.sees_no(".panel h2", "Retained")
    browser.click(".actions button", "Delete")
    browser.click("dialog a", "Segments, to trim")
    browser.sees("h1", "Stream main")


@pytest.mark.parametrize("topic", scene.HOSTILE)
def test_names_and_payloads_that_mean_harm_are_text(page: Page, topic: str) -> None:
    """No element comes of them, no script runs (the policy would be an error too), nothing hides or turns text."""
    browser = page.browser
    page.show("/topics?sort=records&topic=%23")
    browser.sees(ROWS)
    for place in ("/topic", "/topics", "/retained"):
        browser.run(f"location.hash = '{place}?topic=' + encodeURIComponent({topic!r})")
        browser.sees("h1")
        browser.sees("main .name", topic[:20].split("\u202e")[0].split("\u200b")[0])
        assert browser.run("document.querySelectorAll('main script, main img, main b > x').length") == 0
        assert not set(browser.run("document.querySelector('main').innerText")) & set("\u202e\u200b\ufeff")
