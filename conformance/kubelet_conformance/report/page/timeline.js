"use strict";
// A timeline: a lane for each pod and each container, all on one axis of time. Lanes are drawn when
// they come into view, and again when zoom or filter change; marks that would lie on each other are
// one mark with a number. `new Timeline(host, trace)` fills the element `host`. Its data-at is a moment
// that is marked, its data-controls where the fields and buttons go. Two that are `linked` have one
// axis, and show the same time, pod, kinds and text.

const KINDS = {
  call: "CRI calls", probe: "probes", hook: "hooks over HTTP", state: "states", wait: "waits", status: "pod statuses",
  event: "events", api: "API writes", user: "what the case did", reads: "reads",
};
const ROWS = { state: 4, status: 4, wait: 24, call: 42, probe: 42, hook: 42, reads: 58, event: 58, api: 58, user: 58 };
const BAR = 16, LANE = 72, NEAR = 9, MORE = 200, ENDS = ["exited", "notready", "removed"];
const SVG = "http://www.w3.org/2000/svg";

function seconds(s) {
  const text = Math.abs(s) >= 100 ? s.toFixed(1) : s.toFixed(3);
  return text + " s";
}

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function about(entry) {
  const place = [entry.pod, entry.container].filter(Boolean).join("/");
  return place && entry.attempt != null ? place + "#" + entry.attempt : place;
}

function inWords(entry) {
  const end = entry.until_s != null && entry.until_s > entry.at_s
    ? " (" + seconds(entry.until_s - entry.at_s) + ")" : "";
  const parts = [entry.kind + " " + entry.what, about(entry), entry.told, entry.error && "failed: " + entry.error];
  return seconds(entry.at_s) + end + "  " + parts.filter(Boolean).join(", ");
}

// The first place in a list ordered by at_s that is not before that time.
function placeOf(list, time) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].at_s < time) low = middle + 1; else high = middle;
  }
  return low;
}

// Lanes by name, in order of appearance: the node, then each pod with its containers behind it.
function lanesOf(entries) {
  const pods = new Map();
  for (const entry of entries) {
    const pod = entry.pod || "", container = entry.container || "";
    if (!pods.has(pod)) pods.set(pod, new Map([["", []]]));
    const lanes = pods.get(pod);
    if (!lanes.has(container)) lanes.set(container, []);
    lanes.get(container).push(entry);
  }
  const found = [];
  const names = [...pods.keys()].sort((a, b) => (a === "" ? -1 : b === "" ? 1 : 0));
  for (const pod of names) {
    for (const [container, list] of pods.get(pod)) {
      if (list.length) found.push({ pod, container, entries: list, bars: barsOf(list) });
    }
  }
  return found;
}

// States and statuses last until the next one of the same lane; waits and long calls have their end.
function barsOf(entries) {
  const bars = [];
  const open = { state: null, status: null };
  for (const entry of entries) {
    if (entry.kind === "state" || entry.kind === "status") {
      const before = open[entry.kind];
      if (entry.kind === "state" && entry.what === "removed" && before && before.entry.attempt !== entry.attempt) continue;
      if (before) before.until = entry.at_s;
      open[entry.kind] = { entry, at: entry.at_s, until: null };
      if (entry.what !== "removed") bars.push(open[entry.kind]);
    } else if (entry.kind === "wait") {
      bars.push({ entry, at: entry.at_s, until: entry.until_s });
    }
  }
  return bars;
}

class Timeline {
  constructor(host, trace) {
    this.host = host;
    this.entries = trace.entries || [];
    this.end = Math.max(trace.end_s || 0, ...[0.001].concat(this.lastTimes()));
    this.window = [0, this.end];
    this.off = new Set();
    this.pod = null;
    this.text = "";
    this.chosen = null;
    this.partner = null;
    this.at = host.dataset.at === undefined ? null : Number(host.dataset.at);
    this.build();
    this.filter();
  }

  lastTimes() {
    let last = 0;
    for (const entry of this.entries) last = Math.max(last, entry.at_s, entry.until_s || 0);
    return [last];
  }

  // -- parts of the page -------------------------------------------------------------------------

