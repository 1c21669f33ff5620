// The little that HTML and htmx leave to do: dialogs, toasts, keys, following logs.
"use strict";

const editable = (node) => node.closest("input, textarea, select, [contenteditable]");
const dialogOf = () => document.querySelector("dialog[open]");

// Dialogs arrive in #dialog; what opened them gets the focus back.

let opener = null;

function openDialog() {
  const dialog = document.querySelector("#dialog > dialog:not([open])");
  if (!dialog) return;
  dialog.showModal();
  showChosen(dialog);
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    askToClose(dialog);
  });
  const wrong = dialog.querySelector("[aria-invalid]");
  (wrong || dialog.querySelector("input:not([type=hidden]), textarea, select")).focus();
  dialog.dataset.typed = wrong ? "yes" : "";
}

function closeDialog() {
  document.querySelector("#dialog").replaceChildren();
  const back = opener && document.getElementById(opener);
  if (back) back.focus();
  opener = null;
}

function askToClose(dialog) {
  const question = dialog.querySelector(".discard");
  if (question && dialog.dataset.typed) {
    question.hidden = false;
    question.querySelector("[data-keep]").focus();
  } else {
    closeDialog();
  }
}

function showChosen(root) {
  for (const part of root.querySelectorAll("[data-shown-when]")) {
    const [name, value] = part.dataset.shownWhen.split("=");
    const field = root.querySelector(`#${name}`) || root.querySelector(`[name="${name}"]:checked`);
    part.hidden = !field || field.value !== value;
  }
}

// One question before what costs money or cannot be undone.

function ask(button) {
  const dialog = document.createElement("dialog");
  dialog.className = "question";
  const text = document.createElement("p");
  text.textContent = button.dataset.ask;
  const start = document.createElement("button");
  start.textContent = button.dataset.askVerb;
  start.className = "primary";
  const cancel = document.createElement("button");
  cancel.textContent = "Cancel";
  const foot = document.createElement("footer");
  foot.append(cancel, start);
  dialog.append(text, foot);
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  cancel.addEventListener("click", () => dialog.close());
  start.addEventListener("click", () => {
    start.disabled = true;
    dialog.close();
    htmx.trigger(button, "confirmed");
  });
  dialog.showModal();
  cancel.focus();  // Enter must not start it
}

// Logs follow their end until the person scrolls up.

function follow(log) {
  const button = document.querySelector(`[data-follow="${log.id}"]`);
  if (button && button.getAttribute("aria-pressed") === "true") log.scrollTop = log.scrollHeight;
}

function setFollowing(button, on) {
  button.setAttribute("aria-pressed", on ? "true" : "false");
  if (on) {
    const log = document.getElementById(button.dataset.follow);
    log.scrollTop = log.scrollHeight;
  }
}

function watchLogs() {
  for (const log of document.querySelectorAll("pre.lines[id]")) {
    follow(log);
    log.addEventListener("scroll", () => {
      const button = document.querySelector(`[data-follow="${log.id}"]`);
      if (button) button.setAttribute("aria-pressed", log.scrollTop + log.clientHeight > log.scrollHeight - 40 ? "true" : "false");
    });
  }
}

// Keys: the innermost open thing wins; nothing happens while typing.

const rows = () => [...document.querySelectorAll("[data-row]")];

function move(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
  (next.matches("a") ? next : next.querySelector("a")).focus();
}

function press(key) {
  if (document.querySelector("#pane[aria-busy]")) return true;
  const row = rows().find((one) => one.contains(document.activeElement));
  const verb = row && row.querySelector(`[data-verb="${key}"]`);
  const target = verb || document.querySelector(`[data-key="${key}"]`);
  if (!target) return false;
  if (target.matches("input")) target.focus();
  else target.click();
  return true;
}

let gone = 0;

