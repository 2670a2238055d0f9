"""Dry runs, explanations, relations and reasons over HTTP, on a real broker."""

from __future__ import annotations

from tamis.service.settings import Role

from .brokers import eventually, running


@eventually
async def test_a_filter_is_tried_on_the_past_before_anybody_subscribes(tmp_path):
    async with running(tmp_path) as broker:
        await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=201, data="price < 20")
        await broker.publish(*({"price": price} for price in range(100)))
        _, answer = await broker.ask("POST", "/try", {"where": "price < 10"}, status=200)
        assert (answer["seen"], answer["matched"], answer["share"]) == (100, 10, 0.1)
        assert answer["complete"] is True
        assert [each["event"]["data"]["price"] for each in answer["examples"]] == [5, 6, 7, 8, 9]
        assert answer["near_misses"][0]["changes"] == 1
        assert "✗ price < 10" in answer["near_misses"][0]["why"]
        assert [(each["subscriber"], each["key"]) for each in answer["covered_by"]] == [("ann", "cheap")]
        assert (answer["same"], answer["covers"], answer["compared"]) == ([], [], 1)
        assert sum(span["matched"] for span in answer["spans"]) == 10
        _, other = await broker.ask("POST", "/try", {"where": "price < 10", "from": "now"}, status=200)
        assert (other["seen"], other["share"]) == (0, None)
        _, problem = await broker.ask("POST", "/try", {"where": "price <"}, status=400)
        assert problem["where"] == {"line": 1, "column": 8}


@eventually
async def test_an_explanation_is_of_an_event_that_is_given_or_of_the_past(tmp_path):
    async with running(tmp_path) as broker:
        position = (await broker.publish({"price": 25}))["position"]
        where = "price < 20 OR bids > 3"
        _, given = await broker.ask("POST", "/explain", {"where": where, "event": {"price": 25}}, status=200)
        _, past = await broker.ask("POST", "/explain", {"where": where, "at": position}, status=200)
        assert given["matches"] is past["matches"] is False
        assert given["text"] == past["text"] and "price is 25" in past["text"]
        assert past["explanation"]["truth"] == "unknown"
        for body in ({"where": where}, {"where": where, "event": {}, "at": position}):
            await broker.ask("POST", "/explain", body, status=400)
        await broker.ask("POST", "/explain", {"where": where, "at": position + "000"}, status=404)


@eventually
async def test_relations_are_told_with_events_that_tell_the_filters_apart(tmp_path):
    async with running(tmp_path) as broker:
        pair = {"first": "price < 20", "second": {"where": "price < 10 AND signed"}}
        _, answer = await broker.ask("POST", "/relations", pair, status=200)
        assert answer["covers"] == {"holds": True, "proven": True}
        assert answer["covered"]["holds"] is answer["identical"]["holds"] is False
        assert answer["overlaps"]["holds"] is True
        assert answer["only_second"] is None and answer["only_first"]["price"] < 20
        assert answer["both"]["signed"] is True


@eventually
async def test_why_names_the_reason_at_every_stage_of_a_delivery(tmp_path):
    async with running(tmp_path) as broker:
        before = (await broker.publish({"price": 1}))["position"]
        await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=201, data="price < 20")
        await broker.ask("PUT", "/subscribers/ann", {"wait_s": 1000})
        offer = {"specversion": "1.0", "id": "7", "source": "/shop", "type": "offer", "data": {"price": 12}}
        headers = {"Content-Type": "application/cloudevents+json"}
        _, published = await broker.ask("POST", "/events", json=offer, headers=headers, status=200)
        position = published["position"]
        dear = (await broker.publish({"price": 30}))["position"]

        async def reason(query):
            return (await broker.ask("GET", f"/subscribers/ann/why?{query}", status=200))[1]

        early = await reason(f"at={before}")
        assert early["delivery"] == "none" and "not in force" in early["verdict"]
        missed = await reason(f"at={dear}")
        assert missed["delivery"] == "none" and "matches it" in missed["verdict"]
        assert "price is 30" in missed["subscriptions"][0]["explanation"]
        by_id = await reason("id=7&source=/shop")
        assert by_id["at"] == position and by_id["delivery"] == "ahead"
        await broker.ask("POST", "/subscribers/ann/take", {"most": 1}, status=200)
        sent = await reason(f"at={position}")
        assert (sent["delivery"], sent["attempts"]) == ("sent", 1)
        await broker.ask("POST", "/subscribers/ann/done", {"never": [position], "reason": "broken"}, status=204)
        dead = await reason(f"at={position}")
        assert (dead["delivery"], dead["reason"]) == ("dead", "broken")
        await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=201, data="price < 15")
        cheap = (await broker.publish({"price": 2}))["position"]
        await broker.ask("POST", "/subscribers/ann/take", {"most": 5}, status=200)
        await broker.ask("POST", "/subscribers/ann/done", {"done": [cheap]}, status=204)
        assert (await reason(f"at={cheap}"))["delivery"] == "done"
        await broker.ask("GET", "/subscribers/ann/why?id=8&source=/shop", status=404)
        await broker.ask("GET", "/subscribers/ann/why?id=8", status=400)
        await broker.ask("GET", f"/subscribers/nobody/why?at={cheap}", status=404)


@eventually
async def test_acceptance_11_try_explain_and_why_never_show_another_region(tmp_path):
    roles = {"eu": Role(receive="region = 'EU'"), "admin": Role(admin=True)}
    async with running(tmp_path, roles=roles) as broker:
        ann, root = (token(broker, *who) for who in (("ann", "eu"), ("root", "admin")))
        events = [{"price": price, "region": region} for price in range(5) for region in ("EU", "US")]
        _, published = await broker.ask("POST", "/events", events, status=200, headers=root)
        await broker.ask("PUT", "/subscribers/ann/subscriptions/all", status=201, data="TRUE", headers=ann)
        await broker.ask("POST", "/events", events, status=200, headers=root)
        _, answer = await broker.ask("POST", "/try", {"where": "price >= 0", "from": "first"}, headers=ann, status=200)
        assert (answer["seen"], answer["matched"]) == (10, 10)
        assert answer["effective"] == "price >= 0 AND region = 'EU'"
        shown = answer["examples"] + answer["near_misses"]
        assert shown and all(each["event"]["data"]["region"] == "EU" for each in shown)
        european, american = published["positions"][:2]
        body = {"where": "region = 'EU'", "at": american}
        _, hidden = await broker.ask("POST", "/explain", body, headers=ann, status=404)
        _, absent = await broker.ask("GET", f"/subscribers/ann/why?at={american}", headers=ann, status=404)
        assert "US" not in str(hidden) + str(absent)
        await broker.ask("POST", "/explain", body | {"at": european}, headers=ann, status=200)
        await broker.ask("POST", "/explain", body, headers=root, status=200)
        _, seen = await broker.ask("GET", f"/subscribers/ann/why?at={american}", headers=root, status=200)
        assert seen["delivery"] == "none"


def token(broker, name, role):
    """Return the header of a principal with a role."""
    return {"Authorization": f"Bearer {broker.tokens.create(name, (role,))}"}
