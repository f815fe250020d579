"""What the SDK raises. A message names the thing, the rule and the way out; never a secret's value."""

from collections.abc import Sequence
from dataclasses import dataclass


class PluginError(Exception):
    """The root of everything that the SDK, or the runtime on its behalf, raises on purpose."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One broken rule of a definition: the field (``params.table.default``) and a sentence."""

    field: str
    rule: str


class DefinitionError(PluginError):
    """A definition breaks rules; ``subject`` says whose it is and ``faults`` has every rule."""

    def __init__(self, subject: str, faults: Sequence[Fault]) -> None:
        self.subject = subject
        self.faults = tuple(faults)
        super().__init__("\n".join(f"{subject}, field {f.field!r}: {f.rule}" for f in self.faults))


@dataclass(frozen=True, slots=True)
class ParamProblem:
    """What is wrong with one value: the param's name, a stable ``code``, and a sentence.

    Codes: ``required``, ``type``, ``invalid``, ``unknown``. The sentence never holds the value.
    """

    name: str
    code: str
    detail: str


class ParamsInvalid(PluginError):
    """Values break the rules of their params; all of them are in ``problems``."""

    def __init__(self, problems: Sequence[ParamProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{p.name}: {p.detail}" for p in self.problems))


# --- emit ------------------------------------------------------------------------------------------


class RunFailed(PluginError):
    """The run that ``emit`` opened has failed, with all its attempts.

    ``run_id`` is the run in the ledger, ``attempts`` how often it was tried, ``reason`` the last error.
    """

    def __init__(self, run_id: int, attempts: int, reason: str) -> None:
        self.run_id = run_id
        self.attempts = attempts
        self.reason = reason
        times = "once" if attempts == 1 else f"{attempts} times"
        super().__init__(f"Run {run_id} failed (tried {times}): {reason}")


class TriggerStopping(PluginError):
    """The trigger is stopping, so that no run was started; the next start reads the events again."""

    def __init__(self) -> None:
        super().__init__("The trigger is stopping: no run was started.")


class WorkflowNotLoaded(PluginError):
    """The workflow can't be run on this worker, so that no run was started; ``why`` says why."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"The workflow is not loaded on this worker: {why}")


# --- integrations ----------------------------------------------------------------------------------


class IntegrationError(PluginError):
    """An integration can't be had."""


class IntegrationNotSelected(IntegrationError):
    """The param that picks the integration is empty."""

    def __init__(self) -> None:
        super().__init__(
            "no integration was selected. Pick one in the trigger's settings, "
            "or make the param required."
        )


class IntegrationNotGranted(IntegrationError):
    """The trigger's permissions do not name the integration's kind."""

    def __init__(self, trigger: str, kind: str) -> None:
        self.kind = kind
        super().__init__(
            f"{trigger} was not granted {kind} integrations. "
            f"Add {kind!r} to permissions['integrations']."
        )


class IntegrationUnknown(IntegrationError):
    """There is no integration with that id."""

    def __init__(self, integration_id: str) -> None:
        self.integration_id = integration_id
        super().__init__(f"There is no integration {integration_id!r}.")


class IntegrationDisabled(IntegrationError):
    """The plugin that brings the integration's kind is not enabled."""

    def __init__(self, integration_id: str, plugin: str) -> None:
        self.integration_id = integration_id
        self.plugin = plugin
        super().__init__(
            f"The integration {integration_id!r} comes from the plugin {plugin!r}, "
            "which is not enabled."
        )


# --- app config ------------------------------------------------------------------------------------


class ConfigError(PluginError):
    """An app config value can't be had; the message names its key."""


class ConfigNotGranted(ConfigError):
    """The trigger may read only the keys that its secret params name, and this is none of them."""

    def __init__(self, trigger: str, key: str) -> None:
        self.key = key
        super().__init__(
            f"{trigger} was not granted the app config key {key!r}. "
            "Pick it in a secret param, or declare permissions['appconfig']."
        )


class ConfigMissing(ConfigError):
    """The key has no value."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"The app config key {key!r} has no value.")
