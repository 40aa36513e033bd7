"""The error for a framework that is not installed, and the warning for a name that was renamed."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from compact.extras import install_line


@contextmanager
def needs_package(package: str, versions: str = "", *, extra: str) -> Generator[None, None, None]:
    """Turn a failed import of a framework into an error that names the extra to install."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "compact":
            raise  # a fault of ours, which installing a package does not mend
        raise ImportError(
            f"this adapter needs the package {package} {versions}".rstrip() + f", and it cannot be imported: {error}\n"
            f"hint: {install_line(extra)}; if it is installed, make sure that no other package or "
            f"folder has the name {error.name or package}"
        ) from error


def renamed(module: str, name: str, new_names: Mapping[str, Any]) -> Any:
    """Return what a module's old name stands for, with a warning that says the new one; for its `__getattr__`."""
    if name not in new_names:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    found = new_names[name]
    warnings.warn(f"{module}.{name} is now {found.__name__}", DeprecationWarning, stacklevel=3)
    return found
