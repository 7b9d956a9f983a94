"""The pages of the site are the Markdown files of the repository, where they lie."""

import posixpath
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
INDEX = "docs/README.md"
FORGE = "https://github.com/origami-gemm/origami"
LINK = re.compile(r"(?<=\]\()([^()\s]+)(?=\))")


def tracked():
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return names.splitlines()


def on_config(config):
    """The navigation is the index of the documentation: its headings and lists."""
    sections, entries = [{"Documentation": [INDEX]}], []
    for line in (ROOT / INDEX).read_text().splitlines():
        if line.startswith("## ") or (line.endswith(":") and not line.startswith("-")):
            entries = []
            sections.append({line.strip("# :"): entries})
        elif line.startswith("- "):
            for title, to in re.findall(r"\[([^\]]+)\]\(([^()\s]+)\)", line):
                if to.endswith(".md"):
                    entries.append({title: posixpath.normpath(posixpath.join("docs", to))})
    config.nav = [s for s in sections if any(s.values())]
    config.extra["brand"] = re.search("<svg.*?</svg>", (ROOT / "site/page/index.html").read_text())[0]


def on_files(files, config):
    for name in tracked():
        # The front page is origami itself.
        if name != "README.md" and name.endswith((".md", ".png", ".svg")):
            files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to what is no page lead to the repository."""

    def lead(found):
        to = urlsplit(found[1])
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), unquote(to.path)))
        if to.scheme or not to.path or files.get_file_from_path(path) or not (ROOT / path).exists():
            return found[1]
        return f"{FORGE}/{'tree' if (ROOT / path).is_dir() else 'blob'}/main/{path}"

    return LINK.sub(lead, markdown)


def on_post_page(output, page, config):
    """Code and tables that are wider than the page scroll, and the arrow keys reach them."""
    output = output.replace("<pre><span></span>", '<pre tabindex="0"><span></span>')
    return output.replace("<table>", '<div class="wide" tabindex="0"><table>').replace("</table>", "</table></div>")
