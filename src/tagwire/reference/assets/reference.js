// Brings pages of the reference to life: bytes that tell their meaning, tables that narrow, versions that compare.
// Pages are whole without it. It asks for nothing but the `index.json` beside a page.
"use strict";
(() => {
  const made = (name, attributes = {}, ...content) => {
    const one = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    one.append(...content);
    return one;
  };

  // -- bytes

  const meaningOf = (row) => [...row.cells].map((cell) => cell.textContent);

  function bytes(figure) {
    const hex = figure.querySelector(".hex");
    const shown = figure.querySelector(".meaning");
    const rows = figure.querySelectorAll("tbody tr");
    const runs = [...hex.children];
    if (!runs.length || !rows.length) return;
    const id = figure.id || `bytes-${Math.random().toString(36).slice(2)}`;
    hex.setAttribute("role", "listbox");
    hex.setAttribute("tabindex", "0");
    hex.setAttribute("aria-label", `${hex.dataset.label}: arrow keys tell what each byte means`);
    shown.hidden = false;
    shown.textContent = "Point at a byte, tap it or walk through them with the arrow keys: this line says what it means.";
    const copy = made("button", { type: "button" }, "Copy hex");
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(hex.textContent.replace(/\s+/g, ""));
      copy.textContent = "Copied";
    });
    if (navigator.clipboard) shown.after(copy);
    runs.forEach((run, at) => {
      const [field, offset, type, value, rule] = meaningOf(rows[at]);
      run.id = `${id}-${at}`;
      run.setAttribute("role", "option");
      run.setAttribute("aria-selected", "false");
      run.setAttribute("aria-label", `${run.textContent}, byte ${offset}: ${field}, ${type}, ${value}; ${rule}`);
    });
    let active = -1;
    const show = (at) => {
      if (at < 0 || at >= runs.length || at === active) return;
      if (active >= 0) runs[active].setAttribute("aria-selected", "false");
      active = at;
      runs[at].setAttribute("aria-selected", "true");
      hex.setAttribute("aria-activedescendant", runs[at].id);
      const [field, offset, type, value, rule] = meaningOf(rows[at]);
      shown.replaceChildren(
        made("code", {}, field), ` at byte ${offset}: ${type} `, made("b", {}, value), ` (${rule})`,
      );
    };
    const runAt = (target) => runs.indexOf(target.closest(".hex > [role=option]"));
    hex.addEventListener("mouseover", (event) => show(runAt(event.target)));
    hex.addEventListener("click", (event) => show(runAt(event.target)));
    hex.addEventListener("focus", () => show(Math.max(active, 0)));
    hex.addEventListener("keydown", (event) => {
      const to = {
        ArrowRight: active + 1, ArrowDown: active + 1, ArrowLeft: active - 1, ArrowUp: active - 1,
        Home: 0, End: runs.length - 1,
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      show(Math.min(Math.max(to, 0), runs.length - 1));
    });
  }

  // -- tables that narrow

  function narrowing(table) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 8) return;
    const name = table.caption ? table.caption.textContent : "the table";
    const field = made("input", { type: "search", "aria-label": `Narrow ${name}`, placeholder: "Narrow the rows" });
    const count = made("span", { role: "status" });
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        left += row.hidden ? 0 : 1;
      }
      count.textContent = words.length ? `${left} of ${rows.length}` : "";
    });
    const before = table.closest(".scrolled") || table;
    before.before(made("div", { class: "narrow" }, field, count));
  }

  // -- any two releases, any two versions

  const within = (range, version) => range !== null && range[0] <= version && version <= range[1];

  // A name with the places at which a narrow column breaks it.
  function breakable(name) {
    return name.split(/(?<=[a-z])(?=[A-Z])/).flatMap((word, at) => (at ? [made("wbr", {}), word] : [word]));
  }

  // A cell that is not broken into lines.
  const SHORT = 24;

  function spans(versions) {
    const found = [];
    for (const version of versions) {
      const last = found[found.length - 1];
      if (last && last[1] === version - 1) last[1] = version;
      else found.push([version, version]);
    }
    return found.map(([low, high]) => (low === high ? `${low}` : `${low}-${high}`)).join(", ");
  }

  function fieldChanges(message, old, now) {
    const found = [];
    if (within(message.flexible, old) !== within(message.flexible, now)) {
      found.push(within(message.flexible, now) ? "becomes flexible" : "is flexible no longer");
    }
    const gone = [];
    const come = [];
    const inside = (path, structs) => structs.some((struct) => path.startsWith(`${struct}.`));
    for (const [path, type, versions, nullable, tagged, tag] of message.fields) {
      const was = within(versions, old);
      const is = within(versions, now);
      if (was && !is) {
        if (!inside(path, gone)) found.push(`${path}: removed (${type})`);
        gone.push(path);
      } else if (is && !was) {
        const notes = [type];
        if (within(tagged, now)) notes.push(`tag ${tag}`);
        if (within(nullable, now)) notes.push("nullable");
        if (!inside(path, come)) found.push(`${path}: added (${notes.join(", ")})`);
        come.push(path);
      } else if (is) {
        if (within(nullable, old) !== within(nullable, now)) {
          found.push(`${path}: ${within(nullable, now) ? "may be null" : "may not be null any more"}`);
        }
        if (within(tagged, old) !== within(tagged, now)) {
          found.push(`${path}: moves ${within(tagged, now) ? "into" : "out of"} tag ${tag}`);
        }
      }
    }
    return found;
  }

  function versionsOf(text) {
    if (!text) return [];
    const [low, high] = text.split(" ")[0].split("-").map(Number);
    return Array.from({ length: (high ?? low) - low + 1 }, (_, at) => low + at);
  }

  function releaseRows(facts, old, now) {
    const rows = [];
    for (const [api, served] of Object.entries(facts.apis)) {
      const [before, after] = [served[old], served[now]];
      if (before === after) continue;
      const [was, is] = [versionsOf(before), versionsOf(after)];
      const lost = was.filter((version) => !is.includes(version));
      const gained = is.filter((version) => !was.includes(version));
      const said = [];
      if (lost.length) said.push(`${is.length ? "drops" : "goes, with"} ${spans(lost)}`);
      if (gained.length) said.push(`${was.length ? "adds" : "comes with"} ${spans(gained)}`);
      const [top, newTop] = [was[was.length - 1], is[is.length - 1]];
      for (const [name, message] of Object.entries(facts.messages)) {
        if (message.api !== api || top === undefined || newTop === undefined || top === newTop) continue;
        if (!within(message.versions, top) || !within(message.versions, newTop)) continue;
        const role = name.endsWith("Response") ? "response" : "request";
        said.push(...fieldChanges(message, top, newTop).map((text) => `${role} ${text}`));
      }
      rows.push([api, before || "-", after || "-", said.join("; ") || "other marks", lost.length > 0]);
    }
    return rows;
  }

  function tableOf(caption, titles, rows) {
    const body = rows.map(([first, ...rest]) => {
      const lost = rest[rest.length - 1] === true;
      const cells = rest.filter((cell) => typeof cell === "string").map((cell) => made("td", cell.length <= SHORT ? { class: "short" } : {}, cell));
      return made("tr", lost ? { class: "bad" } : {}, made("th", { scope: "row" }, made("a", { href: `../apis/${first}/` }, ...breakable(first))), ...cells);
    });
    const head = made("tr", {}, ...titles.map((title) => made("th", { scope: "col" }, title)));
    const table = made("table", {}, made("caption", {}, caption), made("thead", {}, head), made("tbody", {}, ...body));
    return made("div", { class: "scrolled", role: "region", tabindex: "0", "aria-label": caption }, table);
  }

  function choice(label, values, value, changed) {
    const select = made("select", {}, ...values.map((one) => made("option", { value: one }, one)));
    select.value = value;
    select.addEventListener("change", changed);
    return [made("label", {}, `${label} `, select), select];
  }

  function comparing(place, facts) {
    const names = facts.releases;
    const shown = made("div", { role: "status" });
    const shownVersions = made("div", { role: "status" });
    const compareReleases = () => {
      const rows = releaseRows(facts, older.value, newer.value);
      const caption = `From Kafka ${older.value} to ${newer.value}: ${rows.length === 1 ? "1 API differs" : `${rows.length} APIs differ`}`;
      shown.replaceChildren(tableOf(caption, ["API", older.value, newer.value, "what changed"], rows));
    };
    const [olderLabel, older] = choice("From Kafka", names, "3.9", compareReleases);
    const [newerLabel, newer] = choice("to", names, names[names.length - 1], compareReleases);
    const compareVersions = () => {
      const message = facts.messages[which.value];
      const found = fieldChanges(message, Number(from.value), Number(to.value));
      const items = (found.length ? found : ["No field differs."]).map((text) => made("li", {}, text));
      shownVersions.replaceChildren(made("ul", {}, ...items));
    };
    const fill = () => {
      const [low, high] = facts.messages[which.value].versions;
      for (const [select, value] of [[from, Math.max(low, high - 1)], [to, high]]) {
        const all = Array.from({ length: high - low + 1 }, (_, at) => String(low + at));
        select.replaceChildren(...all.map((one) => made("option", { value: one }, one)));
        select.value = String(value);
      }
      compareVersions();
    };
    const [whichLabel, which] = choice("Versions of", Object.keys(facts.messages), "FetchRequest", fill);
    const [fromLabel, from] = choice("from", [], "", compareVersions);
    const [toLabel, to] = choice("to", [], "", compareVersions);
    place.replaceChildren(
      made("h2", { id: "compare" }, "Any two releases, any two versions"),
      made("p", {}, olderLabel, " ", newerLabel), shown,
      made("p", {}, whichLabel, " ", fromLabel, " ", toLabel), shownVersions,
    );
    place.hidden = false;
    compareReleases();
    fill();
  }

  async function compare(place) {
    try {
      const answer = await fetch(new URL(place.dataset.facts, document.baseURI));
      if (answer.ok) comparing(place, await answer.json());
    } catch {
      // Opened as a file, where a browser reads no others: the comparisons of neighbours stand on the page.
    }
  }

  function enliven(root = document) {
    const each = (selector, how) => {
      for (const one of root.querySelectorAll(`${selector}:not([data-alive])`)) {
        one.dataset.alive = "";
        how(one);
      }
    };
    each("figure.bytes", bytes);
    each("table[data-filter]", narrowing);
    each(".compare[data-facts]", compare);
  }

  window.tagwireReference = { enliven };
  document.addEventListener("tagwire:page", () => enliven());
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => enliven());
  else enliven();
})();