  build() {
    const number = Timeline.count = (Timeline.count || 0) + 1;
    const pods = [...new Set(this.entries.map((entry) => entry.pod || ""))].sort();
    const podChoice = element("select", { onchange: (e) => { this.pod = e.target.value === "*" ? null : e.target.value; this.filter(); } },
      element("option", { value: "*" }, "all pods"),
      ...pods.map((pod) => element("option", { value: pod }, pod || "(the node)")));
    const text = element("input", { type: "search", size: 24, oninput: (e) => { this.text = e.target.value.trim().toLowerCase(); this.filter(); } });
    const kinds = Object.entries(KINDS).filter(([kind]) => this.entries.some((entry) => entry.kind === kind)).map(([kind, words]) =>
      element("label", {}, element("input", { type: "checkbox", checked: true, "data-kind": kind, onchange: (e) => { e.target.checked ? this.off.delete(kind) : this.off.add(kind); this.filter(); } }), legend(kind), " " + words));
    const button = (label, title, act) => element("button", { type: "button", title, onclick: act }, label);
    const zoom = element("div", { class: "zoom", role: "group", "aria-label": "zoom" },
      button("+", "zoom in", () => this.zoom(0.5)), button("\u2212", "zoom out", () => this.zoom(2)),
      button("all", "show all of the time", () => this.show(0, this.end)),
      button("\u25c2", "earlier", () => this.pan(-0.5)), button("\u25b8", "later", () => this.pan(0.5)));
    this.shown = element("span", { class: "window" });
    this.axis = document.createElementNS(SVG, "svg");
    this.axis.setAttribute("class", "axis");
    this.axis.setAttribute("aria-hidden", "true");
    this.body = element("div", { class: "lanes" });
    this.view = element("div", {
      class: "view", tabindex: 0, role: "application", "aria-describedby": "tl-help-" + number,
      "aria-label": "timeline: arrow keys choose an entry, plus and minus zoom",
      onkeydown: (e) => this.key(e), onwheel: (e) => this.wheel(e), onpointerdown: (e) => this.drag(e),
    }, element("div", { class: "lane head" }, element("div", { class: "label" }, "time"), this.axis), this.body);
    this.line = element("p", { class: "chosen", "aria-live": "polite" }, "Nothing is chosen.");
    this.detail = element("pre", { class: "detail", tabindex: 0, "aria-label": "what the entry holds" });
    this.detail.hidden = true;
    this.rows = element("tbody", {});
    this.more = button("more", "more rows", () => this.fillTable(true));
    this.table = element("details", { class: "entries", ontoggle: () => this.fillTable() },
      element("summary", {}, "The same as a table"),
      element("table", {}, element("thead", {}, element("tr", {}, ...["time", "took", "kind", "what", "about", "more"].map((word) => element("th", { scope: "col" }, word)))), this.rows), this.more);
    if (this.at !== null) zoom.append(button("to the difference", "show the moment of the first difference", () => this.toDifference()));
    const controls = [
      element("div", { class: "controls" }, element("label", {}, "pod ", podChoice), element("label", {}, "method or text ", text), zoom, this.shown),
      element("fieldset", { class: "kinds" }, element("legend", {}, "shown"), ...kinds)];
    const place = this.host.dataset.controls;
    if (place && place !== "none") document.getElementById(place).replaceChildren(...controls);
    this.host.replaceChildren(
      ...(place ? [] : controls),
      this.view, this.line, this.detail,
      element("p", { class: "help", id: "tl-help-" + number }, "Keys: \u2190 \u2192 entry before and after, \u2191 \u2193 lane, + \u2212 zoom, 0 all, Enter what it holds. Wheel with Ctrl zooms, dragging moves."),
      this.table);
    this.seer = typeof IntersectionObserver === "undefined" ? null : new IntersectionObserver((seen) => {
      for (const one of seen) {
        one.target.lane.visible = one.isIntersecting;
        if (one.isIntersecting && one.target.lane.old) this.draw(one.target.lane);
      }
    }, { rootMargin: "200px" });
    new ResizeObserver(() => { if (this.width() !== this.drawnWidth) this.redraw(); }).observe(this.view);
    window.addEventListener("beforeprint", () => { for (const lane of (this.lanes || []).slice(0, 300)) this.draw(lane); });
  }

