"""Every claim of docs/SECURITY.md has tests that try it: whoever adds a claim names them here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/SECURITY.md"

# The beginning of a claim (a row of the table, a paragraph or a point of a list), and the tests that try it.
TRIED_BY: dict[str, tuple[str, ...]] = {
    # What is stored where
    "memory": ("test_invariants.py",),
    "state store": ("stores/test_tenants.py", "test_own_folder.py"),
    "archive": ("test_archiving.py", "security/test_sensitivity.py"),
    "events: logs": ("telemetry/test_emitters.py::test_every_line_is_redacted", "telemetry/test_otlp.py"),
    "events in the state store": ("stores/test_events.py",),
    "the viewer": ("viewer/test_access.py::test_other_binds_need_a_token",),
    "the proxy": (
        "proxying/test_secrets.py::test_a_key_is_in_no_log_and_in_no_file",
        "proxying/test_secrets.py::test_a_key_is_kept_no_longer_than_its_request",
    ),
    "the summariser's model": ("security/test_sensitivity.py::test_a_summarisers_model_is_not_shown_it",),
    "The state store holds the original": ("test_own_folder.py", "recall/test_in_a_session.py"),
    "Use a session id for one conversation": ("stores/test_reuse.py",),
    "The archive": ("archive",),
    # Threats
    "Secrets in tool output": (
        "redaction/test_corpus.py::test_every_secret_disappears",
        "redaction/test_real_carriers.py::test_almost_every_secret_is_caught",
        "redaction/test_columns.py::test_only_the_column_of_the_secret_goes",
        "redaction/test_commands.py::test_the_argument_that_is_a_secret_goes_and_the_rest_stays",
        "redaction/test_speed.py::test_no_text_makes_it_slow",
        "test_archiving.py::test_redaction_switched_off_is_said_loudly",
        "redaction/test_custom.py",
    ),
    "Prompt injection": (
        "security/test_injection_ways.py::test_no_way_but_a_persons_words_makes_a_constraint",
        "summarizers/test_hijacking.py::test_a_page_cannot_forge_a_part_of_the_summary_made_by_code",
        "summarizers/test_hijacking.py::test_a_model_that_repeats_the_attack_cannot_forge_one_either",
        "recall/test_reminders.py::test_nothing_in_it_can_pass_for_the_users_words",
    ),
    "Control characters for a terminal": (
        "telemetry/test_emitters.py::test_no_text_gives_a_terminal_orders",
        "telemetry/test_emitters.py::test_log_lines_give_a_terminal_no_orders",
        "telemetry/test_emitters.py::test_warnings_give_a_terminal_no_orders",
        "cli/sessions/test_export.py::test_json_gives_a_terminal_no_orders",
    ),
    "One tenant reading another's sessions": (
        "stores/test_tenants.py",
        "security/test_other_sessions.py::test_a_tenant_whose_name_only_looks_like_another_reads_nothing",
    ),
    "One session reading another's": (
        "security/test_other_sessions.py::test_naming_the_artifact_of_another_session_shows_nothing_of_it",
        "security/test_other_sessions.py::test_recall_finds_nothing_of_another_session_by_id_or_by_words",
        "security/test_other_sessions.py::test_sessions_whose_names_only_look_alike_are_different_sessions",
    ),
    "An agent reading what it should not": (
        "security/test_sensitivity.py::test_recall_gives_it_to_nobody_by_id_or_by_words",
        "recall/test_reminders.py::test_what_is_confidential_is_not_shown",
        "security/test_sensitivity.py::test_summaries_and_events_do_not_quote_it",
        "security/test_sensitivity.py::test_export_and_mcp_withhold_it_and_raw_export_does_not",
        "recall/test_semantic.py::test_confidential_content_is_shown_to_no_model",
        "recall/test_attachments.py",
        "security/test_sensitivity.py::test_a_constraint_stays_in_the_prompt_whatever_its_sensitivity_and_gets_nowhere_else",
    ),
    "A request that misuses the proxy": (
        "proxying/test_attackers.py::test_no_target_of_a_request_reaches_another_server",
        "proxying/test_attackers.py::test_no_header_of_a_request_chooses_the_server",
        "proxying/test_attackers.py::test_nothing_in_a_body_chooses_the_server",
        "proxying/test_attackers.py::test_a_redirect_is_passed_on_and_not_followed",
        "proxying/test_attackers.py::test_no_request_hides_in_the_body_of_another",
        "proxying/test_attackers.py::test_a_key_is_used_for_the_request_that_brought_it_and_for_no_other",
        "proxying/test_parts.py::test_a_given_name_is_used_but_never_with_another_key",
        "proxying/test_parts.py::test_who_has_no_key_cannot_name_the_session_of_one_who_has",
        "proxying/test_parts.py::test_a_key_that_gives_the_same_name_cannot_be_searched_for",
    ),
    "A malicious page in the operator's browser": (
        "viewer/test_access.py::test_a_name_of_somebody_else_is_refused",
        "viewer/test_access.py::test_writes_need_the_page_s_own_token",
        "viewer/test_access.py::test_every_answer_has_its_headers",
        "viewer/static/test_page_safety.py::test_hostile_content_is_inert_in_every_view",
    ),
    "Exhaustion of memory or time": (
        "test_bad_input.py::test_ten_megabytes_of_one_character_are_cut_and_quickly",
        "telemetry/test_exporters.py::test_the_oldest_go_when_too_many_wait",
        "viewer/test_access.py::test_bodies_of_the_page_are_small",
    ),
    "A summariser that fails": ("summarizers/test_ladder.py", "summarizers/test_circuit_breaker.py"),
    "Supply chain": (
        "test_extras.py",
        "test_front_door.py",
        "security/test_supply_chain.py::test_every_locked_package_has_a_hash",
    ),
    # What is not protected is said so, and tried only where something could be broken.
    "The state store against its owner": ("test_own_folder.py",),
    "Personal data": ("redaction/test_custom.py",),
    "Prompts": ("test_invariants.py",),
    "Session ids": ("test_bad_input.py::test_session_ids_are_only_names",),
    "The viewer against other users": ("viewer/test_access.py::test_data_needs_the_token",),
    "manager.delete": (
        "stores/test_tenants.py",
        "security/test_deleting.py::test_the_archive_of_a_deleted_session_stays",
        "security/test_deleting.py::test_a_process_that_still_has_it_writes_it_again",
    ),
}


def claims() -> list[str]:
    """Return the words by which each claim begins: of rows, of paragraphs in bold, of points of lists."""
    text = PAGE.read_text(encoding="utf-8")
    rows = [row.split("|")[1].strip() for row in re.findall(r"^\|.*\|$", text, re.MULTILINE)]
    bold = re.findall(r"^(?:- )?\*\*([^*]+)\*\*", text, re.MULTILINE)
    last = [line for line in text.partition("## Deleting sessions")[2].splitlines() if line.startswith("`")][:1]
    return (
        [row for row in rows if row not in ("place",) and set(row) != {"-"}] + bold + [line.strip("`") for line in last]
    )


def test_the_page_has_claims() -> None:
    assert len(claims()) >= 27


@pytest.mark.parametrize("claim", claims())
def test_a_claim_is_tried(claim: str) -> None:
    named = [tests for start, tests in TRIED_BY.items() if claim.startswith(start)]
    assert named, f"no test is named for the claim {claim!r}; add one to TRIED_BY"


@pytest.mark.parametrize("test", sorted({test for tests in TRIED_BY.values() for test in tests}))
def test_a_test_that_is_named_is_there(test: str) -> None:
    file, _, function = test.partition("::")
    path = ROOT / "tests" / file
    assert path.exists(), f"{path} is not there"
    assert not function or f"def {function}(" in path.read_text(encoding="utf-8"), f"{file} has no {function}"
