"""What is said of a bridge's sessions outlives the process, and a damaged file is none."""

from pathlib import Path

from rumq.bridge.pairing import Pairing, paired_names, pairing_file


def test_it_is_there_again(tmp_path: Path) -> None:
    path = pairing_file(tmp_path, "a")
    Pairing(path).note_new("local")
    again = Pairing(path)
    assert again.new == {"local"} and again.filters == {}
    again.note_filters("local", ["x/#"])
    again.note_paired("centre")
    assert (Pairing(path).new, Pairing(path).filters) == (set(), {"local": ["x/#"]})
    assert Pairing(path).remote == "centre" and not Pairing(path).exactly_once
    again.note_paired("centre", exactly_once=True)
    assert Pairing(path).exactly_once
    again.note_new("local")
    assert (Pairing(path).new, Pairing(path).filters) == ({"local"}, {})
    assert paired_names(tmp_path) == ["a"]


def test_one_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    for text in ("", "{", "[1]", "null"):
        pairing_file(tmp_path, "a").write_text(text)
        assert Pairing(pairing_file(tmp_path, "a")).new == set()
