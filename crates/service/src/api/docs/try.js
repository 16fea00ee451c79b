// Sends the calls that a reader tries. The token is read from its field when a call is sent; it is never stored, and
// the cookies of the dashboard are never sent.
"use strict";

const MOST_CHARACTERS = 65536;
const token = document.getElementById("token");
document.querySelector(".token").hidden = false;
if (window.matchMedia("(max-width: 60rem)").matches) document.querySelector(".contents details").open = false;

function requestOf(box) {
  let path = box.dataset.path;
  const query = new URLSearchParams();
  const headers = {};
  const request = { method: box.dataset.method, headers, credentials: "omit", cache: "no-store", redirect: "error" };
  for (const field of box.querySelectorAll("[data-in]")) {
    const value = field.value.trim();
    if (field.dataset.in === "path") path = path.replace("{" + field.name + "}", encodeURIComponent(value));
    else if (value === "") continue;
    else if (field.dataset.in === "query") query.append(field.name, value);
    else if (field.dataset.in === "header") headers[field.name] = value;
    else if (field.dataset.in === "body") { request.body = value; headers["Content-Type"] = "application/json"; }
  }
  const given = token.value.trim();
  if (box.dataset.token === "true" && given) headers.Authorization = "Bearer " + given;
  const search = query.toString();
  return [search ? path + "?" + search : path, request];
}

// JSON gets line breaks; whatever else came stays as it is. It is only ever shown as text.
function readable(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

async function send(box) {
  const status = box.querySelector("[data-status]");
  const answer = box.querySelector("[data-answer]");
  const stop = box.querySelector("[data-stop]");
  const button = box.querySelector("[data-send]");
  if (box.dataset.token === "true" && !token.value.trim()) {
    status.textContent = "This call needs a token: paste one at the top of this page.";
    token.focus();
    return;
  }
  const control = new AbortController();
  stop.onclick = () => control.abort();
  stop.hidden = false;
  button.disabled = true;
  answer.hidden = false;
  answer.textContent = "";
  status.textContent = "Sending…";
  let text = "";
  try {
    const [path, request] = requestOf(box);
    const response = await fetch(path, { ...request, signal: control.signal });
    status.textContent = `${response.status} ${response.statusText}`;
    const reader = response.body ? response.body.pipeThrough(new TextDecoderStream()).getReader() : null;
    while (reader) {
      const { done, value } = await reader.read();
      if (done) break;
      text += value;
      answer.textContent = text.slice(0, MOST_CHARACTERS);
      if (text.length > MOST_CHARACTERS) {
        status.textContent += `; the first ${MOST_CHARACTERS} characters are shown`;
        control.abort();
        break;
      }
    }
    answer.textContent = readable(text).slice(0, MOST_CHARACTERS);
  } catch (error) {
    status.textContent = control.signal.aborted ? `${status.textContent}; stopped` : `No response: ${error.message}`;
  }
  stop.hidden = true;
  button.disabled = false;
}

document.querySelectorAll(".try").forEach((box) => {
  box.hidden = false;
  box.querySelector("[data-send]").addEventListener("click", () => send(box));
});