  // -- what is shown -----------------------------------------------------------------------------

  wanted(entry) {
    if (this.off.has(entry.kind) || (this.pod !== null && (entry.pod || "") !== this.pod)) return false;
    return !this.text || (entry.what + " " + (entry.told || "") + " " + (entry.error || "") + " " + about(entry)).toLowerCase().includes(this.text);
  }

  filter(alone) {
    if (this.partner && !alone) {
      Object.assign(this.partner, { off: this.off, pod: this.pod, text: this.text });
      this.partner.filter(true);
    }
    this.kept = this.entries.filter((entry) => this.wanted(entry));
    this.lanes = lanesOf(this.kept);
    if (this.seer) this.seer.disconnect();
    this.body.replaceChildren(...this.lanes.map((lane) => this.laneRow(lane)));
    for (const lane of this.lanes) this.seer ? this.seer.observe(lane.row) : (lane.visible = true);
    this.host.dataset.kept = this.kept.length;
    this.chosen = null;
    this.redraw();
    this.fillTable();
  }

  laneRow(lane) {
    const name = lane.container || lane.pod || "(the node)";
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("role", "img");
    svg.setAttribute("height", LANE);
    const counted = {};
    for (const entry of lane.entries) counted[entry.kind] = (counted[entry.kind] || 0) + 1;
    svg.setAttribute("aria-label", [lane.pod, lane.container].filter(Boolean).join("/") + ": " + Object.entries(counted).map(([kind, n]) => n + " " + KINDS[kind]).join(", "));
    lane.svg = svg;
    lane.row = element("div", { class: lane.container ? "lane inner" : "lane" }, element("div", { class: "label", title: name }, name), svg);
    lane.row.lane = lane;
    return lane.row;
  }

  width() { return Math.max(120, this.view.clientWidth - this.view.querySelector(".label").offsetWidth - 16); }
  x(time) { return (time - this.window[0]) / (this.window[1] - this.window[0]) * this.width(); }

  show(from, to) {
    const least = Math.max(this.end / 1e7, 1e-4);
    let span = Math.min(Math.max(to - from, least), this.end);
    from = Math.min(Math.max(from, 0), this.end - span);
    this.window = [from, from + span];
    this.redraw();
    if (this.partner) {
      this.partner.window = this.window;
      this.partner.redraw();
    }
  }

  link(other) {
    for (const [one, another] of [[this, other], [other, this]]) {
      one.partner = another;
      one.end = Math.max(one.end, another.end);
    }
    if (this.at === null) this.show(0, this.end);
    else this.toDifference();
  }

  toDifference() {
    const moments = [this.at, this.partner ? this.partner.at : null].filter((at) => at !== null);
    const first = Math.min(...moments), last = Math.max(...moments), around = Math.max(last - first, this.end / 40);
    this.show(first - around, last + around);
  }

