// Replaces each recorded example by one that can be changed and run.

const INDENT = "    ";
const KEYS = "Ctrl+Enter runs it. Tab indents; Escape and then Tab leaves the field.";

// One Python for all examples, started by the first run, and the example that it runs.
let python = null;
let running = null;

function startPython() {
  const worker = new Worker(new URL("worker.mjs", import.meta.url), { type: "module" });
  // Its last messages may come after it was stopped.
  const receive = (data) => worker === python && running?.receive(data);
  worker.onmessage = ({ data }) => receive(data);
  worker.onerror = ({ message }) => receive({ broken: message || "it was not loaded" });
  return worker;
}

function stopPython() {
  python.terminate();
  python = null;
}

function element(name, properties, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

class Example {
  constructor(box) {
    const [source, output] = [...box.querySelectorAll("pre")].map((each) => each.textContent);
    this.recorded = { source: source.trimEnd(), output, page: box.querySelector("iframe")?.srcdoc };
    const title = box.closest("section").querySelector("h1, h2, h3").firstChild.textContent;
    this.source = element("textarea", {
      "aria-label": `Example: ${title}`, "aria-description": KEYS,
      autocapitalize: "off", autocomplete: "off", spellcheck: "false", wrap: "off",
    });
    this.button = element("button", { type: "button" }, "Run");
    this.status = element("span", { role: "status" });
    const reset = element("button", { type: "button" }, "Reset");
    this.output = element("pre", { role: "log", "aria-label": `Output: ${title}`, tabindex: "0" });
    this.frame = element("iframe", { title: "The page that the example wrote", sandbox: "allow-scripts" });

    this.source.addEventListener("input", () => this.fit());
    this.source.addEventListener("keydown", (event) => this.press(event));
    this.button.addEventListener("click", () => (running === this ? this.stop() : this.run()));
    reset.addEventListener("click", () => this.reset());

    const bar = element("div", { class: "try-it-bar" }, this.button, reset, this.status);
    box.replaceChildren(this.source, bar, this.output, this.frame);
    this.reset();
  }

  reset() {
    if (running === this) this.stop();
    this.source.value = this.recorded.source;
    this.output.textContent = this.recorded.output;
    this.status.textContent = "";
    this.show(this.recorded.page);
    this.fit();
  }

  show(page) {
    this.frame.hidden = !page;
    if (this.frame.srcdoc !== (page ?? "")) this.frame.srcdoc = page ?? "";
  }

  fit() {
    const { style } = this.source;
    style.height = "auto";
    const { scrollHeight, offsetHeight, clientHeight } = this.source;
    // With the border, and the scrollbar of a long line.
    style.height = `${scrollHeight + offsetHeight - clientHeight}px`;
  }

  press(event) {
    const { key, ctrlKey, metaKey, shiftKey, altKey } = event;
    const left = this.leaving;
    this.leaving = key === "Escape";
    let typed = null;
    if (key === "Enter" && (ctrlKey || metaKey)) {
      if (running !== this) this.run();
      typed = "";
    } else if (key === "Enter" && !event.isComposing) {
      const before = this.source.value.slice(0, this.source.selectionStart);
      typed = "\n" + before.match(/ *(?=[^\n]*$)/)[0];
    } else if (key === "Tab" && !(left || ctrlKey || metaKey || shiftKey || altKey)) {
      typed = INDENT;
    }
    if (typed === null) return;
    event.preventDefault();
    // The only way that the browser can undo.
    if (typed) document.execCommand("insertText", false, typed);
  }

  run() {
    if (running) {
      this.status.textContent = "Another example is running: stop it first.";
      return;
    }
    running = this;
    this.button.textContent = "Stop";
    this.output.textContent = "";
    this.show("");
    this.status.textContent = python ? "Running" : "Loading Python, once for this page";
    this.began = performance.now();
    python ??= startPython();
    python.postMessage(this.source.value);
  }

  receive({ started, output, broken, succeeded, page }) {
    if (started) {
      this.began = performance.now();
      this.status.textContent = "Running";
    } else if (output !== undefined) {
      this.output.append(output);
    } else if (broken !== undefined) {
      stopPython();
      this.output.textContent ||= this.recorded.output;
      this.end(`Python cannot run here: ${broken}`);
    } else {
      const seconds = ((performance.now() - this.began) / 1000).toFixed(1);
      this.show(page);
      this.end(`${succeeded ? "Ended" : "Failed"} after ${seconds} s`);
    }
  }

  stop() {
    stopPython();
    this.end("Stopped");
  }

  end(status) {
    running = null;
    this.button.textContent = "Run";
    this.status.textContent = status;
  }
}

for (const box of document.querySelectorAll(".try-it")) new Example(box);
