"""The page in a real browser, and the module for JavaScript in the browser and in Node, each with a real broker.

Chromium and its driver come from the distribution (`apt-get install chromium chromium-driver`), Node too; where they are
missing, these tests are skipped and say so.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import subprocess
import threading
import time
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest

import tamis
from tamis.service.links.server import LinkServer
from tamis.service.settings import LinkListener
from tests.service.http.brokers import eventually
from tests.service.http.brokers import running as running_here
from tests.service.processes import BrokerProcess

PAGE = Path(tamis.__file__).parent / "service" / "page"
PATIENCE_S = 60


@pytest.fixture(scope="module")
def broker(forge, tmp_path_factory):
    with BrokerProcess(forge, tmp_path_factory.mktemp("page") / "data") as running:
        yield running


@contextmanager
def browser(width=1300, height=1500, dark=False):
    """Start a browser without a window; end it at the end."""
    webdriver = pytest.importorskip("selenium.webdriver")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("there is no Chromium with its driver; on Debian: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--window-size={width},{height}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        if dark:
            scheme = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
            window.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
        yield window
    finally:
        window.quit()


TEXTS = "return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)"


def clicked(window, selector):
    window.execute_script("document.querySelector(arguments[0]).click()", selector)


def shown(window, selector, text=""):
    """Wait until an element has a text; return what it has."""
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        # In one step: the page makes its tables anew all the time.
        texts = window.execute_script(TEXTS, selector)
        if any(each and text in each for each in texts):
            return next(each for each in texts if each and text in each)
        time.sleep(0.05)
    raise AssertionError(f"{selector} does not show {text!r}, but {texts}")


def written(window, text):
    box = window.find_element("id", "where")
    box.clear()
    box.send_keys(text)


def test_a_person_sees_a_broker_at_work(broker):
    with tamis.Client(broker.url) as client, browser() as window:
        with client.subscribe({"cheap": "price < 20", "free": "price = 0"}, name="ann"):
            pass
        window.get(broker.url)
        shown(window, "#about", "identity")
        written(window, "price <")
        assert "^" in shown(window, "#verdict.bad", "end of the text")
        written(window, "price<20 AND NOT sold")
        shown(window, "#verdict.good", "price < 20 AND NOT sold")
        clicked(window, "#watch")
        wait_for_passing(client, 1)
        client.publish({"price": 12, "sold": False, "title": "<img src=x onerror=alert(1)>"}, type="offer")
        client.publish({"price": 30, "sold": False}, type="dear")
        assert "<img" in shown(window, "#events li", "offer"), "what strangers write is a text"
        clicked(window, "#events li")
        assert "✓ price < 20" in shown(window, "#explanation", "AND")
        clicked(window, "#try")
        assert "1 of 2 events" in shown(window, "#trial", "match")
        assert "ann/cheap" in shown(window, "#trial", "matches all of it")
        assert "30" in shown(window, "#trial", "Only just not")
        shown(window, "#unwanted td", "dear")
        shown(window, "#subscribers td", "ann")
        shown(window, "#subscriptions td", "cheap")
        [delivery] = client.take("ann", wait_s=30)
        delivery.never("sold already")
        shown(window, "#dead td", "sold already")
        with client.subscribe({"cheap": "price < 20", "free": "price = 0"}, name="ann") as deliveries:
            clicked(window, "#dead button")
            again = next(iter(deliveries))
            again.done()
        shown(window, "#dead", "There are none.")
        refused = [entry for entry in window.get_log("browser") if "/check" not in entry["message"]]
        assert refused == [], "nothing that the policy forbids, and no mistake of the script"


@pytest.mark.parametrize(("width", "dark"), [(1300, True), (420, False)], ids=["wide and dark", "narrow"])
def test_nothing_is_cut_off(broker, width, dark):
    with browser(width, 900, dark) as window:
        window.get(broker.url)
        shown(window, "#about", "identity")
        assert window.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        background = window.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, background[4:-1].split(", "))) < 200) == dark


def wait_for_passing(client, count):
    """Wait until so many passing subscribers listen with another filter than that for what nobody wants."""
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        if int(float(figure(client, 'tamis_subscribers{state="live"}'))) > count:
            return
        time.sleep(0.05)
    raise AssertionError("nobody listens")


def figure(client, name):
    return next((line.rpartition(" ")[2] for line in client.metrics().splitlines() if line.startswith(name)), "0")


# -- The module for JavaScript

USED = """
const client = new Client(url);
const positions = await client.publishMany([{ price: 30 }, { price: 12 }, { price: 7 }], { type: "offer" });
const events = client.subscribe("price < 20", { name: NAME, since: positions[0] });
const seen = [];
for await (const event of events) {
  seen.push([event.data.price, event.keys[0], event.isAgain]);
  if (seen.length === 1) event.again();
  else event.done();
  if (seen.length === 3) break;
}
const problem = await client.check("price <").catch((error) => error.problem.where);
const refused = await client.subscribe("price <", { name: NAME + "2" }).next().catch((error) => error.status);
const trial = await client.tryFilter("price < 10", { since: positions[0] });
const past = [];
for await (const line of client.read("price > 10", { since: positions[0] })) past.push(line.event.data.price);
const matches = await client.match({ price: 1 });
const answer = {
  positions: positions.length, seen, problem, refused, matched: trial.matched, past,
  explained: (await client.explain("price < 20", { price: 5 })).matches,
  why: (await client.why(NAME, positions[0])).delivery,
  wanted: matches.some((each) => each.subscriber === NAME),
};
"""
EXPECTED = {
    "positions": 3,
    "seen": [[12, "default", False], [7, "default", False], [12, "default", True]],
    "problem": {"line": 1, "column": 8},
    "refused": 400,
    "matched": 1,
    "past": [30, 12],
    "explained": True,
    "why": "none",
    "wanted": True,
}


TOLD = """
const client = new Client(url);
const events = client.subscribe({
  best: "TOP 1 BY price OVER 1 HOUR",
  pair: "SEQUENCE kind = 'order' THEN kind = 'payment' WITHIN 1 HOUR PER shop",
  high: "CHANGE OF price > 20",
}, { name: NAME });
const { remembering } = await events.ready;
const positions = [];
for (const offer of [
  { price: 10, kind: "order" }, { price: 30 }, { price: 15, kind: "payment" },
]) positions.push(await client.publish({ ...offer, shop: NAME }));
const answer = { remembering: remembering.sort(), told: [] };
for await (const event of events) {
  for (const each of event.told) {
    answer.told.push([
      each.key, each.kind, each.change ?? null, each.rank ?? null, (each.run ?? []).map((at) => positions.indexOf(at)),
      (each.events ?? []).map((inside) => inside.data.price), Number.isNaN(Date.parse(each.at)),
    ]);
  }
  event.done();
  if (event.at === positions[2]) break;
}
"""
EXPECTED_TOLD = {
    "remembering": ["best", "high", "pair"],
    "told": [
        ["best", "ranked", None, 1, [], [], False],
        ["high", "change", True, None, [], [], False],
        ["high", "change", False, None, [], [], False],
        ["pair", "sequence", None, None, [0, 2], [10, 15], False],
    ],
}


def test_the_module_is_told_why_in_a_browser(broker):
    with browser() as window:
        window.get(broker.url)
        window.set_script_timeout(PATIENCE_S)
        script = (
            "const [url, NAME, finish] = arguments;"
            "import('/tamis.js').then(async ({ Client }) => {" + TOLD + "return answer; })"
            ".then(finish, (error) => finish(String(error.stack)));"
        )
        assert window.execute_async_script(script, broker.url, "told-in-a-browser") == EXPECTED_TOLD


def test_the_module_is_told_why_in_node(broker):
    script = f"""
