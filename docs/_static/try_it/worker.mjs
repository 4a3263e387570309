// Python in a thread of its own, so that a page can end it at any moment.
//
// It is sent the source of an example, and sends what that prints and how it ended.

import { loadPyodide } from "../pyodide/pyodide.mjs";

// An endless loop prints more than a page can show.
const MAX_BYTES = 100_000;

let printed = 0;

function print(decoder, bytes) {
  if (printed <= MAX_BYTES) {
    printed += bytes.length;
    const rest = printed > MAX_BYTES ? "\n... and more, which is not shown\n" : "";
    postMessage({ output: decoder.decode(bytes, { stream: true }) + rest });
  }
  return bytes.length;
}

async function download(path) {
  const response = await fetch(new URL(path, import.meta.url));
  if (!response.ok) throw new Error(`${path} has status ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function start() {
  const [pyodide, packages, program] = await Promise.all([
    loadPyodide(),
    download("../pyodide/packages.zip"),
    download("run_example.py"),
  ]);
  const [extractDir] = pyodide.pyimport("site").getsitepackages();
  pyodide.unpackArchive(packages, "zip", { extractDir });
  pyodide.FS.writeFile(`${extractDir}/run_example.py`, program);
  pyodide.setStdin({ error: true });
  for (const set of ["setStdout", "setStderr"]) {
    const decoder = new TextDecoder();
    pyodide[set]({ write: (bytes) => print(decoder, bytes) });
  }
  return pyodide;
}

// An error of Pyodide itself, after which it cannot be used.
const fail = (error) => postMessage({ broken: error.message });

const started = start();
started.then(() => postMessage({ started: true }), fail);

onmessage = async ({ data }) => {
  const pyodide = await started;
  printed = 0;
  try {
    const { run } = pyodide.pyimport("run_example");
    // Some browsers can suspend Python while its event loop waits.
    const suspends = "Suspending" in WebAssembly;
    const [succeeded, page] = suspends ? await run.callPromising(data) : run(data);
    postMessage({ ended: true, succeeded, page });
  } catch (error) {
    fail(error);
  }
};
