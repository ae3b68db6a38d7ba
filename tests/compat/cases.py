"""The cases of the compatibility suite: their type, and the list of all.

A case is a program that runs its steps with the real library. It prints a line for each step, `name:
outcome`, the same on every run. The rows are in a file for each origin of libraries (cases_*.py).
"""
import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Case:
    library: str
    # The pinned version; or, for a package of Debian, the command that prints the version.
    version: str | list[str]
    # The steps of the case in a few words, for the table.
    how: str
    command: list[str]
    # The working directory of the command.
    folder: str
    # In addition to PORT, HOST and, if the server is Holdfast, HOLDFAST=1.
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    # Installs packages or compiles the program. The suite calls each such function once, even if several
    # cases name it.
    prepare: typing.Callable[[], None] | None = None


ORIGINS = ("debian", "npm")


def all_cases(origin=None):
    """The cases whose libraries are packages of Debian, those of npm, or all."""
    import cases_debian  # here and not above, as both lists import Case from this module
    import cases_node
    of_origin = {"npm": cases_node.CASES, "debian": cases_debian.CASES}
    return of_origin[origin] if origin else of_origin["npm"] + of_origin["debian"]