import {{ Client }} from "{PAGE.as_uri()}/tamis.js";
const [url, NAME] = ["{broker.url}", "told-in-node"];
{TOLD}
console.log(JSON.stringify(answer));
process.exit(0);
"""
    process = node(script)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert json.loads(out) == EXPECTED_TOLD


def test_the_module_works_in_a_browser(broker):
    with browser() as window:
        window.get(broker.url)
        window.set_script_timeout(PATIENCE_S)
        script = (
            "const [url, NAME, finish] = arguments;"
            "import('/tamis.js').then(async ({ Client }) => {" + USED + "return answer; })"
            ".then(finish, (error) => finish(String(error.stack)));"
        )
        answer = window.execute_async_script(script, broker.url, "from-a-browser")
        assert as_sorted(answer) == as_sorted(EXPECTED)


def as_sorted(answer):
    """What comes again at once may come before the next event."""
    return answer | {"seen": sorted(map(str, answer["seen"]))} if isinstance(answer, dict) else answer


def node(script, *arguments):
    """Run a script in Node, with the WebSocket that version 20 has only if asked."""
    program = shutil.which("node")
    if not program:
        pytest.skip("there is no Node; on Debian: apt-get install nodejs")
    options = [] if has_web_socket(program) else ["--experimental-websocket", "--no-warnings"]
    if options and not has_web_socket(program, *options):
        pytest.skip("this Node has no WebSocket: it needs version 22, or 20.10 with --experimental-websocket")
    command = [program, *options, "--input-type=module", "-e", script, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def has_web_socket(program, *options):
    command = [program, *options, "-e", "process.exit(typeof WebSocket === 'function' ? 0 : 1)"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_the_module_works_in_node(broker):
    script = f"""
