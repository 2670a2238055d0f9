"""How is tamis used from a terminal?

The command `tamis` has four groups of commands. About texts: `check`, `explain`, `translate`, `language`. On tables,
pipes and streams: `match`, `run`, `stream`. With a broker: `serve`, `publish`, `subscribe`, questions to it (`asking`:
try, why, dead), `links` (links, top), `network`, `token`, `repair`, `backup`. And around them: `demo`, `pipeline`,
`workload`, `lab`, `doctor`, `warm`. There is one module for each command, which decides what to say; `app` puts them
together, `inputs` reads what the user names, and `output` shows answers: to people in colour, to programs as JSON.

Exit codes are grep's: 0 is yes, 1 is no, 2 is a mistake in what was asked.
"""

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    from tamis.cli.app import start  # here, so that importing this package costs nothing

    start()