function onKey(event) {
  if (event.isComposing || event.repeat || event.ctrlKey || event.metaKey || dialogOf()) return;
  if (editable(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const single = document.body.dataset.singleKeys === "on";
  if (event.key.length === 1 && single === event.altKey) return;
  if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
  const places = { i: "/inbox", j: "/jobs", c: "/sessions", s: "/settings", l: "/log" };
  if (event.key === "g") gone = Date.now();
  else if (Date.now() - gone < 1500 && places[event.key]) location.href = places[event.key];
  else if (event.key === "?") showKeys();
  else if (event.key === "j" || event.key === "ArrowDown") move(1);
  else if (event.key === "k" || event.key === "ArrowUp") move(-1);
  else if (!press(event.key)) return;
  event.preventDefault();
}

function showKeys() {
  const dialog = document.createElement("dialog");
  dialog.className = "question";
  const title = document.createElement("h2");
  title.textContent = "Keys on this page";
  const list = document.createElement("dl");
  const add = (key, text) => {
    const dt = document.createElement("dt");
    const kbd = document.createElement("kbd");
    kbd.textContent = key;
    dt.append(kbd);
    const dd = document.createElement("dd");
    dd.textContent = text;
    list.append(dt, dd);
  };
  for (const node of document.querySelectorAll("main [data-key]")) {
    const label = node.getAttribute("placeholder") || node.firstChild.textContent.trim();
    add(node.dataset.key, label);
  }
  add("J K", "Next, previous row");
  add("G then I, J, C, S or L", "Inbox, Cron Jobs, Sessions, Settings, Log");
  const close = document.createElement("button");
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  dialog.append(title, list, close);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("keydown", onKey);

document.addEventListener("click", (event) => {
  const hit = (selector) => event.target.closest(selector);
  if (hit("[data-dismiss]")) hit(".toast").remove();
  else if (hit("[data-close]")) askToClose(hit("dialog"));
  else if (hit("[data-discard]")) closeDialog();
  else if (hit("[data-keep]")) hit(".discard").hidden = true;
  else if (hit("[data-keys]")) showKeys();
  else if (hit("[data-follow]")) setFollowing(hit("[data-follow]"), hit("[data-follow]").getAttribute("aria-pressed") !== "true");
  else if (hit("[data-copy]")) navigator.clipboard.writeText(document.getElementById(hit("[data-copy]").dataset.copy).textContent);
  else if (hit("[data-ask]")) ask(hit("[data-ask]"));
  else if (hit("[data-field]")) {
    event.preventDefault();
    document.getElementById(hit("[data-field]").dataset.field).focus();
  }
});

document.addEventListener("input", (event) => {
  const dialog = event.target.closest("dialog");
  if (dialog) {
    dialog.dataset.typed = "yes";
    showChosen(dialog);
  }
  if (event.target.matches("[data-theme-choice]")) document.documentElement.dataset.theme = event.target.value;
});

document.addEventListener("keydown", (event) => {
  const dialog = dialogOf();
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  const form = dialog ? dialog.querySelector("form") : event.target.closest("#composer");
  if (form) form.requestSubmit();
});

document.addEventListener("dialog-done", closeDialog);
document.addEventListener("said", () => document.querySelector("#composer").reset());

// The window was closed: the engine asks through the feed, once.

document.addEventListener("ask-close", () => {
  if (document.querySelector("#close-question")) return;
  const dialog = document.createElement("dialog");
  dialog.className = "question";
  dialog.id = "close-question";
  const title = document.createElement("h2");
  title.textContent = "Keep jobs running?";
  const text = document.createElement("p");
  text.textContent = "Without Cronmend no job starts. It can go on in the background; start it again to see the window.";
  const always = document.createElement("input");
  always.type = "checkbox";
  always.id = "close-always";
  const label = document.createElement("label");
  label.append(always, " Do not ask again");
  const foot = document.createElement("footer");
  for (const [choice, said] of [["quit", "Quit"], ["keep", "Keep running"]]) {
    const button = document.createElement("button");
    button.textContent = said;
    button.id = `close-${choice}`;
    if (choice === "keep") button.className = "primary";
    button.addEventListener("click", () => {
      dialog.close();
      htmx.ajax("POST", "/close", { source: document.body, swap: "none", values: { choice, always: always.checked ? "yes" : "" } });
    });
    foot.append(button);
  }
  dialog.append(title, text, label, foot);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
});

document.addEventListener("htmx:after:swap", () => {
  openDialog();
  // After a decision the next card is there, and has the focus.
  if (document.querySelector("#decided") && document.activeElement === document.body) (document.querySelector("#pane-title") || document.querySelector("#content")).focus();
  for (const log of document.querySelectorAll("pre[data-live]")) follow(log);
  const toasts = document.querySelectorAll("#toasts .toast");
  for (const old of [...toasts].slice(0, -3)) old.remove();
  for (const toast of toasts) {
    if (!toast.classList.contains("bad") && !toast.dataset.timed) {
      toast.dataset.timed = "yes";
      setTimeout(() => toast.remove(), 8000);
    }
  }
});

// One answer at a time: what is being sent is not sent again (htmx would queue it).

for (const kind of ["click", "submit"]) {
  const busy = kind === "submit" ? "form[aria-busy], #pane[aria-busy] form" : "button[aria-busy], #pane[aria-busy] button[hx-post]";
  document.addEventListener(kind, (event) => {
    if (!event.target.closest(busy)) return;
    event.preventDefault();
    event.stopPropagation();
  }, true);
}

document.addEventListener("htmx:before:request", (event) => {
  const source = event.detail.ctx && event.detail.ctx.sourceElement;
  if (!source) return;
  if (source.getAttribute("hx-target") === "#dialog") opener = source.id;
  if (!source.matches("button, form")) return;
  source.setAttribute("aria-busy", "true");
  const pane = source.closest("#pane");
  if (pane && source.getAttribute("hx-post")) pane.setAttribute("aria-busy", "true");
});

document.addEventListener("htmx:finally:request", (event) => {
  const source = event.detail.ctx && event.detail.ctx.sourceElement;
  if (!source) return;
  source.removeAttribute("aria-busy");
  const pane = document.querySelector("#pane[aria-busy]");
  if (pane && pane.contains(source)) pane.removeAttribute("aria-busy");
});

document.addEventListener("htmx:sse:error", () => document.body.classList.add("offline"));
document.addEventListener("hello", () => document.body.classList.remove("offline"));

// What no event tells is looked at now and then, while somebody looks.

setInterval(() => {
  if (!document.hidden) document.body.dispatchEvent(new Event("tick"));
}, 3000);

document.addEventListener("DOMContentLoaded", () => {
  watchLogs();
  requestAnimationFrame(() => htmx.ajax("POST", "/alive", { source: document.body, swap: "none" }));
});
