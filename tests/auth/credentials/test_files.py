"""Files of secrets are read and written with their permissions checked."""

from pathlib import Path

import pytest

from rumq.auth.credentials.files import read_rules, read_secrets, replace
from rumq.auth.errors import SecretsError


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "users"
    replace(str(path), "alice:x\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_secrets(str(path)) == "alice:x\n"
    path.chmod(0o644)
    with pytest.raises(SecretsError, match="chmod"):
        read_secrets(str(path))


def test_rules_may_be_read_by_all_and_written_by_their_owner(tmp_path: Path) -> None:
    path = tmp_path / "rules"
    path.write_text("x")
    path.chmod(0o644)
    assert read_rules(str(path)) == "x"
    path.chmod(0o646)
    with pytest.raises(SecretsError, match="chmod o-w"):
        read_rules(str(path))


def test_a_file_that_is_no_text_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_bytes(b"a\nb\n\xff")
    path.chmod(0o600)
    with pytest.raises(SecretsError) as refused:
        read_secrets(str(path))
    assert refused.value.line == 3
