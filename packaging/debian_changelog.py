#!/usr/bin/env python3
"""Prints debian/changelog, made from CHANGELOG.md: debian_changelog.py VERSION MAINTAINER. Each release has
an entry with its date. Unreleased changes are the first entry, with the time SOURCE_DATE_EPOCH or that of the
last commit, which is a part of their version: VERSION+TIME is newer than the release VERSION, and VERSION~TIME
is older than the release that will come. dpkg-buildpackage takes the time of a build from the first entry."""
import datetime
import email.utils
import os
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
COLUMNS = 78
UTC = datetime.timezone.utc


def time_of_sources():
    """The time of the last commit. A tree without git has that of CHANGELOG.md."""
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(epoch)
    last = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], check=False, text=True,
                          capture_output=True).stdout.strip()
    return int(last or (ROOT / "CHANGELOG.md").stat().st_mtime)


def plain(text):
    """Without the marks of Markdown."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
    return re.sub(r"\*\*|`", "", text)


def entry(version, when, text, maintainer):
    lines = [f"holdfast ({version}) unstable; urgency=medium", ""]
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        heading, _, items = part.partition("\n")
        lines += [f"  [ {heading} ]"]
        for item in re.findall(r"^- ((?:.+\n?)(?:  .+\n?)*)", items, re.MULTILINE):
            lines += textwrap.wrap(plain(item), COLUMNS, initial_indent="  * ", subsequent_indent="    ",
                                   break_long_words=False, break_on_hyphens=False)
        lines += [""]
    date = email.utils.format_datetime(datetime.datetime.fromtimestamp(when, UTC))
    return "\n".join([*lines, f" -- {maintainer}  {date}", "", ""])


def main():
    version, maintainer = sys.argv[1:]
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    parts = re.split(r"^## \[(.+?)\](?: - (\S+))?\n", changes, flags=re.MULTILINE)[1:]
    for name, date, text in zip(parts[::3], parts[1::3], parts[2::3]):
        if date:
            noon = datetime.datetime.fromisoformat(date).replace(hour=12, tzinfo=UTC)
            print(entry(name, int(noon.timestamp()), text, maintainer), end="")
        elif "\n- " in text:
            now = time_of_sources()
            minute = datetime.datetime.fromtimestamp(now, UTC).strftime("%Y%m%d%H%M")
            sign = "+" if version in parts[::3] else "~"
            print(entry(f"{version}{sign}{minute}", now, text, maintainer), end="")


if __name__ == "__main__":
    main()
