"use strict";
(() => {
  const one = (selector) => document.querySelector(selector);
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const data = JSON.parse(one("#data").textContent);

  // --- copying: of file:// not every browser lends the clipboard
  const copy = (text, button) => {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    area.style.opacity = "0";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    button.textContent = done ? "copied" : "not copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  };
  const rowsOf = (table) =>
    Array.from(table.rows, (row) => Array.from(row.cells, (cell) => cell.textContent.trim()).join("\t")).join("\n");
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.matches(".copy")) copy(button.parentElement.querySelector("code").textContent, button);
    if (button.matches(".copy-table")) copy(rowsOf(button.closest("figure").querySelector("table")), button);
  });

  // --- the diagram
  const svg = one("#stage svg");
  if (svg) {
    const moved = Panzoom(svg, { maxScale: 40, minScale: 0.5, step: 0.4, animate: false });
    one("#zoom-in").addEventListener("click", () => moved.zoomIn());
    one("#zoom-out").addEventListener("click", () => moved.zoomOut());
    one("#zoom-reset").addEventListener("click", () => moved.reset());
    one("#stage").addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) moved.zoomWithWheel(event);
    }, { passive: false });

    const tip = one("#tip");
    for (const title of svg.querySelectorAll("title")) {
      const owner = title.parentElement;
      if (owner === svg) continue;
      owner.dataset.tip = title.textContent;
      title.remove();
    }
    const told = (event) => {
      const owner = event.target.closest && event.target.closest("[data-tip]");
      tip.hidden = !owner;
      if (!owner) return;
      tip.textContent = owner.dataset.tip;
      const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
      const top = event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18;
      tip.style.left = `${Math.max(left, 4)}px`;
      tip.style.top = `${Math.max(top, 4)}px`;
    };
    svg.addEventListener("pointermove", told);
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  // --- chains of orphan messages
  const boxes = new Map(all("[data-checkpoint]").map((box) => [box.dataset.checkpoint, box]));
  const steps = one("#chain-steps");
  const show = (name) => {
    boxes.forEach((box) => box.classList.remove("chain"));
    steps.replaceChildren();
    for (const number of data.chains[name] || []) {
      const item = document.createElement("li");
      item.textContent = data.steps[number];
      steps.append(item);
    }
    if (data.chains[name]) {
      one("#which").value = name;
      for (const number of data.chains[name]) {
        const found = /^(.*) falls from (\S+) to /.exec(data.steps[number]);
        const box = found && boxes.get(`${found[1]}=${found[2]}`);
        if (box) box.classList.add("chain");
      }
      if (boxes.get(name)) boxes.get(name).classList.add("chain");
    }
  };
  if (steps) {
    const names = Object.keys(data.chains);
    one("#chain").hidden = !names.length;
    for (const name of names.slice(0, 500)) {
      const option = document.createElement("option");
      option.value = name;
      one("#rolled").append(option);
    }
    for (const name of names) {
      const box = boxes.get(name);
      if (!box) continue;
      box.classList.add("past");
      box.setAttribute("tabindex", "0");
      box.setAttribute("role", "button");
      box.setAttribute("aria-label", `why is ${name} rolled back?`);
      box.addEventListener("click", () => show(name));
      box.addEventListener("keydown", (event) => { if (event.key === "Enter") show(name); });
    }
    one("#which").addEventListener("input", (event) => show(event.target.value));
  }

  // --- failures over time
  const slider = one("#moment");
  if (slider) {
    const tell = () => {
      const [time, stored, rolled, back, distance, farthest, lost, initial] = data.moments[slider.value];
      const words = [`${time}: of ${stored} stored checkpoints ${rolled} would have been rolled past`];
      if (back) words.push(`${back} subtasks would have fallen back, ${farthest} the farthest, by ${distance}`);
      if (lost !== null && back) words.push(`at most ${lost / 1000} s of work`);
      if (initial) words.push(`${initial} to their initial state`);
      one("#told").textContent = `${words.join("; ")}.`;
      const x = 46 + (954 * slider.value) / Math.max(data.moments.length - 1, 1);
      one("#cursor").setAttribute("x1", x);
      one("#cursor").setAttribute("x2", x);
    };
    slider.addEventListener("input", tell);
    tell();
  }

  addEventListener("beforeprint", () => all("details").forEach((one) => { one.open = true; }));

  // --- tables, after the first paint; a large one only when it is looked at
  const LARGE = 2000;
  const equip = (table) => new DataTable(table, {
    paging: false, info: false, order: [], autoWidth: false,
    language: { search: "Filter", zeroRecords: "No row holds that." },
  });
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      seen.unobserve(entry.target);
      equip(entry.target.querySelector("table"));
    }
  });
  const filter = () => {
    for (const table of all("table.data")) {
      const rows = table.tBodies[0].rows.length;
      if (rows > LARGE) seen.observe(table.closest("figure"));
      else if (rows > 5) equip(table);
    }
    document.documentElement.dataset.ready = "yes";
  };
  requestAnimationFrame(() => setTimeout(filter));
})();
