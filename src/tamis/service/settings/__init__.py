"""What does an operator decide? The settings of a broker.

A file `tamis.toml`, variables of the environment and flags of the command, the later ones over the earlier (`layers`),
checked against Structs (`shapes`, `quantities`, `reading`). `checking` says whether it is safe to start with them,
`reloading` what can change while the broker runs, `writing` shows them as a file and as a page.
"""

from tamis.service.settings.checking import ADMIN, is_loopback
from tamis.service.settings.quantities import Duration, KeepLimits, Size, Sync
from tamis.service.settings.reading import read_settings
from tamis.service.settings.reloading import Differences, differences, renewed
from tamis.service.settings.shapes import (
    CatchUp,
    Issuer,
    JetStream,
    LimitSettings,
    LinkAdaptation,
    LinkListener,
    LinkPruning,
    LinkSettings,
    LinkTls,
    Listener,
    Logging,
    LogSettings,
    Publishing,
    Role,
    Settings,
    Tls,
    TracingSettings,
    WebhookSettings,
)
from tamis.service.settings.writing import example_file, settings_file, settings_page

__all__ = [
    "ADMIN",
    "CatchUp",
    "Differences",
    "Duration",
    "Issuer",
    "JetStream",
    "KeepLimits",
    "LimitSettings",
    "LinkAdaptation",
    "LinkListener",
    "LinkPruning",
    "LinkSettings",
    "LinkTls",
    "Listener",
    "LogSettings",
    "Logging",
    "Publishing",
    "Role",
    "Settings",
    "Size",
    "Sync",
    "Tls",
    "TracingSettings",
    "WebhookSettings",
    "differences",
    "example_file",
    "is_loopback",
    "read_settings",
    "renewed",
    "settings_file",
    "settings_page",
]