  zoom(factor, at) {
    const [from, to] = this.window;
    const middle = at === undefined ? (this.chosen ? this.chosen.at_s : (from + to) / 2) : at;
    this.show(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  pan(share) {
    const span = this.window[1] - this.window[0];
    this.show(this.window[0] + share * span, this.window[1] + share * span);
  }

  redraw() {
    this.drawnWidth = this.width();
    this.shown.textContent = seconds(this.window[0]) + " to " + seconds(this.window[1]);
    this.host.dataset.window = this.window.join(" ");
    this.drawAxis();
    for (const lane of this.lanes) {
      lane.old = true;
      if (lane.visible) this.draw(lane);
    }
  }

  drawAxis() {
    const width = this.width(), [from, to] = this.window;
    this.axis.setAttribute("width", width);
    this.axis.setAttribute("height", 22);
    this.axis.replaceChildren();
    const raw = (to - from) / Math.max(2, Math.floor(width / 110));
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
    const digits = Math.max(0, -Math.floor(Math.log10(step)));
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const x = this.x(time);
      this.axis.append(shape("line", { x1: x, x2: x, y1: 14, y2: 22, class: "tick" }));
      if (x + 45 < width) this.axis.append(shape("text", { x: x + 3, y: 12, class: "ticktext" }, time.toFixed(digits) + " s"));
    }
  }

  // -- drawing -----------------------------------------------------------------------------------

  draw(lane) {
    lane.old = false;
    const width = this.width(), [from, to] = this.window;
    lane.svg.setAttribute("width", width);
    const parts = [];
    let lastX = -1;
    for (const bar of lane.bars) {
      const until = bar.until == null ? this.end : bar.until;
      if (until < from || bar.at > to) continue;
      const left = Math.max(-2, this.x(bar.at)), right = Math.min(width + 2, this.x(until));
      if (right - left < 1 && left - lastX < 1) continue;
      lastX = left;
      parts.push(this.bar(bar, left, Math.max(right - left, 1)));
    }
    const clusters = {};
    for (let place = placeOf(lane.entries, from); place < lane.entries.length; place++) {
      const entry = lane.entries[place];
      if (entry.at_s > to) break;
      if (entry.kind === "state" || entry.kind === "status" || entry.kind === "wait") continue;
      const y = ROWS[entry.kind], x = this.x(entry.at_s), last = clusters[y];
      if (last && x - last.x < NEAR) {
        last.all += 1;
        if (entry.error && !last.entry.error) last.entry = entry;
      } else {
        if (last) parts.push(this.mark(last, y));
        clusters[y] = { x, entry, all: 1 };
      }
    }
    for (const [y, last] of Object.entries(clusters)) parts.push(this.mark(last, Number(y)));
    if (this.at !== null && this.at >= from && this.at <= to) {
      const x = this.x(this.at);
      parts.push(shape("line", { x1: x, x2: x, y1: 0, y2: LANE, class: "differs-here" }));
    }
    if (this.chosen && lane.entries.includes(this.chosen)) {
      const x = this.x(this.chosen.at_s);
      parts.push(shape("line", { x1: x, x2: x, y1: 0, y2: LANE, class: "cursor" }));
    }
    lane.svg.replaceChildren(...parts);
    this.host.dataset.drawn = this.lanes.filter((one) => !one.old).length;
  }

  bar(bar, x, width) {
    const { entry } = bar, y = ROWS[entry.kind];
    const word = entry.what.replace(/[^a-z]/gi, "").toLowerCase();
    const group = shape("g", { class: "bar " + entry.kind + " is-" + word });
    group.append(shape("title", {}, inWords(entry)), shape("rect", { x, y, width, height: BAR }));
    const label = entry.kind === "wait" ? entry.what + " " + (entry.told || "") : entry.what + (entry.what === "exited" ? " " + (entry.told || "").replace(/[^0-9]/g, "") : "");
    if (width > label.length * 6.2 + 4) group.append(shape("text", { x: Math.max(x, 0) + 3, y: y + 12 }, label));
    group.addEventListener("click", () => this.choose(entry));
    return group;
  }

  mark(cluster, y) {
    const { entry, x, all } = cluster;
    const group = shape("g", { class: "mark " + entry.kind + (entry.error ? " failed" : ""), "data-what": entry.what });
    group.append(shape("title", {}, inWords(entry) + (all > 1 ? " and " + (all - 1) + " more here: zoom in" : "")), glyph(entry, x, y));
    if (all > 1) group.append(shape("text", { x: x + 6, y: y + 13, class: "number" }, all));
    group.addEventListener("click", () => { this.choose(entry); if (all > 1) this.zoom(0.25, entry.at_s); });
    return group;
  }

  // -- choosing ----------------------------------------------------------------------------------

  choose(entry, quiet) {
    this.chosen = entry;
    if (!entry) return;
    this.line.textContent = inWords(entry);
    const held = Object.keys(entry.detail || {}).length;
    this.detail.hidden = !held;
    this.detail.textContent = held ? JSON.stringify(entry.detail, null, 1) : "";
    const span = this.window[1] - this.window[0];
    if (entry.at_s < this.window[0] || entry.at_s > this.window[1]) this.show(entry.at_s - span / 2, entry.at_s + span / 2);
    else this.redraw();
    const lane = this.lanes.find((one) => one.entries.includes(entry));
    if (lane && !quiet) lane.row.scrollIntoView({ block: "nearest" });
  }

  step(by) {
    if (!this.kept.length) return;
    const place = this.chosen ? this.kept.indexOf(this.chosen) + by : by > 0 ? placeOf(this.kept, this.window[0]) : this.kept.length - 1;
    this.choose(this.kept[Math.min(Math.max(place, 0), this.kept.length - 1)]);
  }

  stepLane(by) {
    if (!this.lanes.length) return;
    const here = this.chosen ? this.lanes.findIndex((one) => one.entries.includes(this.chosen)) : by > 0 ? -1 : this.lanes.length;
    const lane = this.lanes[Math.min(Math.max(here + by, 0), this.lanes.length - 1)];
    const time = this.chosen ? this.chosen.at_s : this.window[0];
    this.choose(lane.entries[Math.min(placeOf(lane.entries, time), lane.entries.length - 1)]);
  }

  key(event) {
    const acts = {
      ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1),
      ArrowDown: () => this.stepLane(1), ArrowUp: () => this.stepLane(-1),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.show(0, this.end),
      Home: () => this.choose(this.kept[0]), End: () => this.choose(this.kept[this.kept.length - 1]),
      Enter: () => { if (!this.detail.hidden) this.detail.focus(); },
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  }

  wheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const left = this.axis.getBoundingClientRect().left;
    const at = this.window[0] + (event.clientX - left) / this.width() * (this.window[1] - this.window[0]);
    this.zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, at);
  }

  drag(event) {
    if (event.button !== 0) return;
    const start = event.clientX, [from, to] = this.window;
    const move = (e) => {
      const by = (start - e.clientX) / this.width() * (to - from);
      if (Math.abs(start - e.clientX) > 3) this.show(from + by, to + by);
    };
    const end = () => { window.removeEventListener("pointermove", move); window.removeEventListener("pointerup", end); };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
  }

  fillTable(more) {
    if (!this.table.open) return;
    const have = more ? this.rows.children.length : 0;
    if (!more) this.rows.replaceChildren();
    for (const entry of this.kept.slice(have, have + MORE)) {
      const took = entry.until_s != null ? seconds(entry.until_s - entry.at_s) : "";
      const cells = [seconds(entry.at_s), took, entry.kind, entry.what, about(entry), [entry.told, entry.error].filter(Boolean).join(" \u2192 ")];
      this.rows.append(element("tr", {}, ...cells.map((cell) => element("td", {}, cell))));
    }
    this.more.hidden = this.rows.children.length >= this.kept.length;
  }
}

