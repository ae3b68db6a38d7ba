"""What a case of the compatibility suite is, and the list of them all.

A case is a program that does its steps with the real library and prints a line for each, `name: outcome`,
the same on every run. The lists stand in a file for each origin, which take Case from here.
"""
import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Case:
    library: str
    # As pinned; or the command that prints it, for what Debian pins.
    version: str | list[str]
    # What is done with it, in a few words for the table.
    how: str
    command: list[str]
    # Where the command runs.
    folder: str
    # On top of PORT, HOST and, with Holdfast on the other side of it, HOLDFAST=1.
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    # Makes what the case needs (installs, compiles). Called once, though many cases name the same.
    prepare: typing.Callable[[], None] | None = None


def all_cases():
    import cases_debian  # here, as both lists need Case first
    import cases_node
    return cases_node.CASES + cases_debian.CASES
