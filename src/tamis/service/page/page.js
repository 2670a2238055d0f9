// What does a person see of a broker? The page: figures as they change, a filter that is checked while it is typed, the
// events that match it, who takes them, the network, what nobody wants, and dead letters.
//
// All texts come from strangers: they are put into the page as text, never as HTML.

import { Client, TamisError } from "./tamis.js";

const byId = (id) => document.getElementById(id);
const client = new Client(location.origin, { token: sessionStorage.getItem("tamis-token") ?? "" });

const KEPT_EVENTS = 200;
const KEPT_LOOKS = 60;
const LOOK_MS = 2_000;
const TYPING_MS = 250;
const AGAIN_MS = 2_000;

// -- Small things

/** Make an element, with attributes and children; texts are texts. */
function made(name, attributes = {}, ...children) {
  const isDrawing = ["svg", "line", "circle", "text", "rect", "polyline", "title"].includes(name);
  const element = isDrawing ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const number = (value) => (value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toPrecision(2));
const share = (value) => (value === null ? "–" : value === 0 ? "0 %" : value < 0.001 ? "< 0.1 %" : `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`);
const seconds = (value) => (value === null ? "–" : value < 0.001 ? `${Math.round(value * 1e6)} µs` : value < 1 ? `${number(value * 1e3)} ms` : span(value));
const bytes = (value) => (value >= 1e9 ? `${(value / 1e9).toFixed(1)} GB` : `${Math.round(value / 1e6)} MB`);

/** A length of time, in words that people read at a glance. */
function span(value) {
  for (const [unit, length] of [["d", 86_400], ["h", 3_600], ["min", 60]]) if (value >= length) return `${number(Math.floor(value / length))} ${unit}`;
  return `${Math.floor(value)} s`;
}

/** Show a table, or a word where there is nothing. A column is [title, value of a row, class]. */
function showTable(place, columns, rows, nothing) {
  const numeric = (kind) => (kind === "number" ? { class: "number" } : {});
  const cell = (row, [, value, kind]) => {
    const content = value(row);
    const style = typeof kind === "function" ? { class: kind(row) } : numeric(kind);
    return made("td", style, ...(Array.isArray(content) ? content : [content]));
  };
  place.replaceChildren(
    rows.length
      ? made(
          "table",
          {},
          made("thead", {}, made("tr", {}, ...columns.map(([title, , kind]) => made("th", numeric(kind), title)))),
          made("tbody", {}, ...rows.map((row) => made("tr", {}, ...columns.map((column) => cell(row, column))))),
        )
      : made("p", { class: "none" }, nothing),
  );
}

/** Keep the names that one may choose from, and the choice. */
function showChoice(select, names) {
  const chosen = select.value;
  if ([...select.options].map((option) => option.value).join("\n") !== names.join("\n")) {
    select.replaceChildren(...names.map((name) => made("option", { value: name }, name)));
    if (names.includes(chosen)) select.value = chosen;
  }
  select.hidden = !names.length;
}

function alarm(text) {
  byId("alarm").hidden = !text;
  byId("alarm").textContent = text;
}

function failed(error) {
  if (error instanceof TamisError && error.status === 401) {
    byId("login").hidden = false;
    alarm(client.token ? `This token is refused: ${error.message}` : "This broker asks for a token.");
  } else if (error.name !== "AbortError") alarm(error instanceof TamisError ? error.message : "The broker does not answer; trying again.");
}

/** Do something again and again, as long as the page is there. */
async function forever(work, pause_ms) {
  for (;;) {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof TamisError && [403, 404].includes(error.status))) failed(error);
    }
    await new Promise((resolve) => setTimeout(resolve, pause_ms));
  }
}

// -- Figures

const looks = [];

function rate(read, index = looks.length - 1) {
  if (index < 1) return 0;
  const [before, now] = [looks[index - 1], looks[index]];
  return Math.max(0, (read(now) - read(before)) / Math.max(0.001, (Date.parse(now.time) - Date.parse(before.time)) / 1000));
}

function curve(read) {
  const values = looks.map((_, index) => rate(read, index)).slice(1);
  const most = Math.max(1, ...values);
  const points = values.map((value, index) => `${(100 * index) / Math.max(1, KEPT_LOOKS - 2)},${30 - (28 * value) / most}`);
  return made("svg", { viewBox: "0 0 100 32", preserveAspectRatio: "none", "aria-hidden": "true" }, made("polyline", { points: points.join(" ") }));
}