import {{ Client }} from "{PAGE.as_uri()}/tamis.js";
const [url, NAME] = ["{broker.url}", "from-node"];
{USED}
console.log(JSON.stringify(answer));
process.exit(0);
"""
    process = node(script)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert as_sorted(json.loads(out)) == as_sorted(EXPECTED)


def test_the_module_goes_on_after_a_kill_and_publishes_each_event_once(forge, tmp_path):
    script = f"""
import {{ Client }} from "{PAGE.as_uri()}/tamis.js";
const url = process.argv[1];
const client = new Client(url);
const events = client.subscribe("n IS NOT NULL", {{ name: "node" }});
await events.ready;
console.log("ready");
const publishing = (async () => {{
  for (let n = 0; n < 60; n++) {{
    await client.publish({{ n }});
    await new Promise((resolve) => setTimeout(resolve, 20));
  }}
}})();
const seen = [];
for await (const event of events) {{
  seen.push(event.data.n);
  event.done();
  if (seen.length === 10) console.log("some");
  if (new Set(seen).size === 60) break;
}}
await publishing;
let count = 0;
for await (const line of client.read("n IS NOT NULL")) count += 1;
console.log(`${{new Set(seen).size}} ${{count}} ${{seen.length}}`);
process.exit(0);
"""
    with BrokerProcess(forge, tmp_path / "data") as broker:
        process = node(script, broker.url)
        watch = threading.Timer(2 * PATIENCE_S, process.kill)
        watch.start()
        try:
            assert process.stdout.readline().strip() == "ready"
            assert process.stdout.readline().strip() == "some"
            broker.end(signal.SIGKILL)
            broker.start()
            different, kept, seen = process.stdout.readline().split() or pytest.fail(process.stderr.read())
            assert (different, kept) == ("60", "60"), "nothing is lost, and nothing is taken twice"
            assert int(seen) == 60, "nothing is handed to the program twice while it runs"
        finally:
            watch.cancel()
            process.kill()
            process.communicate()


@eventually
async def test_the_graph_shows_the_rates_of_links_of_others(tmp_path, monkeypatch):
    monkeypatch.setitem(LinkServer.__init__.__kwdefaults__, "ping_s", 0.2)
    settings = {"link_listeners": (LinkListener(port=0),), "link_secret": "a secret of twenty bytes"}
    async with AsyncExitStack() as stack:
        brokers, called = {}, ()
        for name in ("rome", "milan", "turin"):
            brokers[name] = await stack.enter_async_context(
                running_here(tmp_path / name, name=name, neighbours=called, **settings)
            )
            called = (brokers[name].service.links.addresses[0],)
        path = "/subscribers/ann/subscriptions/all?settle=5s"
        await brokers["turin"].ask("PUT", path, status=201, data="price < 20")

        async def publish():
            while True:
                await brokers["milan"].publish({"price": 1})
                await asyncio.sleep(0.05)

        publishing = asyncio.create_task(publish())
        try:
            titles = await asyncio.to_thread(titles_of_the_graph, brokers["rome"].url)
        finally:
            publishing.cancel()
        assert re.search(r"milan → turin: [1-9][\d.,]*/s, turin → milan: 0/s", titles), titles
        assert "rome → " not in titles, "the links of the broker itself say more"


def titles_of_the_graph(url):
    """Wait until the page draws a rate of others, and return what it says of each of their links."""
    script = "return [...document.querySelectorAll('#network text title')].map((each) => each.textContent).join('; ')"
    with browser() as window:
        window.get(url)
        ends = time.monotonic() + PATIENCE_S
        while not re.search(r"→ turin: [1-9]", titles := window.execute_script(script)) and time.monotonic() < ends:
            time.sleep(0.1)
        return titles
