"""Say in one line that this Python is too old; `make` runs this file, so older versions must be able to read it."""

import sys

# What `requires-python` in pyproject.toml says; a test compares them.
OLDEST = (3, 11)


def complaint(major: int, minor: int, executable: str) -> str:
    """Return what to tell the user of this version of Python; "" if it will do."""
    if (major, minor) >= OLDEST:
        return ""
    return "Compact needs Python {}.{} or newer, and {} is Python {}.{}: {}".format(
        *OLDEST,
        executable or "this one",
        major,
        minor,
        "name a newer one, as in `python3.12 -m venv .venv` or `make run PYTHON=python3.12`",
    )


def complaint_here() -> str:
    """Return what to tell the user of the Python that runs this."""
    return complaint(*sys.version_info[:2], executable=sys.executable)


if __name__ == "__main__":
    sys.exit(complaint_here() or 0)