function showFigures(look) {
  looks.push(look);
  if (looks.length > KEPT_LOOKS) looks.shift();
  byId("broker").textContent = look.broker;
  document.title = `${look.broker} · Tamis`;
  byId("about").textContent = `Tamis ${look.version} · up ${span(look.uptime_s)} · ${look.at} · ${look.strategy}`;
  byId("dot").className = `dot ${look.ready ? "good" : "bad"}`;
  const { delays } = look;
  const wrong = [
    !look.ready && `The broker is not ready: ${look.why_not}.`,
    look.insecure && "Anybody may reach this broker: it was started with --insecure, without TLS or without roles.",
    !look.durable && "What is acknowledged is not on disk: the broker keeps everything in memory.",
  ].filter(Boolean);
  alarm(wrong.join(" "));
  const taken = (each) => each.events.taken;
  const sent = (each) => each.deliveries.sent;
  const figures = [
    ["events in, a second", number(rate(taken)), curve(taken)],
    ["deliveries, a second", number(rate(sent)), curve(sent)],
    ["publish to deliver, p50 at most", seconds(delays.publish_to_deliver.p50_s)],
    ["publish to deliver, p99 at most", seconds(delays.publish_to_deliver.p99_s)],
    ["disk, p99 at most", seconds(delays.disk.p99_s)],
    ["subscriptions", number(look.subscriptions)],
    ["subscribers live, behind, far", ["live", "behind", "far"].map((state) => number(look.subscribers[state])).join(" · ")],
    ["connections", number(look.connections)],
    ["refused, dead", `${number(look.events.refused)} · ${number(look.deliveries.dead)}`],
    ["memory", look.memory_bytes ? bytes(look.memory_bytes) : "–"],
  ];
  byId("figures").hidden = false;
  byId("figures").replaceChildren(
    ...figures.map(([name, value, drawing]) =>
      made("div", { class: "figure" }, made("div", { class: "value" }, value), made("div", { class: "name" }, name), drawing),
    ),
  );
}

async function watchFigures() {
  for await (const look of client.stream("/overview", {})) showFigures(look);
}

// -- The filter, and what it matches

let watching = new AbortController();
let watched = "";
let checks = 0;

async function check() {
  const text = byId("where").value;
  const asked = ++checks;
  try {
    const checked = await client.check(text);
    if (asked !== checks) return false; // a later one was asked
    showVerdict(checked.effective === checked.text ? checked.text : `${checked.text}\nwithin what you may receive: ${checked.effective}`, "good");
    return true;
  } catch (error) {
    if (asked !== checks) return false;
    const { caret = "", hint = "" } = error.problem ?? {};
    showVerdict([caret, error.message, hint].filter(Boolean).join("\n"), "bad");
    return false;
  }
}

function showVerdict(text, kind) {
  byId("verdict").textContent = text;
  byId("verdict").className = `verdict ${kind}`;
  byId("where").className = kind;
}