// Each kind has a form of its own, so that colour is not needed to tell them apart.
function glyph(entry, x, y) {
  const top = y, low = y + 12, half = 5;
  if (entry.error && entry.kind !== "probe") return shape("path", { d: `M${x - half} ${top}L${x + half} ${low}M${x + half} ${top}L${x - half} ${low}` });
  switch (entry.kind) {
    case "call": return shape("rect", { x: x - 3, y: top, width: 6, height: 12 });
    case "probe": return shape("path", { d: entry.error ? `M${x - half} ${top}h10l-5 12z` : `M${x - half} ${low}h10l-5 -12z` });
    case "hook": return shape("path", { d: `M${x} ${top}v7a3.5 3.5 0 1 1 -5 -3` });
    case "event": return shape("path", { d: `M${x} ${top}l6 6l-6 6l-6 -6z` });
    case "api": return shape("circle", { cx: x, cy: top + 6, r: 5 });
    case "user": return shape("path", { d: `M${x - half} ${top}h10v8h-5l-5 4z` });
    case "wait": return shape("rect", { x: x - 6, y: top + 2, width: 12, height: 8 });
    case "state": case "status": return shape("rect", { x: x - 6, y: top + 1, width: 12, height: 10 });
    default: return shape("line", { x1: x, x2: x, y1: top + 3, y2: low });
  }
}

function legend(kind) {
  const svg = shape("svg", { width: 16, height: 14, class: "legend", "aria-hidden": "true" });
  const bar = kind === "wait" || kind === "state" || kind === "status";
  const group = shape("g", { class: (bar ? "bar " : "mark ") + kind });
  group.append(glyph({ kind }, 8, 1));
  svg.append(group);
  return svg;
}
