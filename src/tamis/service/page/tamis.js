/**
 * How does a browser or Node talk to a broker? The client as one ES module, without dependencies.
 *
 *     import { Client } from "http://localhost:7410/tamis.js";
 *     const client = new Client("http://localhost:7410");
 *     await client.publish({ price: 12 }, { type: "auction" });
 *     for await (const event of client.subscribe("price < 20", { name: "ann", since: "-1h" })) {
 *       console.log(event.data);
 *       event.done();
 *     }
 *
 * Publications are requests, sent again under the same ids until they are acknowledged. Each subscription has a
 * WebSocket, which is opened again when it breaks, and goes on where it was. Node needs version 22, or a WebSocket of
 * your own: new Client(url, { WebSocket }).
 *
 * Whole numbers beyond 2 ** 53 lose digits in JSON.parse; publish them as texts.
 */

/** What a broker refuses, as the problem document says it. */
export class TamisError extends Error {
  constructor(problem, status = 0) {
    super([problem.detail || problem.title, problem.expected && `expected ${problem.expected}`].filter(Boolean).join("; "));
    this.name = "TamisError";
    this.status = problem.status ?? status;
    /** With `where` (line and column) and `caret`, if it is about a text. */
    this.problem = problem;
  }
}

const FIRST_PAUSE_S = 0.1;
const LONGEST_PAUSE_S = 30;
const PASSING_ERRORS = new Set([429, 503]);
const FINAL_ERRORS = new Set([400, 401, 403, 404, 409, 410, 413]);

/** An event for a subscription. */
export class Delivery {
  constructor(message, subscription) {
    this.at = message.at;
    this.keys = message.for ?? [];
    /** Whether it may have been delivered before. */
    this.isAgain = message.again ?? false;
    /** What those subscriptions say of it that remember earlier events: key, kind, at, and change, rank, or run and events. */
    this.told = message.told ?? [];
    this.event = message.event;
    this._subscription = subscription;
  }

  get data() {
    return this.event.data;
  }

  /** Acknowledge it: it does not come again. */
  done() {
    this._subscription._judge(this.at, { done: [this.at] });
  }

  /** Ask for it once more, after so many seconds. */
  again(inS = 0) {
    this._subscription._judge(this.at, { again: [this.at], in_s: inS }, true);
  }

  /** Give it up: it becomes a dead letter. */
  never(reason = "") {
    this._subscription._judge(this.at, { never: [this.at], reason });
  }
}