async function watch() {
  if (!(await check())) return;
  watching.abort();
  watching = new AbortController();
  watched = byId("where").value;
  byId("events").replaceChildren();
  const { signal } = watching;
  while (!signal.aborted) {
    try {
      for await (const line of client.listen(watched, { signal })) if (line.event) showEvent(line);
    } catch (error) {
      if (signal.aborted) return;
      failed(error);
      if (error instanceof TamisError && error.status < 500 && error.status !== 429) return;
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

function showEvent({ at, event }) {
  const row = made(
    "li",
    { tabindex: "0" },
    made("span", { class: "at" }, at),
    made("span", { class: "type" }, event.type),
    made("span", {}, JSON.stringify(event.data)),
  );
  const choose = () => explain(row, at);
  row.addEventListener("click", choose);
  row.addEventListener("keydown", ({ key }) => key === "Enter" && choose());
  byId("events").prepend(row);
  while (byId("events").childElementCount > KEPT_EVENTS) byId("events").lastElementChild.remove();
}

async function explain(row, at) {
  for (const other of byId("events").children) other.classList.toggle("chosen", other === row);
  try {
    const answer = await client.explain(byId("where").value || "TRUE", undefined, { at });
    byId("explanation").replaceChildren(...coloured(answer.text));
  } catch (error) {
    byId("explanation").textContent = error.message;
  }
}

/** The lines of an explanation, each in the colour of its truth. */
function coloured(text) {
  const kinds = { "✓": "true", "✗": "false", "?": "unknown" };
  return text.split("\n").flatMap((line) => {
    const mark = line.match(/[✓✗?]/)?.[0];
    return [made("span", { class: kinds[mark] ?? "" }, line), "\n"];
  });
}

async function tryIt() {
  if (!(await check())) return;
  const place = byId("trial");
  place.hidden = false;
  place.replaceChildren(made("p", { class: "quiet" }, "Reading the last hour …"));
  try {
    place.replaceChildren(...trialParts(await client.tryFilter(byId("where").value)));
  } catch (error) {
    place.replaceChildren(made("p", {}, error.message));
  }
}

function trialParts(trial) {
  const parts = [
    made("p", {}, made("strong", {}, `${number(trial.matched)} of ${number(trial.seen)} events of the last hour match`), trial.share === null ? "" : ` (${share(trial.share)})`),
  ];
  if (!trial.complete) parts.push(made("p", { class: "quiet" }, `Only up to ${trial.through}: there was more than two seconds' worth.`));
  if (trial.spans.length > 1) parts.push(bars(trial));
  for (const [relation, words] of [["same", "says the same"], ["covered_by", "matches all of it"], ["covers", "is part of it"]])
    for (const own of trial[relation]) parts.push(made("p", { class: "quiet" }, `Your subscription ${own.subscriber}/${own.key} ${words}: ${own.text}`));
  for (const [title, samples] of [["The latest that match", trial.examples.toReversed()], ["Only just not", trial.near_misses]]) {
    if (!samples.length) continue;
    parts.push(made("h3", {}, title));
    for (const sample of samples) {
      const text = `${sample.at} ${sample.event.type} ${JSON.stringify(sample.event.data)}`;
      parts.push(made("pre", { class: "sample", title: text }, text));
      if (sample.why) parts.push(made("pre", { class: "explanation" }, ...coloured(sample.why)));
    }
  }
  return parts;
}

function bars({ spans, span_s }) {
  const most = Math.max(1, ...spans.map((each) => each.seen));
  const width = 100 / spans.length;
  const bar = (index, count, kind) =>
    made("rect", { class: kind, x: index * width, width: Math.max(0.2, width * 0.85), y: 40 - (40 * count) / most, height: (40 * count) / most });
  const drawing = made("svg", { class: "bars", viewBox: "0 0 100 40", preserveAspectRatio: "none" }, made("title", {}, `Events in spans of ${span(span_s)}: seen, and matched`));
  spans.forEach((each, index) => drawing.append(bar(index, each.seen, "seen"), bar(index, each.matched, "matched")));
  return drawing;
}

// -- Subscribers, subscriptions, dead letters

async function watchSubscribers() {
  const { subscribers, at } = await client.ask("GET", "/subscribers?lag=true");
  const head = at ? Number(at.split("-").at(-1)) : 0;
  const lag = (each) => Math.max(0, head - Number(each.done_through.split("-").at(-1).split(".").at(-1)));
  const since = (each) => (each.waiting_since && lag(each) ? span(Math.max(0, (Date.now() - Date.parse(each.waiting_since)) / 1000)) : "");
  const durable = subscribers.filter((each) => each.durable);
  showTable(
    byId("subscribers"),
    [
      ["name", (each) => (each.durable ? each.name : `${each.owner}, while connected`)],
      ["state", (each) => each.state, (each) => each.state],
      ["behind", (each) => (each.durable && lag(each) ? `${number(lag(each))}${since(each) && ` (${since(each)})`}` : ""), "number"],
      ["not done", (each) => number(each.unacknowledged), "number"],
      ["dead", (each) => number(each.dead), "number"],
      ["consumers", (each) => number(each.consumers), "number"],
      ["webhook", (each) => (each.webhook ? made("span", { title: each.webhook.reason }, each.webhook.state) : "")],
    ],
    subscribers,
    "Nobody has subscribed yet: tamis subscribe \"price < 20\" --as ann",
  );
  showChoice(byId("whose"), subscribers.filter((each) => each.durable && Object.keys(each.subscriptions).length).map((each) => each.name));
  showChoice(byId("buried"), durable.filter((each) => each.dead).map((each) => each.name));
}

async function watchSubscriptions() {
  const name = byId("whose").value;
  if (!name) return showTable(byId("subscriptions"), [], [], "There are none.");
  const path = `/subscribers/${encodeURIComponent(name)}`;
  const [facts, shares] = await Promise.all([client.ask("GET", path), client.ask("GET", `${path}/shares?from=-10m`)]);
  if (byId("whose").value !== name) return;
  const rows = Object.entries(facts.subscriptions).map(([key, known]) => ({ key, ...known, ...shares.subscriptions[key] }));
  rows.sort((one, other) => (other.matched ?? 0) - (one.matched ?? 0));
  showTable(
    byId("subscriptions"),
    [
      ["key", (each) => each.key],
      ["condition", (each) => made("code", {}, each.text)],
      ["matches/s", (each) => (each.per_s === undefined ? "–" : number(each.per_s)), "number"],
      ["share", (each) => (each.share === undefined ? "–" : share(each.share)), "number"],
      ["covered by", (each) => (each.covered_by ?? []).join(", ")],
    ],
    rows,
    "There are none.",
  );
}

async function watchDead() {
  const name = byId("buried").value;
  if (!name) return showTable(byId("dead"), [], [], "There are none.");
  const path = `/subscribers/${encodeURIComponent(name)}/dead`;
  const { dead } = await client.ask("GET", path);
  const again = (letter) => async () => {
    try {
      await client.ask("POST", `${path}/again`, { at: [letter.at] });
      await watchDead();
    } catch (error) {
      alarm(error.message);
    }
  };
  showTable(
    byId("dead"),
    [
      ["position", (letter) => letter.at],
      ["event", (letter) => made("code", {}, JSON.stringify(letter.event.data))],
      ["reason", (letter) => letter.reason],
      ["deliveries", (letter) => number(letter.attempts), "number"],
      ["", (letter) => made("button", { onclick: again(letter) }, "again")],
    ],
    dead,
    "There are none.",
  );
}

// -- The network

let linksBefore;

async function watchNetwork() {
  const described = await client.ask("GET", "/links");
  const now = { time: Date.now(), links: Object.fromEntries(described.links.map((link) => [link.name, link])) };
  const before = linksBefore ?? now;
  linksBefore = now;
  const elapsed_s = Math.max(0.001, (now.time - before.time) / 1000);
  const perSecond = (link, name) => Math.max(0, ((link[name] ?? 0) - (before.links[link.name]?.[name] ?? link[name] ?? 0)) / elapsed_s);
  byId("network-part").hidden = !described.links.length;
  if (!described.links.length) return;
  byId("network").replaceChildren(graph(described, perSecond));
  showTable(
    byId("links"),
    [
      ["link", (link) => link.name || link.url],
      ["state", (link) => link.state, (link) => link.state],
      ["sent/s", (link) => number(perSecond(link, "sent")), "number"],
      ["received/s", (link) => number(perSecond(link, "received")), "number"],
      ["on its way", (link) => number(link.unacknowledged ?? 0), "number"],
      ["filters told", (link) => number(link.told ?? 0), "number"],
      ["it wants", (link) => number(link.wants ?? 0), "number"],
      ["settled", (link) => (link.settled === undefined ? "" : link.settled ? "yes" : "no")],
    ],
    described.links,
    "",
  );
}

/**
 * This broker in the middle, its neighbours around it, and behind each the brokers that are reached through it. Links of
 * others are drawn where their brokers tell of them; of those that do not, all that is known is the neighbour.
 */
function graph({ broker, links, elsewhere = [] }, perSecond) {
  const drawing = made("svg", { role: "img" }, made("title", {}, `The network as ${broker} sees it`));
  let highest = 20;
  const lines = [];
  const nodes = [];
  const places = new Map();
  const nearest = new Map(); // of a broker beyond: where its neighbour stands
  const place = (x, y, name, kind) => {
    highest = Math.max(highest, Math.abs(y));
    places.set(name, [x, y]);
    nodes.push(made("circle", { cx: x, cy: y, r: kind === "here" ? 11 : 8, class: kind }), made("text", { x, y: y - 15 }, name));
  };
  links.forEach((link, index) => {
    const angle = (2 * Math.PI * index) / links.length;
    const [x, y] = [130 * Math.cos(angle), 78 * Math.sin(angle)];
    const isUp = ["live", "behind", "joining", "leaving"].includes(link.state);
    lines.push(made("line", { x1: 0, y1: 0, x2: x, y2: y, class: link.state === "idle" ? "idle" : isUp ? "" : "away" }));
    const rates = `↑ ${number(perSecond(link, "sent"))}/s  ↓ ${number(perSecond(link, "received"))}/s`;
    nodes.push(made("text", { x: x / 2, y: y / 2 + 13, class: "rate" }, rates));
    const beyond = (link.behind ?? []).filter((name) => name !== link.name);
    beyond.forEach((name, number) => {
      const spread = angle + (number - (beyond.length - 1) / 2) * (1.1 / Math.max(beyond.length, 2));
      const [farX, farY] = [225 * Math.cos(spread), 128 * Math.sin(spread)];
      nearest.set(name, [x, y]);
      place(farX, farY, name, "beyond");
    });
    place(x, y, link.name || link.url, "");
  });
  place(0, 0, broker, "here");
  for (const [[one, other], rates] of linksElsewhere(broker, elsewhere, places)) {
    const [[x1, y1], [x2, y2]] = [places.get(one), places.get(other)];
    const details = made("title", {}, `${one} → ${other}: ${number(rates[0])}/s, ${other} → ${one}: ${number(rates[1])}/s`);
    lines.push(made("line", { x1, y1, x2, y2, class: "beyond" }));
    nodes.push(made("text", { x: (x1 + x2) / 2, y: (y1 + y2) / 2 + 4, class: "rate" }, `${number(rates[0] + rates[1])}/s`, details));
    nearest.delete(one);
    nearest.delete(other);
  }
  for (const [name, [x1, y1]] of nearest) {
    const [x2, y2] = places.get(name);
    lines.push(made("line", { x1, y1, x2, y2, class: "beyond" }));
  }
  drawing.setAttribute("viewBox", `-270 ${-highest - 35} 540 ${2 * highest + 60}`);
  drawing.append(...lines, ...nodes);
  return drawing;
}

/** The links between others that are drawn, as both their brokers, and the events a second each way. */
function linksElsewhere(here, elsewhere, places) {
  const known = new Map();
  for (const report of elsewhere)
    for (const link of report.links) {
      const pair = [report.broker, link.name];
      if (pair.includes(here) || !pair.every((name) => places.has(name))) continue;
      const isTurned = pair[0] > pair[1];
      const rates = isTurned ? [link.received_per_s, link.sent_per_s] : [link.sent_per_s, link.received_per_s];
      known.set(JSON.stringify(pair.toSorted()), [pair.toSorted(), rates]); // both ends tell of it: the last one counts
    }
  return known.values();
}

// -- What nobody wants

const unwanted = new Map();

function showUnwanted() {
  const rows = [...unwanted].map(([type, facts]) => ({ type, ...facts })).sort((one, other) => other.count - one.count);
  showTable(
    byId("unwanted"),
    [
      ["type", (each) => each.type],
      ["events", (each) => number(each.count), "number"],
      ["the latest", (each) => made("code", {}, each.latest)],
    ],
    rows,
    "Nothing since this page was opened. What this page watches is wanted by it.",
  );
}

async function watchUnwanted() {
  for await (const line of client.listen("unwanted")) {
    if (!line.event) continue;
    const before = unwanted.get(line.event.type)?.count ?? 0;
    unwanted.set(line.event.type, { count: before + 1, latest: JSON.stringify(line.event.data) });
  }
}

// -- Begin

let typing;
byId("where").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(check, TYPING_MS);
});
byId("filter").addEventListener("submit", (event) => {
  event.preventDefault();
  watch();
});
byId("try").addEventListener("click", tryIt);
byId("whose").addEventListener("change", watchSubscriptions);
byId("buried").addEventListener("change", watchDead);
byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("tamis-token", byId("token").value.trim());
  location.reload();
});

byId("broker").textContent = location.host;
check();
forever(watchFigures, AGAIN_MS);
forever(watchSubscribers, LOOK_MS);
forever(watchSubscriptions, 2 * LOOK_MS);
forever(watchDead, 2 * LOOK_MS);
forever(watchNetwork, LOOK_MS);
forever(watchUnwanted, AGAIN_MS);
setInterval(showUnwanted, LOOK_MS);
showUnwanted();
