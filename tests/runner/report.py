"""What a run prints: the output of each suite, what failed or was skipped, the slowest suites, the sum."""
import dataclasses
import re

from job import SUM, Result

SLOWEST = 10
MOST_LINES = 60
COLUMNS = 240
FAILURE = re.compile(r"^(FAILED|.*(ERROR|Assertion .* failed|runtime error):)")


def what_failed(result: Result) -> str:
    """The lines of the log that name what failed, each with the two after it, and the test cases that they
    belong to. Of a suite that names nothing, its last words."""
    found, case, left = [], "", 0
    lines = result.text.split("\n")
    for line in lines:
        if line.startswith("TEST CASE:"):
            case = line
        if FAILURE.match(line):
            found += [case] if case else []
            case, left = "", 3
        if left > 0:
            found.append(line)
            left -= 1
    kept = found[:MOST_LINES] or lines[-12:]
    told = [f"== failed in {result.job.name}", *([result.why] if result.why else []), *kept]
    return "\n".join(line[:COLUMNS] for line in told)


def what_was_skipped(result: Result) -> str:
    lines = [line for line in result.text.split("\n") if line.startswith("SKIPPED")]
    return "\n".join([f"== skipped in {result.job.name}", *lines[:20]])


@dataclasses.dataclass
class Totals:
    """The results so far."""
    results: list[Result] = dataclasses.field(default_factory=list)
    left_out: list[str] = dataclasses.field(default_factory=list)  # suites that cannot run here, with why
    unbuilt: list[str] = dataclasses.field(default_factory=list)   # suites that make cannot build, with why
    repeated: list[str] = dataclasses.field(default_factory=list)  # suites that ran again, as a run resumed

    def add(self, result: Result) -> None:
        """Prints the output of a suite that ended. Its own sum is left out: only the sum over all suites
        may stand alone on a line."""
        print("\n".join(line for line in result.text.rstrip("\n").split("\n") if not SUM.fullmatch(line)))
        if result.why:
            print(f"{result.job.name}: {result.why}")
        print(f"== {result.job.name}: {result.passed} passed, {result.failed} failed, "
              f"{result.wall_s:.0f} s, {result.cpu_s:.0f} s of CPU", flush=True)
        self.results.append(result)

    def count(self, what: str) -> int:
        return sum(getattr(result, what) for result in self.results)

    @property
    def failed(self) -> int:
        return self.count("failed") + len(self.unbuilt)

    @property
    def closing_line(self) -> str:
        skipped = self.count("skipped") + len(self.left_out)
        return (f"{self.count('passed')} passed, {self.failed} failed"
                + f", {skipped} skipped" * (skipped > 0))

    def print_slowest(self) -> None:
        print(f"== the {SLOWEST} slowest suites: seconds, seconds of CPU")
        for result in sorted(self.results, key=lambda result: -result.wall_s)[:SLOWEST]:
            print(f"  {result.wall_s:6.0f} {result.cpu_s:6.0f}  {result.job.name}")
        wall_s = sum(result.wall_s for result in self.results)
        cpu_s = sum(result.cpu_s for result in self.results)
        print(f"  {wall_s:6.0f} {cpu_s:6.0f}  the sum of all {len(self.results)}")

    def close(self) -> int:
        """Prints the end of the run. Returns the exit status."""
        for result in self.results:
            if result.skipped:
                print(what_was_skipped(result))
        for text in self.left_out:
            print(f"SKIPPED {text}")
        for text in self.unbuilt:
            print(f"FAILED {text}")
        for result in self.results:
            if result.failed:
                print(what_failed(result))
        self.print_slowest()
        print(self.closing_line, flush=True)
        return 1 if self.failed else 0