/** Events as they come, for `for await`. `close` ends it. */
export class Subscription {
  constructor(client, wanted, { name = "", since = "", durable = Boolean(name), credit = 256, onGap } = {}) {
    this._client = client;
    this._wanted = typeof wanted === "string" ? { default: wanted } : wanted;
    this._hello = { ...(name && { as: name }), durable, credit, ...(since && !durable && { past: true }) };
    this._isDurable = durable;
    this._since = since;
    this._onGap = onGap ?? ((gap) => console.warn("tamis: events are missing", gap));
    this._waiting = [];
    this._takers = [];
    /** Positions that were handed out and may come again; what is done leaves it when the broker has room for more. */
    this._seen = new Set();
    this._verdicts = new Map();
    this._pause_s = FIRST_PAUSE_S;
    this._isClosed = false;
    this.ready = new Promise((resolve, reject) => ([this._resolve, this._reject] = [resolve, reject]));
    this.ready.catch(() => {});
    this._open();
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  next() {
    if (this._waiting.length) return Promise.resolve({ value: this._waiting.shift(), done: false });
    if (this._failure) return Promise.reject(this._failure);
    if (this._isClosed) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve, reject) => this._takers.push({ resolve, reject }));
  }

  return() {
    this.close();
    return Promise.resolve({ value: undefined, done: true });
  }

  /** End it. A durable subscriber is remembered. */
  close() {
    this._isClosed = true;
    clearTimeout(this._timer);
    this._socket?.close();
    for (const { resolve } of this._takers.splice(0)) resolve({ value: undefined, done: true });
  }

  _open() {
    const socket = new this._client._WebSocket(`${this._client.url.replace(/^http/, "ws")}/ws`, ["tamis.v1"]);
    this._socket = socket;
    socket.onopen = () => {
      const token = this._client.token;
      this._say({ hello: { ...this._hello, ...(token && { token }) } });
      this._say({ subscribe: this._wanted, ...(this._since && { from: this._since }), id: 1 });
      for (const verdict of this._verdicts.values()) this._say(verdict);
      this._verdicts.clear();
    };
    socket.onmessage = ({ data }) => {
      const messages = JSON.parse(data);
      for (const message of Array.isArray(messages) ? messages : [messages]) this._hear(message);
    };
    // A connection that was refused is closed in browsers; in some versions of Node there is only the error.
    socket.onclose = socket.onerror = () => this._socket === socket && !this._isClosed && this._openLater();
  }

  _openLater(least_s = 0) {
    if (this._timer) return;
    const pause_s = Math.max(least_s, this._pause_s * (0.5 + Math.random()));
    this._pause_s = Math.min(LONGEST_PAUSE_S, this._pause_s * 2);
    this._timer = setTimeout(() => {
      this._timer = undefined;
      if (!this._isClosed) this._open();
    }, pause_s * 1000);
  }

  _hear(message) {
    if (message.events) for (const delivered of message.events) this._take(delivered);
    else if (message.ok === 1) {
      this._pause_s = FIRST_PAUSE_S;
      this._isRemembering = Boolean(message.remembering); // which has no past: it begins anew with every connection
      // The past was asked for; a durable subscriber goes on behind what is done, a passing one behind what it has seen.
      if (this._isDurable || message.remembering) this._since = "";
      else this._since ||= message.since ? behind(message.since) : "";
      this._hello.past ||= !this._isDurable && Boolean(this._since) || undefined;
      this._resolve(message);
    } else if (message.gap) this._onGap(message.gap);
    else if (message.error) this._refused(message.error);
    else if (message.bye !== undefined) {
      this._socket.close();
      this._openLater(message.retry_s ?? 1);
    }
  }

  _take(delivered) {
    if (!this._isDurable && !this._isRemembering) this._since = behind(delivered.at);
    if (this._seen.has(delivered.at)) return;
    this._seen.add(delivered.at);
    if (this._seen.size > 100_000) this._seen.delete(this._seen.values().next().value);
    const delivery = new Delivery(delivered, this);
    const taker = this._takers.shift();
    if (taker) taker.resolve({ value: delivery, done: false });
    else this._waiting.push(delivery);
  }

  _judge(at, verdict, comesAgain = false) {
    if (comesAgain) this._seen.delete(at);
    if (!this._isDurable) return;
    if (this._socket?.readyState === 1) this._say(verdict);
    else this._verdicts.set(at, verdict);
  }

  _say(message) {
    if (this._socket.readyState === 1) this._socket.send(JSON.stringify(message));
  }

  _refused(problem) {
    const error = new TamisError(problem);
    if (!FINAL_ERRORS.has(error.status)) return this._socket.close();
    this._failure = error;
    this._isClosed = true;
    this._socket.close();
    this._reject(error);
    for (const { reject } of this._takers.splice(0)) reject(error);
  }
}

/** A broker, seen from a program. */
export class Client {
  constructor(url = globalThis.location?.origin, { token = "", source = "/js", WebSocket = globalThis.WebSocket } = {}) {
    this.url = url.replace(/\/$/, "");
    this.token = token;
    this.source = source;
    this._WebSocket = WebSocket;
  }

  /** Publish an event; return its position when it is on disk. An event with `specversion` is a CloudEvent. */
  async publish(event, context = {}) {
    return (await this.publishMany([event], context))[0];
  }

  /** Publish events, all of them or none; return their positions. */
  async publishMany(events, { type, source, id, ...context } = {}) {
    const bodies = Array.from(events, (event) =>
      event?.specversion
        ? event
        : {
            specversion: "1.0",
            id: id ?? globalThis.crypto.randomUUID(), // made once, so that however often it is sent, it is one event
            source: source ?? this.source,
            type: type ?? "tamis.event",
            ...context,
            data: event,
          },
    );
    const answer = await this._again("POST", "/events", bodies, "application/cloudevents-batch+json");
    return answer.positions;
  }

