"""What is to be told that depends on more than one event? Stateful subscriptions.

A *sequence* (`Sequence`) asks for events that follow one another, or for one that did not follow in time. A *change*
(`Change`) asks for the moments at which a condition becomes true. `Standing` hosts both beside conditions and ranked
subscriptions, with one matcher for the conditions of all of them; time is an argument. What they mean is written down
in `definition`, and what of them can be asked of a single event is their `interest`.
"""

from tamis.standing.change import Change
from tamis.standing.errors import SavedStateError, StandingFormError
from tamis.standing.naive import NaiveStanding
from tamis.standing.notification import Notification
from tamis.standing.processor import Standing
from tamis.standing.sequence import Sequence, Step
from tamis.standing.subscriptions import interest, parse_subscription

__all__ = [
    "Change",
    "NaiveStanding",
    "Notification",
    "SavedStateError",
    "Sequence",
    "Standing",
    "StandingFormError",
    "Step",
    "interest",
    "parse_subscription",
]
