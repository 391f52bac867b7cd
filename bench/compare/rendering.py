"""A report's parts as Markdown, with its charts in files beside it, and as one HTML page that needs nothing else."""

from collections.abc import Sequence
from html import escape

from bench.compare.document import Chart, Code, Heading, Part, Table, Words

CHARTS = "charts"  # the folder beside the Markdown
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
  :root {{ color-scheme: light dark; --line: #d8dee4; --quiet: #57606a; }}
  @media (prefers-color-scheme: dark) {{ :root {{ --line: #30363d; --quiet: #9aa4af; }} }}
  body {{ font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }}
  body {{ margin: 2rem auto; max-width: 78rem; padding: 0 1rem; }}
  .wide {{ overflow-x: auto; }}
  table {{ border-collapse: collapse; margin: 0.8rem 0; font-variant-numeric: tabular-nums; font-size: 13.5px; }}
  th, td {{ border-bottom: 1px solid var(--line); padding: 0.25rem 0.7rem; text-align: right; white-space: nowrap; }}
  th:first-child, td:first-child {{ text-align: left; }}
  th {{ color: var(--quiet); font-weight: 600; }}
  pre {{ overflow-x: auto; border: 1px solid var(--line); padding: 0.7rem; font-size: 12.5px; }}
  h3 {{ margin-top: 2rem; }}
  svg {{ max-width: 100%; height: auto; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def html_page(parts: Sequence[Part]) -> str:
    title = next((part.text for part in parts if isinstance(part, Heading)), "")
    return PAGE.format(title=escape(title), body="\n".join(html_part(part) for part in parts))


def html_part(part: Part) -> str:
    match part:
        case Heading(level, text):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Words(text):
            return f"<p>{escape(text)}</p>"
        case Code(text):
            return f"<pre>{escape(text)}</pre>"
        case Chart(_, svg):
            return svg
        case Table(rows):
            head, *body = rows
            lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
            lines += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body]
            return '<div class="wide"><table>\n' + "\n".join(lines) + "\n</table></div>"


def markdown(parts: Sequence[Part]) -> str:
    return "\n\n".join(markdown_part(part) for part in parts) + "\n"


def markdown_part(part: Part) -> str:
    match part:
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case Words(text):
            return text
        case Code(text):
            return f"```\n{text}\n```"
        case Chart(name, _):
            return f"![{name}]({CHARTS}/{name}.svg)"
        case Table(rows):
            head, *body = ([cell.replace("|", "\\|") for cell in row] for row in rows)
            rule = ["---", *("---:" for _ in head[1:])]
            return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *body))
