"""The page as files: what its policy forbids is not in it, what it loads is there, and its modules are small."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "rumq" / "gateway" / "page"
MODULES = sorted(path for path in PAGE.rglob("*.js") if path.parent.name != "vendor")
IMPORT = re.compile(r"""(?:from|import|import\()\s*["'](\.[^"']+)["']""")
NAMED = re.compile(r"""^import\s*\{([^}]*)\}\s*from\s*["'](\.[^"']+)["']""", re.MULTILINE)
STATIC = re.compile(r"""^(?:import|export)\b[^;()]*?["'](\.[^"']+)["']""", re.MULTILINE)
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\(|new Function\(")
LINES_MAX = 300


def test_the_html_has_no_script_style_or_handler_in_its_text() -> None:
    html = (PAGE / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)", html)
    assert not re.search(r"(?:src|href)=\"(?!page/)", html)


def test_what_the_html_loads_is_there() -> None:
    wanted = re.findall(r'(?:src|href)="page/([^"]+)"', (PAGE / "index.html").read_text())
    assert [name for name in wanted if not (PAGE / name).is_file()] == []
    assert "app.js" in wanted and "style.css" in wanted


def test_modules_of_the_first_paint_are_loaded_ahead() -> None:
    """Else the browser asks for them one floor of imports after the other."""
    ahead = set(re.findall(r'modulepreload" href="page/([^"]+)"', (PAGE / "index.html").read_text()))
    needed, left = set(), [PAGE / "app.js"]
    while left:
        path = left.pop()
        name = str(path.relative_to(PAGE))
        if name not in needed:
            needed.add(name)
            left += [(path.parent / found).resolve() for found in static_imports(path)]
    assert needed - ahead == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PAGE)))
def test_a_module_says_its_job_and_imports_what_is_there(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("// ") and len(text.partition("\n")[0]) > 20, "the first line says its job"
    assert text.count("\n") <= LINES_MAX
    for name in IMPORT.findall(text):
        assert (path.parent / name).resolve().is_file(), name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PAGE)))
def test_a_module_imports_names_that_are_exported(path: Path) -> None:
    """A browser finds out when the view is opened, and then shows nothing of it."""
    for names, source in NAMED.findall(path.read_text()):
        wanted = {name.partition(" as ")[0].strip() for name in names.split(",")} - {""}
        assert wanted - exported((path.parent / source).resolve()) == set(), source


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PAGE)))
def test_a_module_makes_no_markup_of_text_and_evaluates_none(path: Path) -> None:
    assert not MARKUP.search(path.read_text())


def exported(path: Path) -> set[str]:
    text = path.read_text()
    lists = ",".join(re.findall(r"\bexport ?\{([^}]*)\}", text)).split(",")
    return {
        *re.findall(r"^export (?:async )?(?:const|let|function\*?|class) (\w+)", text, re.MULTILINE),
        *(name.rpartition(" as ")[2].strip() for name in lists),
    }


def static_imports(path: Path) -> list[str]:
    """Not those of `import()`, which are loaded when they are wanted."""
    return [] if path.parent.name == "vendor" else STATIC.findall(path.read_text())
