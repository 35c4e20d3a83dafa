// The decoder's page: hands what is pasted to a worker, and shows what it says. The page is whole without it.
"use strict";

(() => {
  const form = document.getElementById("decoder-form");
  if (!form) return;
  const status = document.getElementById("decoder-status");
  const output = document.getElementById("decoder-output");
  const { text, kind, message, version } = form.elements;
  const named = document.getElementById("decoder-named");
  let number = 0;
  let worker;

  const say = (words) => {
    status.textContent = words;
  };

  const follow = () => {
    named.hidden = kind.value !== "response" && kind.value !== "message";
  };

  const element = (name, content, attributes = {}) => {
    const made = document.createElement(name);
    made.textContent = content;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  const show = (found) => {
    output.replaceChildren();
    output.dataset.done = String(number);
    if (found.error) {
      output.append(element("p", found.error, { role: "alert", class: "decoder-error" }));
      say("");
      return;
    }
    const others = found.length - 1;
    say(others > 0 ? `Fits ${found.length} readings; the likeliest is open.` : "");
    found.forEach((one, at) => {
      const reading = element("details", "", at ? {} : { open: "" });
      reading.append(element("summary", one.title));
      if (one.error) reading.append(element("p", one.error, { role: "alert", class: "decoder-error" }));
      const bytes = element("div", "", { class: "tagwire-reference" });
      bytes.innerHTML = one.html; // rendered by tagwire, which escapes all that comes from the bytes
      for (const each of bytes.querySelectorAll("[id]")) each.id += `-${at}`;
      reading.append(bytes);
      if (one.document) {
        reading.append(element("h3", "As JSON", { id: `as-json-${at}` }));
        reading.append(element("pre", one.document, { tabindex: "0", class: "decoder-json" }));
      }
      if (one.command) {
        reading.append(element("p", "In a terminal:"));
        reading.append(element("pre", one.command, { tabindex: "0" }));
      }
      output.append(reading);
      window.tagwireReference?.enliven?.(bytes);
    });
  };

  const heard = ({ data }) => {
    if (data.ready) {
      const list = document.getElementById("decoder-messages");
      list.replaceChildren(...data.ready.map((name) => element("option", "", { value: name })));
      form.dataset.ready = "";
      if (!number) say("");
    } else if (data.broken) {
      unavailable();
    } else if (data.number === number) {
      show(data.found);
    }
  };

  const unavailable = () => {
    form.hidden = true;
    say("");
    document.getElementById("decoder-unavailable").hidden = false;
  };

  const start = () => {
    if (worker) return;
    say("Loading Python (13 MB, once) …");
    try {
      worker = new Worker(form.dataset.worker, { type: "module" });
    } catch {
      unavailable(); // a page opened from a file may start none
      return;
    }
    worker.onmessage = heard;
    worker.onerror = unavailable;
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    start();
    number += 1;
    if (form.dataset.ready !== undefined) say("Decoding …");
    const asked = { number, text: text.value, kind: kind.value, message: message.value, version: version.value };
    worker?.postMessage(asked);
  });
  text.addEventListener("focus", start);
  kind.addEventListener("change", follow);
  form.hidden = false;
  follow();
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("hex")) {
    text.value = given.get("hex");
    form.requestSubmit();
  }
})();
