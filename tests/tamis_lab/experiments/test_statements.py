"""Published statements are data, and one judge takes them all."""

from __future__ import annotations

import pytest

from tamis_lab.experiments import LABS, Judgement, LabError
from tamis_lab.experiments.citations import CONTENTS
from tamis_lab.experiments.statements import FOLDER, JUDGEMENTS, Judge, other_sizes, statements

every_lab = pytest.mark.parametrize("lab", LABS)
GOOD = """
[caveats]
"one experiment" = "times"

[["one experiment"]]
key = "first"
text = "By {name} it is smaller"
where = "Bittner 2008, 5.7"
compare = "ratio"
published = { a = 0.5, b = 2.0 }
about = 1.5
each = ["name"]
"""


@every_lab
def test_every_lab_has_its_statements_and_no_others(lab):
    assert {path.stem for path in FOLDER.iterdir()} == LABS.keys() | {CONTENTS.stem}
    assert statements(lab).keys() <= {experiment.key for experiment in LABS[lab]}


@every_lab
def test_a_statement_says_what_where_and_how_far_ours_may_be_from_it(lab):
    for by_key in statements(lab).values():
        for key, statement in by_key.items():
            assert key == statement.key and key == key.lower() and " " not in key
            assert statement.compare in JUDGEMENTS and statement.where and statement.text
            if statement.compare in ("ratio", "added"):
                assert statement.options["about"] > 1, key
            if statement.compare in ("value", "equality", "line"):
                assert statement.options["within"] >= 0, key


def test_there_are_more_than_two_hundred_statements():
    assert sum(len(by_key) for lab in LABS for by_key in statements(lab).values()) > 200


@pytest.fixture
def judged(tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text(GOOD)
    monkeypatch.setattr("tamis_lab.experiments.statements.statements", lambda lab: statements(lab, tmp_path))
    return Judge("mine", "one experiment")


def test_an_experiment_without_a_caveat_is_refused(tmp_path):
    (tmp_path / "mine.toml").write_text(GOOD.replace('= "times"', '= "mood"'))
    with pytest.raises(LabError, match="has none for one experiment; expected one of times"):
        statements("mine", tmp_path)


def test_a_statement_may_have_a_caveat_of_its_own(tmp_path):
    (tmp_path / "mine.toml").write_text(f'{GOOD}caveat = "Only on Sundays."')
    assert statements("mine", tmp_path)["one experiment"]["first"].caveat == "Only on Sundays."


def test_what_was_said_of_several_things_is_compared_for_each(judged):
    one, two = judged("first", 0.5, name="a"), judged("first", 0.5, name="b")
    assert (one.key, two.key) == ("first (a)", "first (b)")
    assert (one.statement, one.published, one.where) == ("By a it is smaller", "0.50 times", "Bittner 2008, 5.7")
    assert (one.verdict, two.verdict) == (Judgement.AGREES, Judgement.TURNED)


@pytest.mark.parametrize(
    ("about", "verdict"), [(1.5, Judgement.AGREES), (1.2, Judgement.DIRECTION), (1.1, Judgement.DIFFERS)]
)
def test_the_tolerance_is_that_of_the_statement(tmp_path, monkeypatch, about, verdict):
    (tmp_path / "mine.toml").write_text(GOOD.replace("about = 1.5", f"about = {about}"))
    monkeypatch.setattr("tamis_lab.experiments.statements.statements", lambda lab: statements(lab, tmp_path))
    judged = Judge("mine", "one experiment")
    assert judged("first", 0.7, name="a").verdict is verdict
    with pytest.raises(AssertionError, match="written down beforehand"):
        judged("first", 0.7, name="a", about=2.0)


def test_what_only_the_run_knows_is_given_by_it(judged):
    claim = judged("first", 3.0, name="a", at="at 1,000", remark="a guess")
    assert claim.ours == "3.00 times, at 1,000" and claim.remark == "a guess"
    assert judged("first", 0.5, name="a", remark="a guess").remark == "", "what agrees needs no reason"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('where = "Bittner 2008, 5.7"', "", "where missing; a statement has key, text, where, compare, published"),
        ('compare = "ratio"', 'compare = "mood"', "no comparison 'mood', only ratio, added"),
        ("2008, 5.7", "2008, 5.7.9", "Bittner 2008, section 5.7.9 is not in contents.toml"),
        ("2008, 5.7", "2008, figure 5.6", "figure 5.6 is only known together with 5.5, 5.7, 5.8"),
        ("Bittner 2008, 5.7", "5.7", "does not say of which source; expected one of Bittner 2008"),
        ("2008, 5.7", "2008, somewhere", "is not a citation; expected something like"),
        ("about = 1.5", "abuot = 1.5", "a comparison by ratio takes no abuot"),
        ('each = ["name"]', 'each = ["size"]', "each of size is to be a word of the text"),
        ('each = ["name"]', 'each = ["name"]\n' + GOOD[GOOD.index("[[") :], "two statements have one key"),
    ],
)
def test_a_statement_that_cannot_be_judged_is_refused_when_it_is_read(tmp_path, old, new, told):
    (tmp_path / "bad.toml").write_text(GOOD.replace(old, new))
    with pytest.raises(LabError, match=r"bad\.toml, one experiment") as caught:
        statements("bad", tmp_path)
    assert told in str(caught.value)


@every_lab
def test_what_is_said_of_full_sizes_is_said_of_experiments(lab):
    said = other_sizes(lab)
    assert said.keys() <= {experiment.key for experiment in LABS[lab]}
    assert all(len(text) > 30 and text.endswith(".") for text in said.values())
    assert lab == "distributed" or said
