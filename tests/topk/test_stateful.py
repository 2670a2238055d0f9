"""Subscribe, unsubscribe, publish, withdraw, advance, in any order: all exact algorithms answer alike."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from tamis.topk import TopK
from tests.topk.stories import CLIENTS, CONDITIONS, VARIANTS, made
from tests.topk.streams import STEPS, events, ranked_subscriptions

COMPARED = ("strict", "relaxed behind probabilistic", "block", "block with tree")


class Processors(RuleBasedStateMachine):
    """Processors of several algorithms, to which the same is done."""

    subscriptions = Bundle("subscriptions")
    publications = Bundle("publications")

    @initialize(lateness=st.sampled_from([0.0, 0.0, 1.0]))
    def begin(self, lateness):
        self.processors = [TopK("naive", lateness=lateness)]
        self.processors += [made(**VARIANTS[name], lateness=lateness) for name in COMPARED]
        self.now, self.names = 0.0, 0
        self.told = set()

    def alike(self, verb, *arguments, **options):
        answers = [getattr(processor, verb)(*arguments, **options) for processor in self.processors]
        assert all(answer == answers[0] for answer in answers)
        for each in answers[0] or ():
            assert (each.subscription, each.event) not in self.told
            self.told.add((each.subscription, each.event))

    @rule(target=subscriptions, wanted=ranked_subscriptions, client=st.sampled_from(CLIENTS))
    def subscribe(self, wanted, client):
        return self.register(wanted, client)

    @rule(target=subscriptions, wanted=st.sampled_from(CONDITIONS), client=st.sampled_from(CLIENTS))
    def subscribe_to_a_condition(self, wanted, client):
        return self.register(wanted, client)

    def register(self, wanted, client):
        self.names += 1
        self.alike("add", self.names, wanted, client=client)
        return self.names

    @rule(name=consumes(subscriptions))
    def unsubscribe(self, name):
        self.alike("remove", name)

    @rule(name=subscriptions, verb=st.sampled_from(["activate", "deactivate"]))
    def rest(self, name, verb):
        self.alike(verb, name)

    @rule(target=publications, event=events(), step=st.sampled_from(STEPS), life=st.sampled_from([None, 0.0, 2.0]))
    def publish(self, event, step, life):
        self.now += step
        self.names += 1
        self.alike("process", event, self.now, self.names, None if life is None else self.now + life)
        return self.names

    @rule(some=st.lists(events(), max_size=10), step=st.sampled_from(STEPS))
    def publish_many(self, some, step):
        self.now += step
        names = list(range(self.names + 1, self.names + 1 + len(some)))
        self.names += len(some)
        self.alike("process_batch", some, self.now, names)

    @rule(name=publications, step=st.sampled_from(STEPS))
    def withdraw(self, name, step):
        self.now += step
        self.alike("withdraw", name, self.now)

    @rule(step=st.sampled_from([0.0, 1.0, 5.0]))
    def advance(self, step):
        self.now += step
        self.alike("advance", self.now)

    @precondition(lambda self: hasattr(self, "processors"))
    @invariant()
    def all_know_the_same_subscriptions_and_the_same_time(self):
        assert len({(len(processor), processor.now) for processor in self.processors}) == 1


TestProcessors = Processors.TestCase
TestProcessors.settings = settings(max_examples=25, stateful_step_count=25)
