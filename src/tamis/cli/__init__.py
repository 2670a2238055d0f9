"""How is tamis used from a terminal?

The command `tamis` checks a subscription's text (`check`), says why an event matches it or not (`explain`),
lists what the language has (`language`), shows it at work (`demo`), matches files, pipes and streams (`match`,
`run`, `stream`), shows that at work too (`pipeline`), writes test traffic to files (`workload`) and looks whether
everything is here that it needs (`doctor`). One module per command decides what to say; `inputs` reads what the user
names, `output` shows it: to people in colour, to programs as JSON.

Exit codes are grep's: 0 is yes, 1 is no, 2 is a mistake in what was asked.
"""

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    from tamis.cli.app import start  # here, so that importing this package costs nothing

    start()
