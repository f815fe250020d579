"""What the errors say: the thing, the rule and the way out; and one root for all of them."""

import pytest

import bellringer
from bellringer import errors


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (errors.RunFailed(7, 1, "exit code 3"), "Run 7 failed (tried once): exit code 3"),
        (errors.RunFailed(7, 3, "no"), "Run 7 failed (tried 3 times): no"),
        (errors.TriggerStopping(), "The trigger is stopping: no run was started."),
        (
            errors.WorkflowNotLoaded("no such ref"),
            "The workflow is not loaded on this worker: no such ref",
        ),
        (
            errors.IntegrationNotSelected(),
            "no integration was selected. Pick one in the trigger's settings, "
            "or make the param required.",
        ),
        (
            errors.IntegrationNotGranted("acme/shop/orders/new", "kv"),
            "acme/shop/orders/new was not granted kv integrations. "
            "Add 'kv' to permissions['integrations'].",
        ),
        (errors.IntegrationUnknown("shop-db"), "There is no integration 'shop-db'."),
        (
            errors.IntegrationDisabled("crm", "acme/shop"),
            "The integration 'crm' comes from the plugin 'acme/shop', which is not enabled.",
        ),
        (
            errors.ConfigNotGranted("acme/shop/orders/new", "REGION"),
            "acme/shop/orders/new was not granted the app config key 'REGION'. "
            "Pick it in a secret param, or declare permissions['appconfig'].",
        ),
        (errors.ConfigMissing("REGION"), "The app config key 'REGION' has no value."),
    ],
)
def test_an_error_says_what_is_wrong(error: bellringer.PluginError, message: str) -> None:
    assert isinstance(error, bellringer.PluginError)
    assert str(error) == message


def test_what_belongs_together_can_be_caught_together() -> None:
    kinds = (
        errors.IntegrationNotSelected,
        errors.IntegrationNotGranted,
        errors.IntegrationUnknown,
        errors.IntegrationDisabled,
    )
    assert all(issubclass(kind, bellringer.IntegrationError) for kind in kinds)
    assert issubclass(errors.ConfigMissing, bellringer.ConfigError)
    assert issubclass(errors.ConfigNotGranted, bellringer.ConfigError)


def test_everything_that_is_offered_is_there() -> None:
    assert sorted(bellringer.__all__) == sorted(set(bellringer.__all__))
    assert all(hasattr(bellringer, name) for name in bellringer.__all__)
