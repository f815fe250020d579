"""What authors of plugins and workflows import. It needs nothing but Python, and nothing of the service."""

from bellringer import param
from bellringer.calling import blocking, call
from bellringer.context import ANYTHING, Connection, Context, Integrations, Logger, Opened, State
from bellringer.definitions import Permissions, TriggerDefinition, trigger
from bellringer.errors import (
    ConfigError,
    ConfigMissing,
    ConfigNotGranted,
    DefinitionError,
    IntegrationDisabled,
    IntegrationError,
    IntegrationNotGranted,
    IntegrationNotSelected,
    IntegrationUnknown,
    ParamsInvalid,
    PluginError,
    RunFailed,
    TriggerStopping,
    WorkflowNotLoaded,
)
from bellringer.integrations import Client, IntegrationDefinition, integration
from bellringer.params import Params, ParamValues
from bellringer.polling import poll, sleep
from bellringer.signals import Signal
from bellringer.workflows import Event, TriggerData, TriggerMeta, WorkflowDefinition, workflow

__all__ = [
    "ANYTHING",
    "Client",
    "ConfigError",
    "ConfigMissing",
    "ConfigNotGranted",
    "Connection",
    "Context",
    "DefinitionError",
    "Event",
    "IntegrationDefinition",
    "IntegrationDisabled",
    "IntegrationError",
    "IntegrationNotGranted",
    "IntegrationNotSelected",
    "IntegrationUnknown",
    "Integrations",
    "Logger",
    "Opened",
    "ParamValues",
    "Params",
    "ParamsInvalid",
    "Permissions",
    "PluginError",
    "RunFailed",
    "Signal",
    "State",
    "TriggerData",
    "TriggerDefinition",
    "TriggerMeta",
    "TriggerStopping",
    "WorkflowDefinition",
    "WorkflowNotLoaded",
    "blocking",
    "call",
    "integration",
    "param",
    "poll",
    "sleep",
    "trigger",
    "workflow",
]
