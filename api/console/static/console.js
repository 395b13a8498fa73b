// What makes pages handier; each of them can be read and used without it.
"use strict";
(() => {
  const parts = { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" };
  const thisYear = new Intl.DateTimeFormat(undefined, parts);
  const anyYear = new Intl.DateTimeFormat(undefined, { ...parts, year: "numeric" });
  const short = (moment) => (moment.getFullYear() === new Date().getFullYear() ? thisYear : anyYear).format(moment);
  const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

  function localTimes(root) {
    for (const element of root.querySelectorAll("time[datetime]:not([data-told])")) {
      const moment = new Date(element.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      element.title = `${full.format(moment)} (${element.dateTime})`;
      element.textContent = short(moment);
      element.dataset.told = "";
    }
  }

  function themeSwitch() {
    const button = document.getElementById("theme");
    if (!button) return;
    button.hidden = false;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const now = () => document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
    const name = () => { button.textContent = now() === "dark" ? "Light look" : "Dark look"; };
    button.addEventListener("click", () => {
      const next = now() === "dark" ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      try { localStorage.setItem("ballast-theme", next); } catch { /* for this page alone, then */ }
      name();
      document.dispatchEvent(new CustomEvent("ballast:theme"));
    });
    dark.addEventListener("change", name);
    name();
  }

  // A sensor over decades: the slider goes from 0 to 1 in the logarithm, and data-reading is the reading where it stands.
  function decades(range) {
    const low = Number(range.min), high = Number(range.max), ratio = high / low, first = range.value;
    const tell = () => {
      const reading = Number((low * ratio ** range.value).toPrecision(6));
      range.dataset.reading = Math.min(Math.max(reading, low), high);
      range.setAttribute("aria-valuetext", range.dataset.reading);
    };
    const show = (reading) => {
      range.value = Math.log(Math.max(reading, low) / low) / Math.log(ratio);
      tell();
    };
    range.min = 0;
    range.max = 1;
    show(first);
    range.addEventListener("input", tell);
    return show;
  }

  function sliders(root) {
    for (const range of root.querySelectorAll("input[type=range][data-for]")) {
      const number = document.getElementById(range.dataset.for);
      const show = range.hasAttribute("data-log") ? decades(range) : (reading) => { range.value = reading; };
      range.hidden = false;
      range.addEventListener("input", () => { number.value = range.dataset.reading || range.value; });
      number.addEventListener("input", () => { if (number.value !== "") show(number.value); });
    }
  }

  function dropped() {
    const area = document.querySelector("textarea[data-drop]");
    if (!area) return;
    const take = async (file) => {
      if (!file) return;
      const fits = file.size < 4e6;
      area.setCustomValidity(fits ? "" : "The file is larger than 4 MB and is not read. Over REST a sample a line may be asked.");
      if (fits) area.value = await file.text();
      else area.reportValidity();
    };
    area.addEventListener("input", () => area.setCustomValidity(""));
    area.addEventListener("dragover", (event) => event.preventDefault());
    area.addEventListener("drop", (event) => {
      if (!event.dataTransfer.files.length) return;
      event.preventDefault();
      take(event.dataTransfer.files[0]);
    });
    const chooser = document.getElementById(area.dataset.drop);
    if (chooser) {
      chooser.closest("label").hidden = false;
      chooser.addEventListener("change", () => take(chooser.files[0]));
    }
  }

  // What a part of the page asked for and did not get leaves that part as it is; a line says so until the next answer.
  function unanswered() {
    const line = document.getElementById("unanswered");
    const tell = (why) => {
      line.firstElementChild.textContent = why;
      line.hidden = false;
    };
    document.addEventListener("htmx:response:error", (event) => {
      const { response, request, text } = event.detail.ctx;
      const page = new DOMParser().parseFromString(text, "text/html"); // a proxy's own page has no such notice
      const found = page.querySelector("main .notice.bad:not([hidden]) p");
      const said = found ? found.textContent : `The server answered ${response.status}.`;
      tell(request.method === "GET" ? `${said} What stands here may be old; it is asked for again.` : said);
    });
    document.addEventListener("htmx:error", (event) => {
      if (event.detail.ctx) tell("The server does not answer. What stands here may be old.");
    });
    document.addEventListener("htmx:after:swap", (event) => { // it comes after a failure, too, of which nothing is taken
      if (event.detail.ctx.response.status < 400) line.hidden = true;
    });
  }

  // A link of the demo carries the token behind the #, which no server sees; the page takes it out of the address.
  function signInByLink() {
    const form = document.querySelector("form[data-sign-in]");
    if (!form || !location.hash.startsWith("#token=")) return;
    form.elements.token.value = decodeURIComponent(location.hash.slice("#token=".length));
    history.replaceState(null, "", location.pathname + location.search);
    if (form.dataset.signIn === "at-once") form.requestSubmit();
  }

  document.addEventListener("DOMContentLoaded", () => {
    localTimes(document);
    themeSwitch();
    sliders(document);
    dropped();
    unanswered();
    signInByLink();
    new MutationObserver(() => localTimes(document)).observe(document.body, { childList: true, subtree: true });
  });
})();
