"""The list of mutations (*.toml), its check, and its table in docs/safety.md."""
import functools
import itertools
import pathlib
import tomllib
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
LISTS = pathlib.Path(__file__).resolve().parent
TABLE_PAGE = "docs/safety.md"
FIELDS = {"name", "file", "old", "new", "test"}
OPTIONAL = {"simulation"}
HEAD = ["| promise | mutation | test | simulation |", "|---|---|---|---|"]
# Kinds of tests in the field `test`, and the sources with the names of these tests. A test of the last two
# kinds is the whole program.
SOURCES = {"unit": "tests/unit/*.cc", "simulation": "tests/simulation/*_test.cc",
           "integration": "tests/integration/*.cc", "transcript": "tests/transcripts/*.txt",
           "script": "tests/*/*_test.py", "sim": "tests/simulation/redlock_sim_test.cc",
           "sim-server": "tests/simulation/server/*.cc"}


class Promise(typing.NamedTuple):
    """A sentence of the documentation. `page` is a link from docs/."""
    quote: str
    page: str


class Mutation(typing.NamedTuple):
    """`test` is the test that must detect the mutation: "unit: NAME", "transcript: FILE: NAME", ...
    `simulation` is the result of `mutate.py --simulations`: "server: seed 2, 1,400 steps", or "no"."""
    promise: Promise
    name: str
    file: str
    old: str
    new: str
    test: str
    simulation: str = ""

    @property
    def kind(self):
        return self.test.partition(":")[0]

    @property
    def test_name(self):
        return self.test.partition(":")[2].strip()


def of_promise(entry, path):
    promise = Promise(entry["quote"], entry["page"])
    for fields in entry["mutation"]:
        if set(fields) - OPTIONAL != FIELDS:
            raise ValueError(f"{path}: {fields.get('name', fields)}: the fields must be {sorted(FIELDS)}")
        yield Mutation(promise, **fields)


def load():
    """All mutations, in the order of the lists."""
    found = []
    for path in sorted(LISTS.glob("*.toml")):
        with path.open("rb") as file:
            for entry in tomllib.load(file)["promise"]:
                found += of_promise(entry, path)
    return found


@functools.cache
def text_of(path):
    return path.read_text(encoding="utf-8")


def on_one_line(text):
    return " ".join(text.split())


def changed(mutation, text):
    """The text with the mutation. Raises ValueError unless the old text is in it exactly once."""
    times = text.count(mutation.old)
    if times != 1:
        raise ValueError(f"the old text occurs {times} times in {mutation.file}, instead of once")
    return text.replace(mutation.old, mutation.new)


def has_test(mutation):
    """Whether the project has the test of the mutation."""
    files = sorted(ROOT.glob(SOURCES[mutation.kind]))
    name = mutation.test_name
    if not name:
        return bool(files)
    if mutation.kind == "transcript":
        stem, _, scenario = name.partition(": ")
        lines = [line for path in files if path.stem == stem for line in text_of(path).splitlines()]
        return f"== {scenario}" in lines
    if mutation.kind == "script":
        path, _, function = name.partition(" ")
        return ROOT / path in files and f"def {function}" in text_of(ROOT / path)
    return any(f'"{name}"' in text_of(path) for path in files)


def faults_of(mutation):
    path = ROOT / mutation.file
    if mutation.kind not in SOURCES:
        yield f"unknown kind of test: '{mutation.test}'; the kinds are {', '.join(SOURCES)}"
    elif not has_test(mutation):
        yield f"the test does not exist: '{mutation.test}'"
    if path.suffix != ".cc" or not path.is_file():
        yield f"{mutation.file} must be a file *.cc that exists"
        return
    try:
        if changed(mutation, text_of(path)) == text_of(path):
            yield "the new text is the old text"
    except ValueError as fault:
        yield str(fault)


def faults_of_promise(promise):
    page = ROOT / "docs" / promise.page.partition("#")[0]
    if not page.is_file():
        yield f"promise '{promise.quote}': docs/{promise.page} does not exist"
    elif on_one_line(promise.quote) not in on_one_line(text_of(page)):
        yield f"promise '{promise.quote}': this text is not in docs/{page.name}"


def faults(mutations):
    """Every reason why the list does not fit the project, as a line of text."""
    names = [mutation.name for mutation in mutations]
    yield from (f"two mutations have the name '{name}'" for name in sorted(set(names))
                if names.count(name) > 1)
    for promise in dict.fromkeys(mutation.promise for mutation in mutations):
        yield from faults_of_promise(promise)
    for mutation in mutations:
        yield from (f"{mutation.name}: {fault}" for fault in faults_of(mutation))
    if shown_table() != table(mutations):
        yield f"{TABLE_PAGE}: its table is not that of `tests/mutation/mutate.py --table`"


def shown_test(mutation):
    name = mutation.test_name
    return f"`{mutation.kind}: {name}`" if name else f"`make {mutation.kind}`"


def shown_table():
    """The lines of the table on the page."""
    lines = text_of(ROOT / TABLE_PAGE).splitlines()
    if HEAD[0] not in lines:
        return []
    return list(itertools.takewhile(lambda line: line.startswith("|"), lines[lines.index(HEAD[0]):]))


def table(mutations):
    """The lines of the table: a promise, a mutation that breaks it, the test and the simulation that detect
    the mutation. The first mutation of a promise has its text."""
    own = TABLE_PAGE.rpartition("/")[2]
    rows = list(HEAD)
    for promise, of_it in itertools.groupby(mutations, lambda mutation: mutation.promise):
        shown = f"[{promise.quote}]({promise.page.removeprefix(own)})"
        for mutation in of_it:
            rows.append(f"| {shown} | {mutation.name} | {shown_test(mutation)} | {mutation.simulation} |")
            shown = ""
    return rows
