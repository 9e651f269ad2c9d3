"use strict";
/* The viewer. Whatever a model or an environment wrote is set as text, never as markup. */
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);

  /* Light and dark: the system's choice until the button is used. A sandboxed frame has no storage. */
  const stored = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("cota-bench-theme");
      localStorage.setItem("cota-bench-theme", value);
    } catch { /* remembered for this visit only */ }
    return null;
  };
  const remembered = stored();
  if (remembered === "light" || remembered === "dark") root.dataset.theme = remembered;
  $("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    stored(root.dataset.theme);
  });
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));

  const viewer = $("viewer");
  if (!viewer) return;
  const blocks = data.blocks;
  const AXES = ["environment", "actor", "task", "seed"];
  const state = {};
  const opened = new Map();

  const element = (tag, style, text) => {
    const made = document.createElement(tag);
    if (style) made.className = style;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const distinct = (list) => [...new Set(list)];

  async function open(block) {
    if (!opened.has(block)) {
      const bytes = Uint8Array.from(atob(block.body), (sign) => sign.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      opened.set(block, JSON.parse(await new Response(stream).text()));
    }
    return opened.get(block);
  }

  /* Choices: each select offers what exists under the choices before it. */
  const fits = (upto) => blocks.filter((block) => AXES.slice(0, upto).every((axis) => block[axis] === state[axis]));
  function fill(select, values, chosen, label) {
    select.replaceChildren(...values.map((value) => {
      const option = element("option", "", label ? label(value) : String(value));
      option.value = String(value);
      option.selected = value === chosen;
      return option;
    }));
  }
  function settle() {
    AXES.forEach((axis, i) => {
      const values = distinct(fits(i).map((block) => block[axis]));
      if (!values.includes(state[axis])) state[axis] = values[0];
      fill($(axis), values, state[axis]);
    });
    const block = fits(AXES.length)[0];
    const methods = Object.keys(block.ends);
    if (!methods.includes(state.left)) state.left = methods[0];
    if (state.right !== "" && (!methods.includes(state.right) || state.right === state.left)) {
      const others = methods.filter((method) => method !== state.left);
      const differs = others.find((method) => String(block.ends[method]) !== String(block.ends[state.left]));
      state.right = differs || others[0] || "";
    }
    const ended = (method) => method ? `${method} (${score(block.ends[method])})` : "none";
    fill($("left"), methods, state.left, ended);
    fill($("right"), ["", ...methods.filter((method) => method !== state.left)], state.right, ended);
    return block;
  }
  const score = ([status, reward]) => reward === null ? `${status}, unscored` : `${status}, ${Number(reward.toFixed(3))}`;

  const line = (name, text, style) => {
    const made = element("div", "line");
    made.append(element("b", "", name), element("span", `said ${style || ""}`, text));
    return made;
  };
  const chip = (text, style) => element("span", `chip ${style || ""}`, text);

  function review(found, number) {
    const made = element("div", found.fired ? "review on" : "review");
    if (found.thought) made.append(line("thinks", found.thought, "sees"));
    const says = line(number ? "replan" : "proposes", found.says);
    if (found.q !== null) says.lastChild.append(chip(`Q ${found.q.toFixed(3)}`));
    made.append(says);
    for (const candidate of found.candidates) {
      const row = line("candidate", candidate.text, candidate.won ? "won" : "");
      row.lastChild.append(chip(candidate.source));
      candidate.votes.forEach((vote) => row.lastChild.append(chip(`votes ${vote}`)));
      if (candidate.q !== null) row.lastChild.append(chip(`Q ${candidate.q.toFixed(3)}`));
      if (candidate.won) row.lastChild.append(chip("beats the proposal"));
      made.append(row);
    }
    const counted = found.candidates.length ? `, ${found.wins} of ${found.candidates.length} beat the proposal, ${found.asked} asked` : "";
    made.append(line("gate", `${found.fired ? "fired" : "held"}${counted}`, found.fired ? "fired" : ""));
    if (found.advice.length) made.append(line("advice", found.advice.join("\n")));
    if (found.told) made.append(line("told", found.told));
    found.open.forEach((cause) => made.append(line("fail open", cause)));
    if (found.answer) {
      const row = line("answer", "");
      row.lastChild.append(chip(found.answer, found.answer));
      made.append(row);
    }
    return made;
  }

  function step(found) {
    const made = element("div", "box");
    made.append(element("h4", "", `step ${found.i}${found.legal ? `, ${found.legal} legal actions` : ""}`));
    made.append(line("sees", found.sees, "sees"));
    if (found.thought) made.append(line("thinks", found.thought, "sees"));
    found.reviews.forEach((one, number) => made.append(review(one, number)));
    const does = line("does", found.does, "does");
    if (found.replaced) does.lastChild.append(chip("not what was first proposed"));
    if (found.reward !== null && (found.reward || found.done)) does.lastChild.append(chip(`reward ${found.reward}`));
    made.append(does);
    return made;
  }

  function head(method, view) {
    const made = element("div", "box");
    made.append(element("h4", "", view.simulated ? `simulated: ${view.simulated}` : "not simulated"));
    const name = line("method", method, "won");
    name.querySelector(".said").style.borderBottom = `3px solid ${data.colours[method]}`;
    name.querySelector(".said").style.justifySelf = "start";
    made.append(name, line("ended", view.reason ? `${view.status}: ${view.reason}` : view.status));
    if (view.boundary) made.append(line("broke", view.boundary, "fired"));
    made.append(line("reward", view.reward === null ? "none: not scored" : String(view.reward)));
    made.append(line("spent", view.spent.join("\n") || "nothing"));
    made.append(line("record", `cota-bench show ${data.study} ${view.cell}:${state.task}`, "sees"));
    return made;
  }

  const pair = (boxes, style) => {
    const made = element("div", `pair ${style || ""} ${boxes.length === 1 ? "single" : ""}`);
    made.append(...boxes);
    return made;
  };

  function draw(block, body) {
    const methods = [state.left, state.right].filter((method) => method);
    const views = methods.map((method) => body.views[method]);
    const order = Object.keys(block.ends);
    const [a, b] = [...methods].sort((x, y) => order.indexOf(x) - order.indexOf(y));
    const part = methods.length === 2 ? body.parts[a][b] : null;
    const out = [element("p", "said", views[0].task)];
    out.push(pair(methods.map((method, i) => head(method, views[i]))));
    if (methods.length === 2) {
      out.push(element("p", "fine", part ? `They part at step ${part[0]}: ${part[1]}.` : "They never part: same observations, same actions, same outcome."));
    }
    const last = Math.max(...views.map((view) => view.steps.length));
    for (let i = 0; i <= last; i += 1) {
      const here = part !== null && part[0] === i;
      if (here) {
        const banner = element("p", "part", `Here they part: ${part[1]}.`);
        banner.id = "parting";
        banner.tabIndex = -1;
        out.push(banner);
      }
      if (i === last) break;
      out.push(pair(views.map((view) => {
        if (i < view.steps.length) {
          const made = step(view.steps[i]);
          if (methods.length === 2 && (part === null || i < part[0])) made.classList.add("same");
          return made;
        }
        return element("div", "box empty", i === view.steps.length ? `ended: ${view.status}` : "");
      }), here ? "parted" : ""));
    }
    if (views.some((view) => view.more)) {
      out.push(element("p", "fine", `Later steps are left out here: ${views.map((view) => view.more).join(" and ")}.`));
    }
    out.push(pair(views.map((view) => {
      const made = element("div", "box");
      made.append(element("h4", "", "outcome"), line("then", view.final || "(nothing)", "sees"));
      made.append(line("ended", view.status), line("reward", view.reward === null ? "none: not scored" : String(view.reward)));
      return made;
    })));
    viewer.replaceChildren(...out);
    $("jump").disabled = part === null;
    viewer.dataset.ready = `${methods.join("|")}`;
  }

  async function show() {
    const block = settle();
    viewer.removeAttribute("data-ready");
    try {
      const body = await open(block);
      if (fits(AXES.length)[0] === block) draw(block, body);
    } catch (error) {
      viewer.replaceChildren(element("p", "banner", `This browser cannot open the embedded episodes (${error}). Use cota-bench show ${data.study} in a terminal.`));
    }
  }

  function move(by) {
    const values = distinct(fits(2).map((block) => block.task));
    state.task = values[(values.indexOf(state.task) + by + values.length) % values.length];
    show();
  }
  function jump() {
    const parting = $("parting");
    if (parting) { parting.scrollIntoView({ block: "center" }); parting.focus({ preventScroll: true }); }
  }
  function fromAddress() {
    const match = /^#episode=(.*)$/.exec(location.hash);
    if (!match) return false;
    let wanted = match[1];
    try { wanted = decodeURIComponent(wanted); } catch { /* a broken address finds nothing */ }
    const at = wanted.indexOf(":");
    const [cell, task] = [wanted.slice(0, at), wanted.slice(at + 1)];
    for (const block of blocks) {
      const method = Object.keys(block.cells).find((name) => block.cells[name] === cell && block.task === task);
      if (method) {
        AXES.forEach((axis) => { state[axis] = block[axis]; });
        state.left = method;
        show().then(() => $("episodes").scrollIntoView());
        return true;
      }
    }
    return false;
  }

  AXES.forEach((axis) => $(axis).addEventListener("change", (event) => {
    const values = distinct(blocks.map((block) => block[axis]));
    state[axis] = values.find((value) => String(value) === event.target.value);
    show();
  }));
  $("left").addEventListener("change", (event) => { state.left = event.target.value; show(); });
  $("right").addEventListener("change", (event) => { state.right = event.target.value; show(); });
  $("pick").addEventListener("submit", (event) => event.preventDefault());
  $("previous").addEventListener("click", () => move(-1));
  $("next").addEventListener("click", () => move(1));
  $("jump").addEventListener("click", jump);
  addEventListener("hashchange", fromAddress);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(SELECT|INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
    if (event.key === "n") move(1);
    if (event.key === "p") move(-1);
    if (event.key === "d") jump();
  });
  if (!fromAddress()) {
    const telling = blocks.find((block) => distinct(Object.values(block.ends).map(String)).length > 1) || blocks[0];
    AXES.forEach((axis) => { state[axis] = telling[axis]; });
    show();
  }
})();
