"""The views of callers in the database: which log entries each branch has, and in which forms.

A row has all of a view, or only what is new in the forms of its entries; then the rest is that of the row before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, and_, insert, select

from compact.core.audit.records import BranchView, Commit
from compact.core.log.forms import EntryForm
from compact.stores import schema

_TABLE = schema.branches
# How the text of a row begins that has nothing but forms.
_FORMS_ONLY = '{"forms"'


def add_branch(connection: Connection, keys: Mapping[str, Any], commit: Commit, *, now: float) -> None:
    """Write the branch that a commit begins."""
    after, data = commit.head_after, json.dumps(_as_data(commit), separators=(",", ":"))
    row = {"branch": after.branch, "after_seq": after.last_seq, "view_ids": data}
    connection.execute(insert(_TABLE), {**keys, **row, "created_at": now})


def _as_data(commit: Commit) -> object:
    forms = {message_id: form.to_list() for message_id, form in commit.forms.items()}
    unseen = {message_id: form and form.to_list() for message_id, form in commit.unseen.items()}
    if commit.view_ids is not None and not (forms or unseen):
        return commit.view_ids
    view = {} if commit.view_ids is None else {"view": commit.view_ids}
    return {**view, "forms": forms, **({"unseen": unseen} if unseen else {})}


def branch_at(connection: Connection, keys: Mapping[str, str], number: int) -> BranchView:
    """Return the view of a branch; 0 is the one that nobody has edited."""
    return views_of(connection, keys, first=number, last=number).get(number, BranchView())


def views_of(
    connection: Connection, keys: Mapping[str, str], *, first: int, last: int | None = None
) -> dict[int, BranchView]:
    """Return the views of the branches from one on, by their numbers."""
    columns = _TABLE.c
    own = and_(*(columns[name] == value for name, value in keys.items()))
    whole = select(columns.branch).where(own, columns.branch <= first, columns.view_ids.not_like(f"{_FORMS_ONLY}%"))
    start = connection.execute(whole.order_by(columns.branch.desc()).limit(1)).scalar() or 0
    query = select(columns.branch, columns.after_seq, columns.view_ids).where(own, columns.branch >= start)
    query = query if last is None else query.where(columns.branch <= last)
    views: dict[int, BranchView] = {}
    view = BranchView()
    for row in connection.execute(query.order_by(columns.branch)):
        written: Any = json.loads(row.view_ids)
        data: dict[str, Any] = {"view": written} if isinstance(written, list) else written
        if "view" in data:
            view = BranchView(row.after_seq, tuple(data["view"]))
        forms = {message_id: EntryForm(*form) for message_id, form in data.get("forms", {}).items()}
        unseen = {message_id: form and EntryForm(*form) for message_id, form in data.get("unseen", {}).items()}
        view = views[row.branch] = view.with_forms(forms, unseen)
    return {number: view for number, view in views.items() if number >= first}
