"""What git says about the tree: its base, the files that differ from the base, its hash and its seed.

The base is, in this order: the environment variable BASE; the merge base with origin/main, unless that is
HEAD; the newest commit that is at least 3 hours older than HEAD, because work arrives in batches.
"""
import os
import subprocess

BATCH_S = 3 * 3600


class NoHistory(Exception):
    """git cannot tell: there is no repository, or the clone is shallow."""


def git(*arguments: str) -> str:
    """The output of git, without the last line end. Raises NoHistory if git fails."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        raise NoHistory(f"git {' '.join(arguments)}: {failure}") from failure
    return done.stdout.rstrip("\n")


def lines(*arguments: str) -> list[str]:
    return [line for line in git(*arguments).split("\n") if line]


def older_commit() -> str:
    """The newest ancestor of HEAD that is at least BATCH_S seconds older."""
    committed_s = int(git("log", "-1", "--format=%ct"))
    found = git("rev-list", "-1", f"--before=@{committed_s - BATCH_S}", "HEAD")
    if not found:
        raise NoHistory("no commit is 3 hours older than HEAD")
    return found


def base() -> str:
    """The hash of the commit that the tree is compared with. Raises NoHistory if there is none."""
    if named := os.environ.get("BASE"):
        return git("rev-parse", "--verify", f"{named}^{{commit}}")
    if git("rev-parse", "--is-shallow-repository") == "true":
        raise NoHistory("a shallow clone does not have the base")
    try:
        merge_base = git("merge-base", "HEAD", "origin/main")
    except NoHistory:
        return older_commit()
    return merge_base if merge_base != git("rev-parse", "HEAD") else older_commit()


def changed_files() -> set[str]:
    """The names of the files that differ between the base and the work tree. Some may not exist any more.
    Raises NoHistory."""
    return set(lines("diff", "--name-only", base()) + lines("ls-files", "--others", "--exclude-standard"))


def tree_hash() -> str:
    """The hash of the tree: of the tracked files with their changes. Raises NoHistory."""
    try:
        commit = git("stash", "create")  # empty if no tracked file differs from HEAD
    except NoHistory:  # files have new times, but the content of HEAD
        commit = ""
    return git("rev-parse", f"{commit or 'HEAD'}^{{tree}}")


def seed() -> int:
    """The first seed of all random tests. It depends on the content of the tree only. HOLDFAST_SEED sets
    another one; without git it is 1."""
    if named := os.environ.get("HOLDFAST_SEED"):
        return int(named)
    try:
        return int(tree_hash()[:7], 16) + 1
    except NoHistory:
        return 1


def commits() -> int:
    """The number of commits up to HEAD; 0 if git cannot tell."""
    try:
        return int(git("rev-list", "--count", "HEAD"))
    except NoHistory:
        return 0


if __name__ == "__main__":
    print(tree_hash())
