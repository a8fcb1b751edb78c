"use strict";
// The page around the timelines: cases are opened, filtered and linked to. A trace is in a script
// element of its own as deflated JSON in base64, and is unpacked when its case is opened.

async function unpacked(id) {
  const text = document.getElementById(id).textContent.trim();
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

async function fill(host) {
  if (host.dataset.state) return;
  host.dataset.state = "busy";
  host.textContent = "The trace is being read.";
  try {
    const trace = await unpacked(host.dataset.trace);
    host.timeline = new Timeline(host, trace);
    host.dataset.state = "drawn";
  } catch (problem) {
    host.textContent = "The trace cannot be shown: " + problem;
    host.dataset.state = "failed";
  }
}

async function fillAll(inside) {
  await Promise.all([...inside.querySelectorAll(".timeline[data-trace]")].map(fill));
  for (const sides of inside.querySelectorAll(".sides")) {
    const [a, b] = [...sides.querySelectorAll(".timeline")].map((host) => host.timeline);
    if (a && b && !a.partner) a.link(b);
  }
}

function unfold(button) {
  const rows = button.closest("tbody").nextElementSibling;
  rows.hidden = !rows.hidden;
  button.setAttribute("aria-expanded", String(!rows.hidden));
}

function openNamed() {
  const named = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named && named.tagName === "DETAILS") {
    named.hidden = false;
    named.open = true;
    named.scrollIntoView();
  }
}

function filterCases() {
  const form = document.getElementById("choose");
  if (!form) return;
  const value = (name) => form.elements[name].value.trim().toLowerCase();
  const [area, verdict, rule, text] = ["area", "verdict", "rule", "text"].map(value);
  let shown = 0;
  for (const found of document.querySelectorAll("details.case")) {
    const { area: a, verdict: v, rules: r } = found.dataset;
    const fits = (!area || a === area) && (!verdict || v === verdict) && (!rule || r.split(" ").some((one) => one.startsWith(rule)))
      && (!text || found.querySelector("summary").textContent.toLowerCase().includes(text));
    found.hidden = !fits;
    shown += fits;
  }
  document.getElementById("count").textContent = shown + (shown === 1 ? " case" : " cases");
}

document.addEventListener("DOMContentLoaded", () => {
  for (const one of document.querySelectorAll("details.case")) {
    one.addEventListener("toggle", () => { if (one.open) fillAll(one); });
    if (one.open) fillAll(one);
  }
  for (const host of document.querySelectorAll(".timeline.now")) fill(host);
  for (const button of document.querySelectorAll("button.unfold")) {
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => unfold(button));
  }
  const form = document.getElementById("choose");
  if (form) {
    form.addEventListener("input", filterCases);
    form.addEventListener("submit", (event) => event.preventDefault());
    filterCases();
  }
  window.addEventListener("hashchange", openNamed);
  openNamed();
});