  /** Return the events that a text wants, or one of several texts by key, as they come. */
  subscribe(wanted, options = {}) {
    if (!this._WebSocket) throw new TypeError("there is no WebSocket here: Node 22, or new Client(url, { WebSocket })");
    return new Subscription(this, wanted, options);
  }

  /** Yield events of the past that a text wants. */
  async *read(where = "", { since = "", until = "", most = "" } = {}) {
    yield* this.stream("/events", { where, from: since, until, most });
  }

  /** Yield events as they come, for as long as one listens; `signal` ends it. */
  async *listen(where, { since = "", signal } = {}) {
    yield* this.stream("/listen", { where, from: since }, signal);
  }

  /** Return what a text comes to; throw what is wrong with it. */
  check(text) {
    return this.ask("POST", "/check", { where: text });
  }

  /** Return which subscriptions want an event, or each of several. */
  async match(events) {
    return (await this.ask("POST", "/match", events)).matches;
  }

  /** Return what a filter would have matched. */
  tryFilter(where, { since = "-1h", until, name, most } = {}) {
    return this.ask("POST", "/try", { where, from: since, until, as: name, most });
  }

  /** Return whether a filter matches an event, or the one at a position (`{ at }`), and why. */
  explain(where, event, { at } = {}) {
    return this.ask("POST", "/explain", at ? { where, at } : { where, event });
  }

  /** Return whether one filter covers the other, and how they differ. */
  relations(first, second) {
    return this.ask("POST", "/relations", { first, second });
  }

  /** Return why a subscriber got an event, or why not. */
  why(name, at, { source } = {}) {
    return this.ask("GET", `/subscribers/${encodeURIComponent(name)}/why?${new URLSearchParams(source ? { id: at, source } : { at })}`);
  }

  /** Send a request and return the answer; throw a TamisError if it is refused. */
  async ask(method, path, body, type = "application/json") {
    const response = await this._fetch(method, path, body, type);
    return response.status === 204 ? null : response.json();
  }

  /** Yield the lines of an answer that goes on. */
  async *stream(path, parameters, signal) {
    const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined);
    const response = await this._fetch("GET", `${path}?${new URLSearchParams(given)}`, undefined, "", signal);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) if (line.trim()) yield JSON.parse(line);
      }
      if (rest.trim()) yield JSON.parse(rest);
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  async _fetch(method, path, body, type, signal) {
    const headers = { ...(this.token && { Authorization: `Bearer ${this.token}` }), ...(body !== undefined && { "Content-Type": type }) };
    const response = await fetch(this.url + path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
    this._isReached = true;
    if (response.ok) return response;
    const text = await response.text();
    let problem;
    try {
      problem = JSON.parse(text);
    } catch {
      problem = { title: text.slice(0, 200) || `status ${response.status}` };
    }
    throw new TamisError(problem, response.status);
  }

  /** Ask until there is an answer: for what may be sent again. */
  async _again(method, path, body, type) {
    for (let pause_s = FIRST_PAUSE_S; ; pause_s = Math.min(LONGEST_PAUSE_S, pause_s * 2)) {
      try {
        return await this.ask(method, path, body, type);
      } catch (error) {
        // A broker that never answered is perhaps none; one that has gone is waited for.
        const isPassing = error instanceof TamisError ? PASSING_ERRORS.has(error.status) : this._isReached;
        if (!isPassing) throw error;
        const least_s = error.problem?.retry_s ?? 0;
        await new Promise((resolve) => setTimeout(resolve, Math.max(least_s, pause_s * (0.5 + Math.random())) * 1000));
      }
    }
  }
}

/** The position behind another one of the same log. */
function behind(at) {
  const [epoch, numbers] = [at.slice(0, at.lastIndexOf("-")), at.slice(at.lastIndexOf("-") + 1)];
  return `${epoch}-${BigInt(numbers.split(".").at(-1)) + 1n}`;
}
