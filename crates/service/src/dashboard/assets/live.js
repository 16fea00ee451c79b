// Keeps a page up to date: the server sends it anew when it has changed, and the parts that are marked
// take the place of the old ones. Without this script the page is as it was when it was loaded.
"use strict";

const state = document.getElementById("live-state");

function say(word, mood) {
  state.dataset.mood = mood;
  state.querySelector(".live-word").textContent = word;
}

function isInUse(part) {
  const focused = document.activeElement;
  return part !== focused && part.contains(focused) && focused.matches("input, select, textarea, button, summary");
}

// What a reader has opened stays open, what was scrolled stays where it is, and what was selected stays selected. A row
// that came meanwhile is not selected, even where all were.
function keep(old, fresh) {
  const boxes = new Map([...old.querySelectorAll("input[type=checkbox]")].map((box) => [box.value, box.checked]));
  fresh.querySelectorAll("input[type=checkbox]").forEach((box) => { box.checked = boxes.get(box.value) || false; });
  old.querySelectorAll("details[id]").forEach((details) => {
    const other = fresh.querySelector("#" + CSS.escape(details.id));
    if (other) other.open = details.open;
  });
}

function replace(page) {
  const fresh = new DOMParser().parseFromString(page, "text/html");
  document.querySelectorAll("[data-live]").forEach((old) => {
    const other = fresh.getElementById(old.id);
    if (!other || isInUse(old)) return;
    keep(old, other);
    if (old.innerHTML === other.innerHTML) return;
    const scrolled = [...old.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
    old.replaceChildren(...other.childNodes);
    old.querySelectorAll(".scroll").forEach((box, place) => { box.scrollLeft = scrolled[place] || 0; });
    countSelected();
  });
}

function watch() {
  const events = new EventSource(location.href);
  events.onopen = () => say("Live", "good");
  events.onmessage = (event) => replace(event.data);
  events.addEventListener("over", () => { events.close(); location.reload(); });
  events.onerror = () => say("Not connected", "bad");
  addEventListener("pagehide", () => events.close());
}

if (document.querySelector("[data-live]")) watch();

// The number of selected rows, and all of them at once without a new page.
const boxesOfBulk = () => [...document.querySelectorAll("input[type=checkbox][form=bulk]")];

function countSelected() {
  const told = document.querySelector("[data-selected]");
  const boxes = boxesOfBulk();
  if (told) told.textContent = `${boxes.filter((box) => box.checked).length} of ${boxes.length} selected`;
}

document.addEventListener("change", (event) => { if (event.target.matches("input[form=bulk]")) countSelected(); });
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-select]");
  if (!link) return;
  event.preventDefault();
  const boxes = boxesOfBulk();
  const isAll = boxes.every((box) => box.checked);
  boxes.forEach((box) => { box.checked = !isAll; });
  countSelected();
});
countSelected();

document.querySelectorAll("form[data-on-change] select").forEach((select) => {
  select.addEventListener("change", () => select.form.requestSubmit());
});
