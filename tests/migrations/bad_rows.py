"""For every CHECK, rows of which it alone is the one to refuse."""

from collections.abc import Mapping, Sequence

Row = Mapping[str, object]

_ID_LENGTH: Sequence[Row] = [{"id": "a" * 64}, {"id": "a" * 65}]
_AUTOMATION_ID: Sequence[Row] = [
    {"id": text}
    for text in ("aB", "a_b", "a b", "a ", "a\n", "a\r", "a.", "aé", "a\u0430", "a\uff41", "a🔔")
]
_TRIGGER_ID: Sequence[Row] = [{"id": t} for t in ("aB", "a b", "a ", "a\n", "a.", "aé", "a🔔")]
_START: Sequence[Row] = [{"id": "-a"}, {"id": "-"}]
_HASHES: Sequence[str] = ("A" * 64, "g" * 64, "0" * 63 + "\n", "0" * 63 + " ", "0" * 63 + "é")


def _hashes(column: str) -> Sequence[Row]:
    return [{column: text} for text in _HASHES]


def _lengths_of_hash(column: str) -> Sequence[Row]:
    return [{column: "0" * 63}, {column: "0" * 65}, {column: ""}]


def _lengths(column: str, *numbers: int) -> Sequence[Row]:
    return [{column: "a" * number} for number in numbers] + [
        {column: "é" * n} for n in numbers if n
    ]


def _unknown(column: str, known: str) -> Sequence[Row]:
    return [{column: t} for t in ("", "x", known.upper(), known.title(), f"{known} ", f"{known}\n")]


def _blank(column: str) -> Sequence[Row]:
    return [{column: ""}, {column: " "}, {column: "    "}]


BAD_ROWS: Mapping[str, tuple[str, Sequence[Row]]] = {
    "ck_automations_id_length": ("automations", _ID_LENGTH),
    "ck_automations_id_start": ("automations", _START),
    "ck_automations_id_charset": ("automations", _AUTOMATION_ID),
    "ck_automations_revision_length": ("automations", _lengths_of_hash("revision")),
    "ck_automations_revision_charset": ("automations", _hashes("revision")),
    "ck_automations_name_not_blank": ("automations", _blank("name")),
    "ck_automations_name_length": ("automations", _lengths("name", 1_001)),
    "ck_automations_description_length": ("automations", _lengths("description", 100_001)),
    "ck_automations_api_enabled_boolean": ("automations", [{"api_enabled": n} for n in (2, -1)]),
    "ck_automations_target_repository_length": (
        "automations",
        _lengths("target_repository", 0, 2, 141),
    ),
    "ck_automations_target_ref_length": ("automations", _lengths("target_ref", 0, 256)),
    "ck_automations_target_workflow_length": ("automations", _lengths("target_workflow", 0, 256)),
    "ck_automation_triggers_id_length": ("automation_triggers", _ID_LENGTH),
    "ck_automation_triggers_id_start": ("automation_triggers", [*_START, {"id": "_a"}]),
    "ck_automation_triggers_id_charset": ("automation_triggers", _TRIGGER_ID),
    "ck_automation_triggers_enabled_boolean": (
        "automation_triggers",
        [{"enabled": n} for n in (2, -1)],
    ),
    "ck_automation_triggers_expression_not_blank": ("automation_triggers", _blank("expression")),
    "ck_automation_triggers_expression_length": (
        "automation_triggers",
        _lengths("expression", 256, 300),
    ),
    "ck_automation_history_automation_id_length": (
        "automation_history",
        [{"automation_id": ""}, {"automation_id": "a" * 64}],
    ),
    "ck_automation_history_action_known": ("automation_history", _unknown("action", "create")),
    "ck_automation_history_revision_length": ("automation_history", _lengths_of_hash("revision")),
    "ck_automation_history_revision_charset": ("automation_history", _hashes("revision")),
    "ck_automation_history_actor_length": ("automation_history", _lengths("actor", 0, 256)),
    "ck_nodes_role_known": ("nodes", _unknown("role", "worker")),
    "ck_nodes_id_length": ("nodes", _lengths("id", 0, 64)),
    "ck_schedule_occurrences_state_known": ("schedule_occurrences", _unknown("state", "fired")),
    "ck_schedule_occurrences_runs_not_negative": ("schedule_occurrences", [{"runs": -1}]),
    "ck_runs_state_known": ("runs", _unknown("state", "queued")),
    "ck_runs_trigger_type_known": ("runs", _unknown("trigger_type", "api")),
    "ck_runs_attempt_not_negative": ("runs", [{"attempt": -1}]),
    "ck_runs_max_attempts_range": ("runs", [{"max_attempts": 0}, {"max_attempts": 101}]),
    "ck_runs_events_not_negative": ("runs", [{"events": -1}]),
    "ck_runs_worker_and_lease_together": (
        "runs",
        [{"worker": "w"}, {"lease_until": "2026-01-01 12:00:00"}],
    ),
    "ck_run_idempotency_keys_key_length": ("run_idempotency_keys", _lengths("key", 0, 256)),
    "ck_run_idempotency_keys_body_hash_length": (
        "run_idempotency_keys",
        _lengths_of_hash("body_hash"),
    ),
    "ck_run_log_lines_number_positive": ("run_log_lines", [{"number": 0}, {"number": -1}]),
    "ck_run_log_lines_stream_known": ("run_log_lines", _unknown("stream", "stdout")),
    "ck_api_tokens_id_length": ("api_tokens", _lengths("id", 0, 64)),
    "ck_api_tokens_name_not_blank": ("api_tokens", _blank("name")),
    "ck_api_tokens_name_length": ("api_tokens", _lengths("name", 201)),
    "ck_api_tokens_role_known": ("api_tokens", _unknown("role", "viewer")),
    "ck_api_tokens_token_hash_length": ("api_tokens", _lengths_of_hash("token_hash")),
    "ck_api_tokens_token_hash_charset": ("api_tokens", _hashes("token_hash")),
}
